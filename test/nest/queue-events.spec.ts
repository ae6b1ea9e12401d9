import { describe, expect, it } from '@jest/globals';
import { Controller, Injectable, Scope, UseGuards, UseInterceptors } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { of } from 'rxjs';
import {
  defineQueue,
  EchoMqModule,
  EchoRegistrationError,
  type Job,
  JobData,
  Jobs,
  OnJob,
  OnQueueEvent,
  Processor,
  type QueueEvent,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { FaultProxy } from '../support/proxy.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, gate, moduleOf, useApps } from './apps.js';

const told: string[] = [];
const Reports = defineQueue<{ monthly: undefined }>('reports');

@Processor('mail', { attempts: 2, backoff: { type: 'fixed', delayMs: 0 } })
class Mail {
  private readonly greeting = 'mail';

  @OnJob('welcome')
  welcome(job: Job): void {
    job.progress('half');
  }

  @OnJob('fails')
  fails(): never {
    throw new Error('no such address');
  }

  @OnQueueEvent('dead')
  dead({ id, error }: QueueEvent<'dead'>): void {
    told.push(`${this.greeting} dead ${id} ${error.split('\n', 1)[0]}`);
  }

  @OnQueueEvent(['completed', 'progress'])
  async others(event: QueueEvent<'completed' | 'progress'>): Promise<void> {
    told.push(`${this.greeting} ${event.event}`);
  }
}

@Injectable()
class Watcher {
  @OnQueueEvent('mail', 'landed')
  @OnQueueEvent(Reports, ['landed', 'cancelled'])
  landed({ queue, event }: QueueEvent): void {
    told.push(`watcher ${queue} ${event}`);
  }
}

describe('a method that is @OnQueueEvent', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const boot: typeof apps.boot = (...args) => {
    told.length = 0;
    return apps.boot(...args);
  };
  const refused = async (...providers: Parameters<typeof moduleOf>[0]['providers'] & object): Promise<string> => {
    const error = await failure(apps.boot({ providers }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    return error.message;
  };

  it('is called on its instance with the events of its processor, or of the queue it names, from the first job on', async () => {
    const app = await boot({ providers: [Mail, Watcher] });
    const jobs = app.get(Jobs);
    const { id } = await jobs.enqueue('mail', 'fails');
    await until(() => told.length === 2, { what: 'the death' });
    expect(told).toEqual(['watcher mail landed', `mail dead ${id} Error: no such address`]);
    told.length = 0;
    await jobs.enqueue('mail', 'welcome');
    await until(() => told.length === 3, { what: 'the completion' });
    expect(told).toEqual(['watcher mail landed', 'mail progress', 'mail completed']);
    told.length = 0;
    const report = await jobs.enqueue(Reports, 'monthly');
    await jobs.cancel('reports', report.id);
    await until(() => told.length === 2, { what: 'the cancel' });
    expect(told).toEqual(['watcher reports landed', 'watcher reports cancelled']);
    expect(apps.log.log).toEqual(
      expect.arrayContaining([
        "Listening to the events of queue 'mail': dead, completed, progress, landed",
        "Listening to the events of queue 'reports': landed, cancelled",
      ]),
    );
  });

  it('is told of what waited when the app started: it listens before jobs run', async () => {
    const producer = await apps.boot({}, { consume: false });
    const { id } = await producer.get(Jobs).enqueue('mail', 'fails');
    await boot({ providers: [Mail] });
    await until(() => told.length === 1, { what: 'the death' });
    expect(told).toEqual([`mail dead ${id} Error: no such address`]);
  });

  it('is told under consume: false as well, and every process that has it is', async () => {
    await boot({ providers: [Watcher] }, { consume: false });
    const other = await apps.boot({ providers: [Watcher] }, { consume: false });
    await other.get(Jobs).enqueue('mail', 'welcome');
    await until(() => told.length === 2, { what: 'both' });
    expect(told).toEqual(['watcher mail landed', 'watcher mail landed']);
  });

  it('throws or rejects without harm: the log says which method, and the others are called', async () => {
    const calls: string[] = [];
    @Injectable()
    class Careless {
      @OnQueueEvent('mail', 'landed')
      throws(): never {
        throw new Error('thrown');
      }

      @OnQueueEvent('mail', 'landed')
      rejects(): Promise<never> {
        return Promise.reject(new Error('rejected'));
      }

      @OnQueueEvent('mail', 'landed')
      errs(): unknown {
        return of(1).pipe(() => {
          throw new Error('piped');
        });
      }

      @OnQueueEvent('mail', 'landed')
      builds(): object {
        const then = (_done: unknown, fail: (error: Error) => void) => fail(new Error('asked'));
        return { then };
      }

      @OnQueueEvent('mail', 'landed')
      fine({ id }: QueueEvent): void {
        calls.push(id);
      }
    }
    const app = await boot({ providers: [Careless] });
    const { id } = await app.get(Jobs).enqueue('mail', 'welcome');
    await until(() => apps.log.error.length === 4, { what: 'the log' });
    expect(calls).toEqual([id]);
    expect(apps.log.error.map((line) => line.split('\n', 1)[0]).sort()).toEqual([
      `Careless.builds in RootModule threw on 'landed' of job ${id} of queue 'mail': Error: asked`,
      `Careless.errs in RootModule threw on 'landed' of job ${id} of queue 'mail': Error: piped`,
      `Careless.rejects in RootModule threw on 'landed' of job ${id} of queue 'mail': Error: rejected`,
      `Careless.throws in RootModule threw on 'landed' of job ${id} of queue 'mail': Error: thrown`,
    ]);
  });

  it('is waited for at shutdown, before anything that it uses is closed, and not called after that', async () => {
    const [begun, end] = [gate(), gate()];
    const order: string[] = [];
    @Injectable()
    class Database {
      onModuleDestroy(): void {
        order.push('database closed');
      }
    }
    @Injectable()
    class Slow {
      constructor(readonly database: Database) {}

      @OnQueueEvent('mail', 'landed')
      async landed(): Promise<void> {
        begun.open();
        await end.opened;
        order.push('told');
      }
    }
    const app = await boot({ providers: [Database, Slow] });
    await app.get(Jobs).enqueue('mail', 'welcome');
    await begun.opened;
    const closed = app.close();
    const other = await apps.boot({}, { consume: false });
    await other.get(Jobs).enqueue('mail', 'welcome');
    end.open();
    await closed;
    expect(order).toEqual(['told', 'database closed']);
  });

  it('belongs to the instance of its processor, or to the one it names', async () => {
    @Processor('mail', { instance: 'other' })
    class OtherMail {
      @OnJob()
      any(): void {}

      @OnQueueEvent('completed')
      completed(): void {
        told.push('other completed');
      }
    }
    @Injectable()
    class Both {
      @OnQueueEvent('mail', 'landed')
      plain(): void {
        told.push('plain landed');
      }

      @OnQueueEvent('mail', 'landed', { instance: 'other' })
      other(): void {
        told.push('other landed');
      }
    }
    const app = await boot({
      imports: [EchoMqModule.forRoot(apps.options({ name: 'other', prefix: 'other' }))],
      providers: [OtherMail, Both],
    });
    await app.get<Jobs>(Symbol.for('nestjs-echomq:jobs:other')).enqueue('mail', 'job');
    await until(() => told.length === 2, { what: 'the other' });
    expect(told).toEqual(['other landed', 'other completed']);
    told.length = 0;
    await app.get(Jobs).enqueue('mail', 'job');
    await until(() => told.length === 1, { what: 'the plain one' });
    expect(told).toEqual(['plain landed']);
  });

  it('is inherited, once for each class that is provided, and called once where its module is imported twice', async () => {
    abstract class Base {
      @OnQueueEvent('mail', 'landed')
      landed(): void {
        told.push(this.constructor.name);
      }
    }
    @Injectable()
    class One extends Base {}
    @Injectable()
    class Two extends Base {}
    const ones = () => ({ module: moduleOf({}, 'Ones'), providers: [One] });
    const twice = ones();
    const app = await boot({
      imports: [twice, { ...twice }],
      providers: [{ provide: 'two', useFactory: () => new Two() }],
    });
    await app.get(Jobs).enqueue('mail', 'welcome');
    await until(() => told.length >= 2, { what: 'both' });
    await app.close();
    expect(told.sort()).toEqual(['One', 'Two']);
  });

  it('of a module that is loaded late is called from then on', async () => {
    const app = await boot({});
    await app.get(LazyModuleLoader).load(() => moduleOf({ providers: [Watcher] }));
    await until(async () => (await server.client().exists('emq:{mail}:heard')) === 1, { what: 'it to listen' });
    await app.get(Jobs).enqueue('mail', 'welcome');
    await until(() => told.length === 1, { what: 'the event' });
    expect(told).toEqual(['watcher mail landed']);
  });

  it('waits for a server that the app starts without, and holds up nothing', async () => {
    const proxy = await FaultProxy.listen(server.url);
    proxy.refuse();
    try {
      const app = await boot({ providers: [Watcher] }, { onBoot: 'wait', connection: proxy.url });
      proxy.accept();
      const other = await apps.boot({}, { consume: false });
      await until(async () => (await server.client().exists('emq:{mail}:heard')) === 1, { what: 'it to listen' });
      await other.get(Jobs).enqueue('mail', 'welcome');
      await until(() => told.length === 1, { what: 'the event' });
      await app.close();
    } finally {
      await proxy.close();
    }
  });

  it('is refused for an event that does not exist, at the decorator', () => {
    const on = (...args: unknown[]) => {
      class Wrong {
        method(): void {}
      }
      const decorate = (OnQueueEvent as (...args: unknown[]) => MethodDecorator)(...args);
      decorate(Wrong.prototype, 'method', Object.getOwnPropertyDescriptor(Wrong.prototype, 'method')!);
    };
    const known = 'Known are landed, active, progress, completed, retried, dead, stalled, cancelled';
    const place = '@OnQueueEvent on Wrong.method';
    const rejects = (args: unknown[], message: string) =>
      expect(() => on(...args)).toThrow(expect.objectContaining({ name: 'EchoRegistrationError', message }));
    rejects(['mail', 'died'], `${place}: there is no event "died". ${known}`);
    rejects(
      ['mail'],
      `${place}: there is no event "mail". ${known}; for another queue write @OnQueueEvent('queue', 'event')`,
    );
    rejects(
      [],
      `${place}: there is no event undefined. ${known}; for another queue write @OnQueueEvent('queue', 'event')`,
    );
    rejects(['mail', []], `${place} names no event`);
    for (const args of [
      ['dead', 'retried'],
      ['mail', 'dead', 'retried'],
      ['mail', 'dead', {}, 5],
    ]) {
      expect(() => on(...args)).toThrow(
        `${place}: several events are an array, as in @OnQueueEvent(['dead', 'retried'])`,
      );
    }
    expect(() => on(defineQueue('dead'), 'retried')).not.toThrow();
    rejects(
      [undefined, 'dead'],
      `${place} got undefined for its queue: do the file that defines it and this one import each other?`,
    );
    rejects(['a{b}', 'dead'], `${place}: queue name "a{b}" holds a brace or a control character`);
    rejects([7, 'dead'], `${place}: queue name must be a string, or a queue made by defineQueue(), got 7`);
    rejects(['mail', 'dead', { instance: '' }], `${place}: 'instance' is the name of an EchoMqModule.forRoot, got ""`);
    expect(() => on('mail', 'dead', { queue: 'x' })).toThrow(/unknown|no option/);
    class Static {
      static method(): void {}
      other(): void {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Static, 'method')!;
    expect(() => OnQueueEvent('mail', 'dead')(Static, 'method', descriptor)).toThrow(
      '@OnQueueEvent on Static.method: a static method has no instance',
    );
  });

  it('is refused at boot where it has no queue', async () => {
    @Injectable()
    class Queueless {
      @OnQueueEvent('dead')
      dead(): void {}
    }
    expect(await refused(Queueless)).toBe(
      "Queueless.dead in RootModule is @OnQueueEvent('dead') of no queue: name it, @OnQueueEvent('queue', 'dead'), or make the class a @Processor",
    );
  });

  it('is refused at boot where it has no instance of its own', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @OnQueueEvent('mail', 'dead')
      dead(): void {}
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient {
      @OnQueueEvent('mail', 'dead')
      dead(): void {}
    }
    expect(await refused(Scoped)).toContain(
      'Scoped.dead in RootModule is @OnQueueEvent, but its class is request-scoped',
    );
    expect(await refused(Transient)).toContain(
      'Transient.dead in RootModule is @OnQueueEvent, but its class is transient',
    );
    @Controller()
    class Web {
      @OnQueueEvent('mail', 'dead')
      dead(): void {}
    }
    const error = await failure(apps.boot({ controllers: [Web] }));
    expect(error.message).toContain('Web is a controller of RootModule; events are told to providers');
  });

  it('is refused at boot where something stands on it that would do nothing, or it is a handler too', async () => {
    const guard = { canActivate: () => false };
    @Processor('mail')
    @UseGuards(guard)
    class Guarded {
      @OnJob()
      any(): void {}

      @OnQueueEvent('dead')
      fine(): void {}
    }
    await apps.boot({ providers: [Guarded] });
    @Injectable()
    class Wrapped {
      @OnQueueEvent('mail', 'dead')
      @UseInterceptors({ intercept: () => of(1) })
      dead(): void {}
    }
    expect(await refused(Wrapped)).toContain(
      'Wrapped.dead in RootModule is @OnQueueEvent, and Object would not act on it',
    );
    @Injectable()
    @UseGuards(guard)
    class WhollyGuarded {
      @OnQueueEvent('mail', 'dead')
      dead(): void {}
    }
    expect(await refused(WhollyGuarded)).toContain(
      'WhollyGuarded.dead in RootModule is @OnQueueEvent, and Object would not act',
    );
    @Injectable()
    class Decorated {
      @OnQueueEvent('mail', 'dead')
      dead(@JobData() _data: QueueEvent): void {}
    }
    expect(await refused(Decorated)).toContain('its parameter takes no decorator');
    @Processor('mail')
    class Both {
      @OnJob('welcome')
      @OnQueueEvent('dead')
      both(_it: object): void {}
    }
    expect(await refused(Both)).toBe('Both.both in RootModule is both @OnJob and @OnQueueEvent: make them two methods');
  });

  it('is refused at boot where it is overridden without a mark, or names an instance that is not there', async () => {
    class Base {
      @OnQueueEvent('mail', ['dead', 'retried'])
      told(): void {}
    }
    @Injectable()
    class Overrides extends Base {
      override told(): void {}
    }
    expect(await refused(Overrides)).toContain(
      "Overrides.told overrides Base.told, which is @OnQueueEvent('mail', ['dead', 'retried']), without a decorator of its own",
    );
    @Injectable()
    class Elsewhere {
      @OnQueueEvent('mail', 'dead', { instance: 'nowhere' })
      dead(): void {}
    }
    expect(await refused(Elsewhere)).toBe(
      "Elsewhere.dead in RootModule is @OnQueueEvent('mail', 'dead'), but no EchoMqModule.forRoot with name: 'nowhere' is imported",
    );
  });
});
