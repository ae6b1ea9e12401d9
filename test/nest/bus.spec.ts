import { describe, expect, it } from '@jest/globals';
import { Inject, Injectable } from '@nestjs/common';
import { firstValueFrom, lastValueFrom, map, type Observable, take, toArray } from 'rxjs';
import { Bus, EchoMqModule, getBusToken, InjectBus, Jobs, OnJob, Processor, type QueueEvent } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { gate, useApps } from './apps.js';

@Processor('mail', { attempts: 2, backoff: { type: 'fixed', delayMs: 0 } })
class Mail {
  @OnJob('welcome')
  welcome(): string {
    return 'sent';
  }

  @OnJob('fails')
  fails(): never {
    throw new Error('no such address');
  }
}

describe('the Bus', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const subscribers = async () => Number((await server.client().pubsub('NUMSUB', 'emq:{mail}:events'))[1]);
  const heard = (times = 1) => until(async () => (await subscribers()) === times, { what: `${times} subscriptions` });

  it('is the events of a queue as an Observable, all of them or those that are named', async () => {
    const app = await apps.boot({ providers: [Mail] });
    const bus = app.get(Bus);
    const all: QueueEvent[] = [];
    const some: QueueEvent<'dead' | 'retried'>[] = [];
    bus.on('mail').subscribe((event) => all.push(event));
    bus.on('mail', 'dead', 'retried').subscribe((event) => some.push(event));
    await heard();
    const { id } = await app.get(Jobs).enqueue('mail', 'fails');
    await until(() => some.length === 2, { what: 'the death' });
    expect(all.map(({ event }) => event)).toEqual(['landed', 'active', 'retried', 'active', 'dead']);
    expect(some).toEqual([
      { queue: 'mail', event: 'retried', id, attempts: 1, error: expect.stringContaining('no such address') },
      { queue: 'mail', event: 'dead', id, attempts: 2, error: expect.stringContaining('no such address') },
    ]);
  });

  it('has one subscription for a queue, from the first observer to the last', async () => {
    const app = await apps.boot({ providers: [Mail] });
    const bus = app.get(Bus);
    expect(await subscribers()).toBe(0);
    const observed = bus.on('mail', 'landed');
    const observers = [observed.subscribe(), observed.subscribe(), bus.on('mail').subscribe()];
    await heard();
    const first = firstValueFrom(bus.on('mail', 'landed'));
    await app.get(Jobs).enqueue('mail', 'welcome');
    expect((await first).event).toBe('landed');
    for (const observer of observers.slice(1)) observer.unsubscribe();
    expect(await subscribers()).toBe(1);
    observers[0]!.unsubscribe();
    await heard(0);
    const again = firstValueFrom(bus.on('mail', 'completed').pipe(map(({ result }) => result)));
    await heard();
    await app.get(Jobs).enqueue('mail', 'welcome');
    expect(await again).toBe('sent');
  });

  it('keeps nothing of a queue that nobody observes any more, and can be observed again', async () => {
    const bus = (await apps.boot({ providers: [Mail] })).get(Bus);
    const kept = Reflect.get(bus, 'shared') as Map<string, unknown>;
    const tenants = Array.from({ length: 100 }, (_, n) => bus.on(`tenant-${n}`, 'landed'));
    expect(kept.size).toBe(0);
    for (let times = 0; times < 2; times++) {
      const observers = [...tenants, ...tenants].map((tenant) => tenant.subscribe());
      expect(kept.size).toBe(100);
      for (const observer of observers) observer.unsubscribe();
      expect(kept.size).toBe(0);
    }
  });

  it('can be observed in a constructor, and hears what an onModuleInit enqueues', async () => {
    @Injectable()
    class Early {
      readonly landed: Promise<QueueEvent>;
      constructor(
        bus: Bus,
        private readonly jobs: Jobs,
      ) {
        this.landed = firstValueFrom(bus.on('mail', 'landed'));
      }

      async onModuleInit(): Promise<void> {
        await heard();
        await this.jobs.enqueue('mail', 'welcome');
      }
    }
    const app = await apps.boot({ providers: [Early] });
    expect(await app.get(Early).landed).toMatchObject({ queue: 'mail', event: 'landed' });
  });

  it('leaves nothing open when the boot fails', async () => {
    @Injectable()
    class Early {
      constructor(bus: Bus) {
        bus.on('mail').subscribe();
      }

      onModuleInit(): never {
        throw new Error('no');
      }
    }
    await expect(
      apps.boot({ providers: [Early] }, { connection: 'redis://127.0.0.1:1', connectTimeoutMs: 50 }),
    ).rejects.toThrow();
  });

  it('completes at shutdown, behind the jobs that are still running', async () => {
    const [running, end] = [gate(), gate()];
    @Processor('mail')
    class Slow {
      @OnJob('welcome')
      async welcome(): Promise<void> {
        running.open();
        await end.opened;
      }
    }
    const app = await apps.boot({ providers: [Slow] });
    const bus = app.get(Bus);
    const events = lastValueFrom(
      bus.on('mail').pipe(
        map(({ event }) => event),
        toArray(),
      ),
    );
    const observed: Observable<QueueEvent> = bus.on('mail');
    await heard();
    await app.get(Jobs).enqueue('mail', 'welcome');
    await running.opened;
    const closed = app.close();
    end.open();
    await closed;
    expect((await events).slice(0, 2)).toEqual(['landed', 'active']);
    expect(await lastValueFrom(observed.pipe(toArray()))).toEqual([]); // and of one that comes later
  });

  it('is there in a process that consumes nothing, for queues that it does not serve', async () => {
    const worker = await apps.boot({ providers: [Mail] });
    const web = await apps.boot({}, { consume: false });
    const results = lastValueFrom(
      web
        .get(Bus)
        .on('mail', 'completed')
        .pipe(
          take(2),
          map(({ result }) => result),
          toArray(),
        ),
    );
    await heard();
    await worker.get(Jobs).enqueueMany('mail', [{ name: 'welcome' }, { name: 'welcome' }]);
    expect(await results).toEqual(['sent', 'sent']);
  });

  it('of a named instance is injected by its name', async () => {
    @Injectable()
    class Listens {
      constructor(
        @InjectBus() readonly plain: Bus,
        @InjectBus('other') readonly other: Bus,
        @Inject(getBusToken('other')) readonly same: Bus,
      ) {}
    }
    const app = await apps.boot({
      imports: [EchoMqModule.forRoot(apps.options({ name: 'other', prefix: 'other' }))],
      providers: [Listens],
    });
    const { plain, other, same } = app.get(Listens);
    expect(plain).toBe(app.get(Bus));
    expect(other).toBe(same);
    expect(other).not.toBe(plain);
    const landed = firstValueFrom(other.on('mail'));
    await until(async () => (await server.client().pubsub('CHANNELS', 'other:{mail}:events')).length === 1, {
      what: 'it to listen',
    });
    await app.get(Jobs).enqueue('mail', 'welcome');
    await app.get<Jobs>(Symbol.for('nestjs-echomq:jobs:other')).enqueue('mail', 'other');
    expect(await landed).toMatchObject({ event: 'landed' });
    expect(await server.client().exists('other:{mail}:heard')).toBe(1);
  });

  it('refuses what is no queue and no event at once', async () => {
    const app = await apps.boot({});
    const bus = app.get(Bus);
    expect(() => bus.on('a{b}')).toThrow(expect.objectContaining({ name: 'EchoArgumentError' }));
    expect(() => bus.on('mail', 'died' as 'dead')).toThrow('there is no event "died". Known are landed, active, ');
  });
});
