import { describe, expect, it } from '@jest/globals';
import { type DynamicModule, Injectable, Module } from '@nestjs/common';
import { Consumers, EchoMq, EchoMqModule, Job, Jobs, OnJob, Processor } from 'nestjs-echomq';
import { moduleOf } from '../drain/places.js';
import { BOOTS, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';
import { until } from './support/until.js';

const ran: string[] = [];

@Injectable()
@Processor('doubled')
class Doubled {
  @OnJob()
  run({ name }: Job): void {
    ran.push(name);
  }
}

const engines = new Set<EchoMq>();

@Injectable()
class Witness {
  constructor(echo: EchoMq) {
    engines.add(echo);
  }
}

@Module({})
class Feature {
  static register(option: string): DynamicModule {
    return { module: Feature, providers: [Doubled, { provide: 'option', useValue: option }] };
  }
}

describe('what is imported twice serves once (C158)', () => {
  const server = useServer();
  const apps = useApps();
  guardLeaks();

  const echo = () => EchoMqModule.forRoot(server.options());
  const shared = Feature.register('shared');
  const cases: Record<string, () => DynamicModule[]> = {
    'a dynamic module, as the same object': () => [echo(), branch(shared), branch(shared), shared],
    'a dynamic module, made twice alike': () => [echo(), branch(Feature.register('a')), branch(Feature.register('a'))],
    'a dynamic module, with different options': () => [echo(), Feature.register('a'), branch(Feature.register('b'))],
    'EchoMqModule, as the same object': () => {
      const same = echo();
      return [same, branch(same), branch(shared, same)];
    },
    'EchoMqModule, made twice alike': () => [echo(), branch(echo()), branch(shared)],
  };

  it.each(Object.keys(cases))('%s', async (what) => {
    ran.length = 0;
    engines.clear();
    await server.client.ping();
    const before = sockets();
    const root = moduleOf({ imports: cases[what]!() });
    const app = apps.keep(await BOOTS['an application context']!(root));
    expect(app.get(Consumers).queues).toEqual(['doubled']);
    const names = Array.from({ length: 20 }, (_, index) => `job ${index}`);
    await app.get(Jobs).enqueueMany(
      'doubled',
      names.map((name) => ({ name })),
    );
    const completed = async () => (await app.get(Jobs).counts('doubled')).metrics.completed === 20;
    await until(completed, { what: '20 completed jobs' });
    expect([...ran].sort()).toEqual([...names].sort());
    expect(engines.size).toBe(1);
    // One for commands, one that listens.
    expect(sockets() - before).toBe(2);
  });
});

function branch(...imports: DynamicModule[]): DynamicModule {
  return { module: moduleOf({}), imports, providers: [Witness] };
}

function sockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
}
