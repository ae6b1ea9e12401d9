import { describe, expect, it } from '@jest/globals';
import * as z from 'zod';
import {
  Consumers,
  Discard,
  defineQueue,
  InvalidData,
  type Job,
  Jobs,
  OnJob,
  Processor,
  Snooze,
} from '../../../lib/index.js';
import { expectInvariants } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { failure, gate } from '../apps.js';
import { useKits } from './kits.js';

let ran: string[] = [];

@Processor('mail')
class Mail {
  constructor(private readonly jobs: Jobs) {}

  @OnJob('welcome')
  welcome({ data }: Job<string>): string {
    ran.push(`welcome ${data}`);
    return `dear ${data}`;
  }

  @OnJob('invite')
  async invite({ data }: Job<string[]>): Promise<void> {
    ran.push('invite');
    for (const to of data) await this.jobs.enqueue('mail', 'welcome', to);
  }
}

@Processor('reports')
class Reports {
  @OnJob('daily')
  daily({ data }: Job<string>): void {
    ran.push(`daily ${data}`);
  }
}

describe('kit.drain()', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  const boot = () => {
    ran = [];
    return kits.boot({ providers: [Mail, Reports] });
  };

  it('runs what is due in every queue, queue by queue, in the order it would be claimed', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('reports', 'daily', 'mon');
    await jobs.enqueue('mail', 'welcome', 'ada');
    await jobs.enqueue('mail', 'welcome', 'bob', { priority: -1 });
    expect(ran).toEqual([]);
    expect(await kit.drain()).toEqual({
      ...{ completed: 3, failed: 0, dead: 0, snoozed: 0, waiting: 0, unhandled: 0, lost: 0, errors: [] },
    });
    expect(ran).toEqual(['welcome bob', 'welcome ada', 'daily mon']);
    expect((await jobs.counts('mail')).metrics).toMatchObject({ enqueued: 2, completed: 2 });
  });

  it('runs what its jobs enqueue in the next round, until nothing is due', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('mail', 'invite', ['ada', 'bob']);
    await jobs.enqueue('mail', 'welcome', 'first');
    expect(await kit.drain()).toMatchObject({ completed: 4 });
    expect(ran).toEqual(['invite', 'welcome first', 'welcome ada', 'welcome bob']);
  });

  it('runs with recursive: false what is there now, and leaves what comes of it', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('mail', 'invite', ['ada', 'bob']);
    expect(await kit.drain({ recursive: false })).toMatchObject({ completed: 1 });
    await kit.assertEnqueued({ queue: 'mail', name: 'welcome', count: 2 });
    expect(await kit.drain({ recursive: false })).toMatchObject({ completed: 2 });
    expect(await kit.drain({ recursive: false })).toMatchObject({ completed: 0 });
  });

  it('runs more than one claim can carry, each once and in order', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueueMany(
      'mail',
      Array.from({ length: 1100 }, (_, i) => ({ name: 'welcome', data: `${i}` })),
    );
    expect(await kit.drain({ limit: 1100 })).toMatchObject({ completed: 1100 });
    expect(ran).toEqual(Array.from({ length: 1100 }, (_, i) => `welcome ${i}`));
  });

  it('runs jobs that are too large for one claim in one round too', async () => {
    const { kit, jobs } = await boot();
    const large = 'x'.repeat(600_000);
    await jobs.enqueueMany('mail', new Array(9).fill({ name: 'welcome', data: large }));
    expect(await kit.drain({ recursive: false })).toMatchObject({ completed: 9 });
  });

  it('takes one queue, by name, and refuses one that nobody serves', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('reports', 'daily', 'mon');
    await jobs.enqueue('mail', 'welcome', 'ada');
    await kit.drain({ queue: 'reports' });
    expect(ran).toEqual(['daily mon']);
    const error = await failure(kit.drain({ queue: 'male' }));
    expect(error.message).toBe("no processor of this app serves queue 'male'. Served are 'mail', 'reports'");
  });

  it('leaves what waits for its time and what is paused', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('mail', 'welcome', 'late', { delayMs: 60_000 });
    await jobs.pause('reports');
    await jobs.enqueue('reports', 'daily', 'mon');
    expect(await kit.drain()).toMatchObject({ completed: 0 });
    expect(ran).toEqual([]);
    await jobs.resume('reports');
    expect(await kit.drain()).toMatchObject({ completed: 1 });
  });

  it('refuses options that make no sense', async () => {
    const { kit } = await boot();
    const refused = async (options: object) => (await failure(kit.drain(options))).message;
    expect(await refused({ queues: 'mail' })).toContain("drain options: unknown option 'queues'");
    expect(await refused({ limit: 0 })).toBe('limit must be a whole number from 1, got 0');
    expect(await refused({ scheduled: 1 })).toContain("option 'scheduled' must be true or false");
    expect(await refused({ instance: 'other' })).toContain("no EchoMqModule with name 'other' in this app");
  });
});

@Processor('ends', { attempts: 3, backoff: { type: 'fixed', delayMs: 1000 }, keepMs: 60_000, timeoutMs: 50 })
class Ends {
  readonly attempts: number[] = [];
  stopped: unknown;

  constructor(private readonly jobs: Jobs) {}

  @OnJob('result')
  result(): { a: Date } {
    return { a: new Date(0) };
  }

  @OnJob('failure')
  async failure({ attempt }: Job): Promise<void> {
    this.attempts.push(attempt);
    throw new Error(`no luck ${attempt}`);
  }

  @OnJob('burial')
  burial(): void {
    throw new Discard('not for us');
  }

  @OnJob('snooze')
  snooze(): void {
    throw new Snooze(60_000);
  }

  @OnJob('sleep')
  async sleep({ signal }: Job): Promise<void> {
    this.stopped = await new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(signal.reason.why));
    });
  }

  @OnJob('unkeepable')
  unkeepable(): bigint {
    return 1n;
  }

  @OnJob('suicide')
  async suicide({ queue }: Job): Promise<void> {
    await this.jobs.obliterate(queue, { force: true });
  }
}

describe('a job that kit.drain() runs', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  const boot = () => kits.boot({ providers: [Ends] });

  it('is kept with its result for keepMs', async () => {
    const { kit, jobs } = await boot();
    const { id } = await jobs.enqueue('ends', 'result');
    expect(await kit.drain()).toMatchObject({ completed: 1 });
    const job = await jobs.get('ends', id);
    expect(job).toMatchObject({ state: 'done', attempts: 1 });
    expect(job?.result?.toString()).toBe('{"a":"1970-01-01T00:00:00.000Z"}');
  });

  it('that fails waits for its backoff, and is told with its error', async () => {
    const { kit, jobs, module } = await boot();
    const { id } = await jobs.enqueue('ends', 'failure', { a: 1 });
    const result = await kit.drain();
    expect(result).toMatchObject({ completed: 0, failed: 1, dead: 0 });
    expect(result.errors).toEqual([
      { queue: 'ends', id, name: 'failure', data: { a: 1 }, attempt: 1, error: new Error('no luck 1'), dead: false },
    ]);
    expect(module.get(Ends).attempts).toEqual([1]);
    expect(await jobs.get('ends', id)).toMatchObject({ state: 'scheduled', attempts: 1 });
    expect((await jobs.get('ends', id))?.lastError).toContain('no luck 1');
  });

  it('that fails is tried under scheduled: true until it is dead, each attempt told', async () => {
    const { kit, jobs, module } = await boot();
    const { id } = await jobs.enqueue('ends', 'failure');
    const result = await kit.drain({ scheduled: true });
    expect(result).toMatchObject({ failed: 2, dead: 1 });
    expect(result.errors.map(({ attempt, dead }) => [attempt, dead])).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ]);
    expect(module.get(Ends).attempts).toEqual([1, 2, 3]);
    expect(await jobs.get('ends', id)).toMatchObject({ state: 'dead', attempts: 3 });
  });

  it('goes by the options it came with', async () => {
    const { kit, jobs, module } = await boot();
    await jobs.enqueue('ends', 'failure', null, { attempts: 2, backoff: { type: 'fixed', delayMs: 0 } });
    expect(await kit.drain()).toMatchObject({ failed: 1, dead: 1 });
    expect(module.get(Ends).attempts).toEqual([1, 2]);
  });

  it('is buried by Discard and put back by Snooze, uncharged', async () => {
    const { kit, jobs } = await boot();
    const buried = await jobs.enqueue('ends', 'burial');
    const snoozed = await jobs.enqueue('ends', 'snooze');
    expect(await kit.drain()).toMatchObject({
      dead: 1,
      snoozed: 1,
      failed: 0,
      errors: [{ name: 'burial', dead: true }],
    });
    expect(await jobs.get('ends', buried.id)).toMatchObject({ state: 'dead', lastError: 'not for us' });
    expect(await jobs.get('ends', snoozed.id)).toMatchObject({ state: 'scheduled', attempts: 1, uncharged: 1 });
  });

  it('that nobody handles is put back uncharged, and counted once however much time passes', async () => {
    const { kit, jobs } = await boot();
    const { id } = await jobs.enqueue('ends', 'stranger');
    await jobs.enqueue('ends', 'failure', null, { backoff: { type: 'fixed', delayMs: 60_000 } });
    expect(await kit.drain({ scheduled: true })).toMatchObject({ unhandled: 1, failed: 2, dead: 1 });
    const job = await jobs.get('ends', id);
    expect(job).toMatchObject({ state: 'scheduled', lastError: undefined });
    expect(job!.attempts - job!.uncharged).toBe(0);
  });

  it('that takes too long fails, its signal fires and what it does then no longer counts', async () => {
    const { kit, jobs, module } = await boot();
    await jobs.enqueue('ends', 'sleep');
    const result = await kit.drain();
    expect(result).toMatchObject({ completed: 0, failed: 1 });
    expect(result.errors[0]?.error).toEqual(new Error('the handler took longer than 50 ms'));
    expect(module.get(Ends).stopped).toBe('timeout');
  });

  it('whose result cannot be serialised has failed', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('ends', 'unkeepable');
    const { failed, errors } = await kit.drain();
    expect(failed).toBe(1);
    expect(errors).toMatchObject([{ error: { message: expect.stringContaining('result cannot be serialised') } }]);
  });

  it('that is gone when it ends is counted as lost', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('ends', 'suicide');
    expect(await kit.drain()).toMatchObject({ completed: 0, lost: 1 });
  });

  it('is told to those who listen to its queue, as if its consumer had run it', async () => {
    const heard: string[] = [];
    class Alerts {
      constructor(consumers: Consumers) {
        consumers.on('ends', 'dead', ({ name, reason }) => heard.push(`dead ${name} ${reason}`));
      }
    }
    const { kit, jobs, module } = await kits.boot({
      providers: [
        Ends,
        { provide: Alerts, inject: [Consumers], useFactory: (consumers: Consumers) => new Alerts(consumers) },
      ],
    });
    await jobs.enqueueMany('ends', [{ name: 'result' }, { name: 'burial' }, { name: 'stranger' }]);
    await kit.drain();
    module.get(Consumers).on('ends', 'completed', ({ name }) => heard.push(`completed ${name}`));
    await jobs.enqueue('ends', 'result');
    await kit.drain();
    expect(heard).toEqual(['dead burial not for us', 'completed result']);
  });

  it('is validated by the schemas of its queue', async () => {
    const Typed = defineQueue('typed', { welcome: z.object({ to: z.string() }) });
    @Processor(Typed)
    class Welcomes {
      @OnJob('welcome')
      welcome(): void {}
    }
    const { kit, jobs } = await kits.boot({ providers: [Welcomes] });
    await jobs.enqueue(Typed, 'welcome', { to: 'ada' });
    await jobs.enqueue('typed', 'welcome', { to: 1 });
    const { completed, dead, errors } = await kit.drain();
    expect({ completed, dead }).toEqual({ completed: 1, dead: 1 });
    expect(errors[0]!.error).toBeInstanceOf(InvalidData);
  });

  it('leaves the queue as the wire wants it', async () => {
    const { kit, jobs } = await boot();
    const names = ['result', 'failure', 'burial', 'snooze', 'stranger', 'sleep', 'unkeepable'];
    await jobs.enqueueMany(
      'ends',
      names.map((name) => ({ name })),
    );
    await kit.drain();
    const dump = await expectInvariants(server.client(), 'ends', { prefix: kit.prefix });
    expect(dump.active).toBeUndefined();
    expect(dump.hungry).toBeUndefined();
    await kit.drain({ scheduled: true, limit: 20 }).catch(() => undefined);
    await expectInvariants(server.client(), 'ends', { prefix: kit.prefix });
  });
});

describe('kit.drain() does not go on for ever', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  @Processor('loop')
  class Loop {
    constructor(private readonly jobs: Jobs) {}

    @OnJob('again')
    again(): void {
      throw new Snooze(3_600_000);
    }

    @OnJob('offspring')
    async offspring(): Promise<void> {
      await this.jobs.enqueue('loop', 'offspring');
    }
  }

  it('but stops at the limit when a job snoozes again and again', async () => {
    const { kit, jobs } = await kits.boot({ providers: [Loop] });
    await jobs.enqueue('loop', 'again');
    const error = await failure(kit.drain({ scheduled: true, limit: 5 }));
    expect(error.message).toBe(
      'drain: more than 5 runs. So far 0 completed, 0 failed, 0 dead, 5 snoozed; left are jobs ' +
        "scheduled in 'loop'. Do they enqueue or snooze themselves for ever? If not, raise option 'limit'",
    );
    expect(await jobs.counts('loop')).toMatchObject({ active: 0, scheduled: 1 });
  });

  it('but stops at the limit when jobs enqueue others', async () => {
    const { kit, jobs } = await kits.boot({ providers: [Loop] });
    await jobs.enqueueMany('loop', [{ name: 'offspring' }, { name: 'offspring' }]);
    const error = await failure(kit.drain({ limit: 5 }));
    expect(error.message).toContain("So far 5 completed, 0 failed, 0 dead, 0 snoozed; left are jobs pending in 'loop'");
    expect(await jobs.counts('loop')).toMatchObject({ active: 0, pending: 2 });
  });

  it('and runs nothing under recursive: false when there is more than the limit', async () => {
    const { kit, jobs } = await kits.boot({ providers: [Loop] });
    await jobs.enqueueMany('loop', [{ name: 'offspring' }, { name: 'offspring' }, { name: 'offspring' }]);
    expect((await failure(kit.drain({ recursive: false, limit: 2 }))).message).toContain('So far 0 completed');
    expect(await jobs.counts('loop')).toMatchObject({ active: 0, pending: 3 });
    expect(await kit.drain({ recursive: false, limit: 3 })).toMatchObject({ completed: 3 });
  });

  it('and takes exactly as many as the limit without a word', async () => {
    const { kit, jobs } = await kits.boot({ providers: [Mail, Reports] });
    await jobs.enqueueMany('reports', [{ name: 'daily' }, { name: 'daily' }]);
    expect(await kit.drain({ limit: 2 })).toMatchObject({ completed: 2 });
  });
});

describe('kit.drain({ throwOnFailure: true })', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  it('throws what the handler threw, and puts back what is behind it', async () => {
    const { kit, jobs } = await kits.boot({ providers: [Ends] });
    await jobs.enqueueMany('ends', [{ name: 'result' }, { name: 'failure' }, { name: 'result' }, { name: 'result' }]);
    const error = await failure(kit.drain({ throwOnFailure: true }));
    expect(error.message).toBe('no luck 1');
    expect(error.stack).toContain('drain.spec.ts');
    expect(await jobs.counts('ends')).toMatchObject({ pending: 2, active: 0, scheduled: 1 });
    expect(await kit.drain({ throwOnFailure: true })).toMatchObject({ completed: 2 });
  });
});

describe('kit.drain() beside others', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  it('is refused where consumers run by themselves', async () => {
    const { kit } = await kits.boot({ providers: [Mail] }, {}, { autoStart: true });
    const error = await failure(kit.drain());
    expect(error.message).toBe(
      "queue 'mail' has a consumer running (autoStart: true, or consumers.start()), which takes its jobs by itself: " +
        'wait with kit.idle() instead of draining',
    );
  });

  it('is refused while another runs, as inside a handler', async () => {
    let inside: Error | undefined;
    @Processor('nested')
    class Nested {
      @OnJob()
      async nest(): Promise<void> {
        inside = await failure(kit.drain());
      }
    }
    const { kit, jobs } = await kits.boot({ providers: [Nested] });
    await jobs.enqueue('nested', 'x');
    expect(await kit.drain()).toMatchObject({ completed: 1 });
    expect(inside?.message).toContain('kit.drain() is running already');
    expect(await kit.drain()).toMatchObject({ completed: 0 });
  });

  it('ends with the app: the running handler is waited for, nothing else starts', async () => {
    const seen: string[] = [];
    const started = gate();
    const go = gate();
    @Processor('last')
    class Last {
      @OnJob()
      async last({ data }: Job<number>): Promise<void> {
        started.open();
        await go.opened;
        seen.push(`job ${data}`);
      }

      onModuleDestroy(): void {
        seen.push('destroyed');
      }
    }
    const kitted = await kits.boot({ providers: [Last] });
    await kitted.jobs.enqueueMany('last', [
      { name: 'x', data: 1 },
      { name: 'x', data: 2 },
    ]);
    const draining = failure(kitted.kit.drain());
    await started.opened;
    const closing = kitted.module.close();
    go.open();
    expect((await draining).message).toContain("the app is closing: no job of queue 'last' is run");
    await closing;
    expect(seen).toEqual(['job 1', 'destroyed']);
    expect(await server.client().keys('*')).toEqual([]);
  });

  it('runs handlers in the context of the engine, not of the test', async () => {
    const { AsyncLocalStorage } = await import('node:async_hooks');
    const store = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    @Processor('context')
    class Context {
      @OnJob()
      look(): void {
        seen.push(store.getStore());
      }
    }
    const { kit, jobs } = await kits.boot({ providers: [Context] });
    await store.run('a request', async () => {
      await jobs.enqueue('context', 'x');
      await kit.drain();
      await kit.performJob(Context, 'x');
    });
    expect(seen).toEqual([undefined, undefined]);
  });
});
