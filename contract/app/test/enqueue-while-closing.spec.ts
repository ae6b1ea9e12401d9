import { describe, expect, it } from '@jest/globals';
import {
  type BeforeApplicationShutdown,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { EchoMqModule, Jobs, OnJob, Processor } from 'nestjs-echomq';
import { KINDS } from '../drain/kinds.js';
import { moduleOf, PLACE_NAMES, rootWith } from '../drain/places.js';
import { stage, turns } from '../drain/stage.js';
import { BOOTS, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';

@Injectable()
class Talker implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(private readonly jobs: Jobs) {}

  async say(name: string): Promise<void> {
    await this.jobs.enqueue('said', name);
  }

  onModuleDestroy(): Promise<void> {
    return this.say('onModuleDestroy');
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.say('beforeApplicationShutdown');
  }

  onApplicationShutdown(): Promise<void> {
    return this.say('onApplicationShutdown');
  }
}

@Injectable()
@Processor('talks')
class Talks {
  constructor(private readonly talker: Talker) {}

  @OnJob()
  async run(): Promise<void> {
    stage.handlerRuns.open();
    await stage.handlerMayEnd.opened;
    await this.talker.say('handler');
  }
}

describe('a draining handler and every shutdown hook may still enqueue', () => {
  const server = useServer();
  const apps = useApps();
  guardLeaks();

  const cases = PLACE_NAMES.flatMap((place) => Object.keys(BOOTS).map((kind) => [place, kind] as const));

  it.each(cases)('those of a provider %s, of %s', async (place, kind) => {
    stage.clear();
    const root = rootWith(place, [Talker], Talks, EchoMqModule.forRoot(server.options()));
    const app = apps.keep(await BOOTS[kind]!(root));
    await app.get(Jobs).enqueue('talks', 'talk');
    await stage.handlerRuns.opened;
    const closing = apps.close(app);
    await turns();
    stage.handlerMayEnd.open();
    await closing;
    const readers = moduleOf({ imports: [EchoMqModule.forRoot(server.options({ consume: false }))] });
    const reader = apps.keep(await KINDS['an application context'](readers));
    const { jobs } = await reader.get(Jobs).list('said', 'pending');
    expect(jobs.map(({ name }) => name)).toEqual([
      'handler',
      'onModuleDestroy',
      'beforeApplicationShutdown',
      'onApplicationShutdown',
    ]);
  });
});
