import { Module } from '@nestjs/common';
import { EchoMqModule } from 'nestjs-echomq';
import { MailModule } from './mail.module.js';
import { Settings, SettingsModule } from './settings.module.js';

@Module({
  imports: [
    EchoMqModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: ({ redisUrl, prefix }: Settings) => ({ connection: redisUrl, prefix }),
    }),
    MailModule,
  ],
})
export class AppModule {}
