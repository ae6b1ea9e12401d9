import { describe, expect, it } from '@jest/globals';
import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Consumers, EchoMqModule, Jobs, OnJob, Processor } from 'nestjs-echomq';
import { moduleOf } from '../drain/places.js';
import { gate, stage, turns } from '../drain/stage.js';
import { BOOTS, compiled, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';

@Injectable()
@Processor('slow')
class Slow {
  @OnJob()
  async run(): Promise<void> {
    stage.write('starts');
    stage.handlerRuns.open();
    await stage.handlerMayEnd.opened;
    stage.write('ends');
  }
}

describe('an app', () => {
  const server = useServer();
  const apps = useApps();
  guardLeaks();

  const rootOf = (...providers: (new () => unknown)[]) =>
    moduleOf({ imports: [EchoMqModule.forRoot(server.options())], providers: [Slow, ...providers] });
  const counts = async () => {
    const app = apps.keep(
      await BOOTS['an application context']!(
        moduleOf({
          imports: [EchoMqModule.forRoot(server.options({ consume: false }))],
        }),
      ),
    );
    return app.get(Jobs).counts('slow');
  };

  it.each(Object.keys(BOOTS))('closes once when it is closed twice, both as %s', async (kind) => {
    stage.clear();
    const app = await BOOTS[kind]!(rootOf());
    await app.get(Jobs).enqueue('slow', 'job');
    await stage.handlerRuns.opened;
    const closing = Promise.all([app.close(), app.close()]).then(() => stage.write('closed'));
    await turns();
    stage.handlerMayEnd.open();
    await closing;
    await app.close();
    expect(stage.lines).toEqual(['starts', 'ends', 'closed']);
  });

  it('starts no job when it is closed while it boots', async () => {
    stage.clear();
    stage.handlerMayEnd.open();
    const reached = gate();
    const ready = gate();
    @Injectable()
    class SlowToBoot implements OnApplicationBootstrap {
      constructor() {}
      async onApplicationBootstrap(): Promise<void> {
        reached.open();
        await ready.opened;
      }
    }
    const app = await NestFactory.create(rootOf(SlowToBoot), { logger: false, abortOnError: false });
    const booting = app.init();
    await reached.opened;
    await app.get(Jobs).enqueue('slow', 'job');
    const closing = app.close();
    ready.open();
    await Promise.all([booting, closing]);
    const { pending, active, metrics } = await counts();
    expect(active).toBe(0);
    expect(pending + metrics.completed).toBe(1);
  });

  it('may be closed without having been initialised', async () => {
    await (await compiled(rootOf())).close();
  });

  it('serves nothing when another module fails to boot, and leaves nothing open once it is closed', async () => {
    @Injectable()
    class Broken implements OnApplicationBootstrap {
      onApplicationBootstrap(): never {
        throw new Error('not today');
      }
    }
    const app = apps.keep((await compiled(rootOf(Broken))).createNestApplication({ logger: false }));
    await expect(app.init()).rejects.toThrow('not today');
    expect(app.get(Consumers).queues).toEqual([]);
    await apps.close(app);
  });

  it('may be closed by a handler, whose job then ends as usual', async () => {
    let close: () => Promise<void> = async () => {};
    const closed = gate();
    @Injectable()
    @Processor('slow')
    class Closer {
      @OnJob()
      async run(): Promise<void> {
        await close();
        closed.open();
      }
    }
    const root = moduleOf({ imports: [EchoMqModule.forRoot(server.options())], providers: [Closer] });
    const app = await BOOTS['an application context']!(root);
    close = () => app.close();
    await app.get(Jobs).enqueue('slow', 'close');
    await closed.opened;
    await app.close();
    expect(await counts()).toMatchObject({ active: 0, metrics: { completed: 1 } });
  });
});
