import { Injectable, Module } from '@nestjs/common';

@Injectable()
export class Settings {
  readonly redisUrl = required('ECHOMQ_URL');
  readonly prefix = required('CONTRACT_PREFIX');
}

@Module({ providers: [Settings], exports: [Settings] })
export class SettingsModule {}

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`set ${name}`);
  return value;
}
