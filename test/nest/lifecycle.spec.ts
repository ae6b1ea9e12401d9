import { describe, expect, it } from '@jest/globals';
import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  Consumers,
  EchoConfigError,
  EchoMq,
  EchoMqModule,
  EchoTimeoutError,
  type Job,
  Jobs,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, gate, moduleOf, turns, useApps } from './apps.js';

let started: string[] = [];
let mayEnd = gate();

@Processor('slow', { concurrency: 5, drainMs: 5000 })
class Slow {
  @OnJob()
  async run({ name }: Job): Promise<void> {
    started.push(name);
    await mayEnd.opened;
  }
}

const reset = () => {
  started = [];
  mayEnd = gate();
};

describe('an app with jobs', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it("starts none before every other module's bootstrap is over", async () => {
    reset();
    mayEnd.open();
    const producer = await apps.boot({}, { consume: false });
    await producer.get(Jobs).enqueue('slow', 'early');
    const ready = gate();
    const reached = gate();
    @Injectable()
    class SlowToBoot implements OnApplicationBootstrap {
      async onApplicationBootstrap(): Promise<void> {
        reached.open();
        await ready.opened;
      }
    }
    const booting = apps.boot({ imports: [moduleOf({ providers: [Slow] })], providers: [SlowToBoot] });
    await reached.opened;
    await turns();
    expect(started).toEqual([]);
    expect(await producer.get(Jobs).counts('slow')).toMatchObject({ pending: 1, active: 0 });
    ready.open();
    await booting;
    await until(() => started.length === 1, { what: 'the job to run' });
  });

  it('may enqueue in any hook, from the first module init to the last shutdown', async () => {
    @Injectable()
    class Talker implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
      constructor(private readonly jobs: Jobs) {}
      onModuleInit = () => this.say('init');
      onApplicationBootstrap = () => this.say('bootstrap');
      onModuleDestroy = () => this.say('destroy');
      beforeApplicationShutdown = () => this.say('before');
      onApplicationShutdown = () => this.say('shutdown');

      private async say(name: string): Promise<void> {
        // Nest calls the hooks again when the app is closed again, which the end of the test does.
        if (!closed) await this.jobs.enqueue('talk', name);
      }
    }
    let closed = false;
    const feature = moduleOf({ providers: [Talker] });
    const app = await apps.boot({ imports: [moduleOf({ imports: [feature] })] });
    await app.close();
    closed = true;
    const reader = await apps.boot({}, { consume: false });
    const { jobs } = await reader.get(Jobs).list('talk', 'pending');
    expect(jobs.map(({ name }) => name)).toEqual(['init', 'bootstrap', 'destroy', 'before', 'shutdown']);
  });

  it('fails to boot when the server cannot be reached, and leaves nothing open', async () => {
    const nowhere = { host: '127.0.0.1', port: 1 };
    const error = await failure(apps.boot({ providers: [Slow] }, { connection: nowhere, connectTimeoutMs: 50 }));
    expect(error).toBeInstanceOf(EchoTimeoutError);
    expect(error.message).toContain('ECONNREFUSED');
  });

  it('fails to boot, and leaves nothing open, when a processor and a consumer made by hand want one queue', async () => {
    @Injectable()
    class ByHand implements OnApplicationBootstrap {
      constructor(private readonly echo: EchoMq) {}
      onApplicationBootstrap(): void {
        this.echo.consume('slow', {}, () => undefined);
      }
    }
    const error = await failure(apps.boot({ providers: [Slow, ByHand] }));
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toContain("queue 'slow' has a consumer in this process already");
  });

  it('leaves nothing open when another module fails to boot, once it is closed', async () => {
    @Injectable()
    class Broken implements OnApplicationBootstrap {
      onApplicationBootstrap(): never {
        throw new Error('not today');
      }
    }
    const module = await Test.createTestingModule({
      imports: [EchoMqModule.forRoot(apps.options())],
      providers: [Slow, Broken],
    })
      .setLogger(apps.logger)
      .compile();
    const app = apps.keep(module.createNestApplication());
    expect((await failure(app.init())).message).toBe('not today');
    expect(app.get(Consumers).queues).toEqual([]);
    await app.close();
  });

  it('may be closed without having been initialised', async () => {
    const module = await Test.createTestingModule({
      imports: [EchoMqModule.forRoot(apps.options())],
      providers: [Slow],
    })
      .setLogger(apps.logger)
      .compile();
    await module.close();
  });

  it('may be closed while it boots: no job starts then', async () => {
    reset();
    mayEnd.open();
    const producer = await apps.boot({}, { consume: false });
    await producer.get(Jobs).enqueue('slow', 'x');
    const ready = gate();
    const reached = gate();
    @Injectable()
    class SlowToBoot implements OnApplicationBootstrap {
      async onApplicationBootstrap(): Promise<void> {
        reached.open();
        await ready.opened;
      }
    }
    const root = moduleOf({ imports: [EchoMqModule.forRoot(apps.options())], providers: [Slow, SlowToBoot] });
    const app = await NestFactory.create(root, { logger: apps.logger, abortOnError: false });
    const booting = app.init();
    await reached.opened;
    const closing = app.close();
    ready.open();
    await Promise.all([booting, closing]);
    const left = await producer.get(Jobs).counts('slow');
    expect(left.active).toBe(0);
    expect(left.pending + left.metrics.completed).toBe(1);
  });

  it('waits for running handlers when it closes, starts none of the others, and closes once', async () => {
    reset();
    const app = await apps.boot({ providers: [Slow] }, { queues: { slow: { concurrency: 2 } } });
    const jobs = app.get(Jobs);
    await jobs.enqueueMany('slow', [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    await until(() => started.length === 2, { what: 'two handlers' });
    let closed = false;
    const closing = Promise.all([app.close(), app.close()]).then(() => {
      closed = true;
    });
    await turns();
    expect(closed).toBe(false);
    mayEnd.open();
    await closing;
    await app.close();
    const reader = await apps.boot({}, { consume: false });
    const { pending, active, metrics } = await reader.get(Jobs).counts('slow');
    expect({ pending, active, completed: metrics.completed }).toEqual({ pending: 1, active: 0, completed: 2 });
    expect(started).toEqual(['a', 'b']);
  });

  it('may be closed by a handler, which then ends as usual', async () => {
    let close: () => Promise<void> = async () => {};
    const closed = gate();
    @Processor('last')
    class Last {
      @OnJob('close')
      async run(): Promise<string> {
        await close();
        closed.open();
        return 'closed';
      }
    }
    const app = await apps.boot({ providers: [Last] }, { queues: { last: { keepMs: 60_000 } } });
    close = () => app.close();
    const { id } = await app.get(Jobs).enqueue('last', 'close');
    await closed.opened;
    const reader = await apps.boot({}, { consume: false });
    const job = await until(
      async () => {
        const view = await reader.get(Jobs).get('last', id);
        return view?.state === 'done' ? view : undefined;
      },
      { what: 'the closing job to be completed' },
    );
    expect(job.result?.toString()).toBe('"closed"');
  });

  it('goes on when a listener and the log hear of trouble', async () => {
    const app = await apps.boot({ providers: [Slow] });
    await server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(() => apps.log.error.length > 0, { what: 'the lost connection to be logged' });
    expect(apps.log.error[0]).toContain('ECHO_UNREACHABLE');
    reset();
    mayEnd.open();
    await app.get(Jobs).enqueue('slow', 'after');
    await until(() => started.length === 1, { what: 'the job after the reconnect' });
  });
});
