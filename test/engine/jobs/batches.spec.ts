import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import {
  type BatchOptions,
  batched,
  type ConsumerOptions,
  Discard,
  defineQueue,
  EchoConfigError,
  type EchoMq,
  type Job,
  NotHandled,
  Snooze,
  WaitForChildren,
} from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { failure, hungry, latch, numbers, quiet, useStage } from './stage.js';

/** Longer than any test: a batch that is to be called by its size, or at the close. */
const NEVER_MS = 3_600_000;
const ONCE = { attempts: 1 } as const;

describe('a handler of batches', () => {
  const stage = useStage();

  /** A consumer with as many slots as its batches are large, and the batches that it got, as the names of their jobs. */
  const serve = (
    echo: EchoMq,
    batch: BatchOptions,
    answer: (jobs: Job[]) => unknown = () => undefined,
    options: ConsumerOptions = {},
  ) => {
    const batches: string[][] = [];
    const handler = batched(batch, (jobs) => {
      batches.push(jobs.map(({ name }) => name));
      return answer(jobs);
    });
    const consumer = echo.consume('q', { concurrency: batch.size, ...options }, handler);
    return { batches, consumer };
  };
  const named = (...names: string[]) => names.map((name) => ({ name, opts: { keepMs: 60_000 } }));
  const settled = async ({ jobs }: EchoMq, n: number) => {
    let ended = 0;
    const all = async () => {
      const { dead, metrics } = await jobs.counts('q');
      ended = metrics.completed + dead;
      return ended >= n;
    };
    await until(all, { what: `${n} jobs to settle`, progress: () => ended });
  };
  const statesOf = ({ jobs }: EchoMq, ids: readonly { id: string }[]) =>
    Promise.all(ids.map(async ({ id }) => (await jobs.get('q', id))?.state));

  it('is called when so many are there, in their order, and answers for each', async () => {
    const echo = await stage.connect();
    const { batches } = serve(echo, { size: 3, waitMs: NEVER_MS }, (jobs) => jobs.map(({ name }) => `did ${name}`));
    const landed = await echo.jobs.enqueueMany('q', named('a', 'b', 'c', 'd', 'e', 'f'));
    await settled(echo, 6);
    expect(batches).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e', 'f'],
    ]);
    const results = await Promise.all(landed.map(({ id }) => echo.jobs.result('q', id)));
    expect(results).toEqual(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `did ${name}`));
  });

  it('is called with fewer when the first of them has waited long enough', async () => {
    const echo = await stage.connect();
    const { batches } = serve(echo, { size: 10, waitMs: 40 });
    await hungry(stage.control, 'q');
    const from = performance.now();
    await echo.jobs.enqueueMany('q', named('a', 'b'));
    await settled(echo, 2);
    expect(performance.now() - from).toBeGreaterThanOrEqual(39);
    expect(batches).toEqual([['a', 'b']]);
  });

  it('without a wait gets those that were claimed together', async () => {
    const echo = await stage.connect();
    const { batches } = serve(echo, { size: 10, waitMs: 0 });
    await hungry(stage.control, 'q');
    await echo.jobs.enqueueMany('q', named('a', 'b', 'c'));
    await settled(echo, 3);
    expect(batches).toEqual([['a', 'b', 'c']]);
  });

  it('that answers nothing completes them all, without results', async () => {
    const echo = await stage.connect();
    serve(echo, { size: 2, waitMs: NEVER_MS }, async () => undefined);
    const landed = await echo.jobs.enqueueMany('q', named('a', 'b'));
    await settled(echo, 2);
    expect(await statesOf(echo, landed)).toEqual(['done', 'done']);
    expect(await Promise.all(landed.map(({ id }) => echo.jobs.result('q', id)))).toEqual([null, null]); // as JSON says it
  });

  it('that answers promises has each settle its own job, when it does: one that rejects fails that job alone', async () => {
    const echo = await stage.connect();
    const slow = latch<string>();
    serve(
      echo,
      { size: 3, waitMs: NEVER_MS },
      (jobs) =>
        jobs.map(async ({ name }) => {
          if (name === 'bad') throw new Error('not this one');
          return name === 'slow' ? slow.opened : name;
        }),
      ONCE,
    );
    const landed = await echo.jobs.enqueueMany('q', named('good', 'bad', 'slow'));
    await settled(echo, 2);
    expect(await statesOf(echo, landed)).toEqual(['done', 'dead', 'active']);
    expect((await echo.jobs.get('q', landed[1]!.id))!.lastError).toMatch(/^Error: not this one/);
    slow.open('at last');
    await settled(echo, 3);
    expect(await echo.jobs.result('q', landed[2]!.id)).toBe('at last');
  });

  it('that throws fails every job of the batch, each of which is retried by itself', async () => {
    const echo = await stage.connect();
    let calls = 0;
    const { batches } = serve(
      echo,
      { size: 2, waitMs: 20 },
      () => {
        if (++calls === 1) throw new Error('the database is away');
      },
      { backoff: { type: 'fixed', delayMs: 0 } },
    );
    await echo.jobs.enqueueMany('q', named('a', 'b'));
    await settled(echo, 2);
    expect(batches.flat().sort()).toEqual(['a', 'a', 'b', 'b']);
    expect(await echo.jobs.counts('q')).toMatchObject({ metrics: { completed: 2, retried: 2 } });
  });

  it.each<[what: string, thrown: () => unknown, state: string]>([
    ['Discard', () => new Discard('none of it'), 'dead'],
    ['Snooze', () => new Snooze(60_000), 'scheduled'],
    ['NotHandled', () => new NotHandled(60_000), 'scheduled'],
  ])('that throws %s means every job of the batch', async (_what, thrown, state) => {
    const echo = await stage.connect();
    serve(echo, { size: 2, waitMs: NEVER_MS }, () => Promise.reject(thrown()));
    const landed = await echo.jobs.enqueueMany('q', named('a', 'b'));
    await until(async () => (await statesOf(echo, landed)).every((one) => one === state), {
      what: `two ${state} jobs`,
    });
  });

  it('that throws WaitForChildren puts back every job until its own children have settled', async () => {
    const echo = await stage.connect();
    const { batches } = serve(echo, { size: 2, waitMs: 20 }, async (jobs) => {
      if (jobs.some(({ attempts }) => attempts > 1)) return;
      await Promise.all(jobs.map((job) => job.addChildren([{ queue: 'children', name: 'child' }])));
      throw new WaitForChildren();
    });
    const landed = await echo.jobs.enqueueMany('q', named('a', 'b'));
    await until(async () => (await statesOf(echo, landed)).every((one) => one === 'awaiting_children'), {
      what: 'parents that wait',
    });
    echo.consume('children', {}, () => undefined);
    await settled(echo, 2);
    expect(batches.flat().sort()).toEqual(['a', 'a', 'b', 'b']);
  });

  it.each<[what: string, answer: unknown, said: string]>([
    ['an array that is too short', [1], 'for 2 jobs it answered an array of 1'],
    [
      'an array that is too long',
      [1, 2, Promise.reject(new Error('nobody asks'))],
      'for 2 jobs it answered an array of 3',
    ],
    ['something else', { a: 1 }, 'for 2 jobs it answered object'],
    ['null', null, 'for 2 jobs it answered null'],
  ])('that answers %s fails every job of the batch', async (_what, answer, said) => {
    if (Array.isArray(answer)) for (const one of answer) Promise.resolve(one).catch(() => undefined);
    const echo = await stage.connect();
    serve(echo, { size: 2, waitMs: NEVER_MS }, () => answer, ONCE);
    const landed = await echo.jobs.enqueueMany('q', named('a', 'b'));
    await settled(echo, 2);
    expect(await statesOf(echo, landed)).toEqual(['dead', 'dead']);
    for (const { id } of landed) expect((await echo.jobs.get('q', id))!.lastError).toContain(said);
  });

  it('may do with its array what it likes: answers go by the order in which the jobs came', async () => {
    const echo = await stage.connect();
    serve(echo, { size: 3, waitMs: NEVER_MS }, (jobs) => jobs.splice(0).map(({ name }) => name));
    const landed = await echo.jobs.enqueueMany('q', named('a', 'b', 'c'));
    await settled(echo, 3);
    expect(await Promise.all(landed.map(({ id }) => echo.jobs.result('q', id)))).toEqual(['a', 'b', 'c']);
  });

  it('does not get a job whose time limit is over while it gathers; its slot is free at once', async () => {
    const echo = await stage.connect();
    const { batches } = serve(echo, { size: 2, waitMs: NEVER_MS }, undefined, ONCE);
    const { id } = await echo.jobs.enqueue('q', 'late', undefined, { timeoutMs: 30 });
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'the death' });
    expect((await echo.jobs.get('q', id))!.lastError).toMatch(/longer than 30 ms/);
    expect(batches).toEqual([]);
    await echo.jobs.enqueueMany('q', named('a', 'b'));
    await settled(echo, 3);
    expect(batches).toEqual([['a', 'b']]);
  });

  it('does not get a job that is cancelled while it gathers: it is buried at once, and the others go on', async () => {
    const [echo, other] = [await stage.connect(), await stage.connect()];
    const { batches, consumer } = serve(echo, { size: 3, waitMs: NEVER_MS });
    const [first, second] = await echo.jobs.enqueueMany('q', named('a', 'b'));
    await until(() => consumer.active === 2, { what: 'two that gather' });
    expect(await other.jobs.cancel('q', second!.id)).toBe('stopping');
    await until(async () => (await other.jobs.get('q', second!.id))?.state === 'dead', { what: 'the death' });
    expect(consumer.active).toBe(1);
    await echo.jobs.enqueueMany('q', named('c', 'd'));
    await settled(echo, 4);
    expect(batches).toEqual([['a', 'c', 'd']]);
    expect(await other.jobs.get('q', first!.id)).toMatchObject({ state: 'done', attempts: 1 });
    expect(await other.jobs.get('q', second!.id)).toMatchObject({ attempts: 1, lastError: 'cancelled' });
  });

  it('does not get jobs that are lost while they gather, and is not called when all of them are', async () => {
    const echo = await stage.connect();
    const { batches, consumer } = serve(echo, { size: 3, waitMs: NEVER_MS }, undefined, { leaseMs: 300 });
    const lost: string[] = [];
    consumer.on('lease-lost', ({ name }) => lost.push(name));
    await echo.jobs.enqueueMany('q', named('a', 'b'));
    await until(() => consumer.active === 2, { what: 'two that gather' });
    expect(await echo.jobs.obliterate('q', { force: true })).toBe(2);
    await until(() => consumer.active === 0, { what: 'free slots' });
    expect(lost).toEqual(['a', 'b']);
    expect(batches).toEqual([]);
  });

  it('keeps the leases of jobs that gather', async () => {
    const echo = await stage.connect();
    const { batches } = serve(echo, { size: 2, waitMs: 1000 }, undefined, { leaseMs: 300 });
    const { id } = await echo.jobs.enqueue('q', 'a', undefined, { keepMs: 60_000 });
    await settled(echo, 1);
    expect(batches).toEqual([['a']]);
    expect(await echo.jobs.get('q', id)).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('gets a batch that is not full when its consumer closes, at once', async () => {
    const echo = await stage.connect();
    const { batches, consumer } = serve(echo, { size: 5, waitMs: NEVER_MS }, async () => quiet(echo, 'other', 3));
    await echo.jobs.enqueueMany('q', named('a', 'b', 'c'));
    await until(() => consumer.active === 3, { what: 'three that gather' });
    await consumer.close();
    expect(batches).toEqual([['a', 'b', 'c']]);
    expect(await echo.jobs.counts('q')).toMatchObject({ pending: 0, active: 0, metrics: { completed: 3 } });
  });

  it('that does not end while its consumer drains has its jobs given back, uncharged', async () => {
    const echo = await stage.connect();
    const never = latch();
    const { batches, consumer } = serve(echo, { size: 5, waitMs: NEVER_MS }, () => never.opened, { drainMs: 20 });
    await echo.jobs.enqueueMany('q', named('a', 'b'));
    await until(() => consumer.active === 2, { what: 'two that gather' });
    await consumer.close();
    never.open();
    expect(batches).toEqual([['a', 'b']]);
    const { jobs } = await echo.jobs.list('q', 'pending');
    expect(jobs.map(({ name, attempts, uncharged }) => [name, attempts, uncharged])).toEqual([
      ['a', 1, 1],
      ['b', 1, 1],
    ]);
  });

  it('is called in the context of its EchoMq when the consumer is closed, not in that of whoever closes', async () => {
    const echo = await stage.connect();
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const { consumer } = serve(echo, { size: 2, waitMs: NEVER_MS }, () => void seen.push(requests.getStore()));
    await echo.jobs.enqueue('q', 'a');
    await until(() => consumer.active === 1, { what: 'one that gathers' });
    await requests.run('request', () => consumer.close());
    expect(seen).toEqual([undefined]);
  });

  it.each(['consumer', 'echo'] as const)('may close its %s: the close waits for all but its own jobs', async (what) => {
    const echo = await stage.connect();
    const closed = latch<string>();
    const { consumer } = serve(echo, { size: 3, waitMs: NEVER_MS }, async (jobs) => {
      await (what === 'consumer' ? consumer.close() : echo.close());
      closed.open(`closed in ${jobs.length}`);
    });
    const other = await stage.connect();
    await other.jobs.enqueueMany('q', named('a', 'b', 'c'));
    expect(await closed.opened).toBe('closed in 3');
    await settled(other, 3);
  });

  it('may close its consumer in a batch that the close itself has called', async () => {
    const echo = await stage.connect();
    const { batches, consumer } = serve(echo, { size: 3, waitMs: NEVER_MS }, () => consumer.close());
    await echo.jobs.enqueueMany('q', named('a', 'b'));
    await until(() => consumer.active === 2, { what: 'two that gather' });
    await consumer.close();
    expect(batches).toEqual([['a', 'b']]);
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 0, metrics: { completed: 2 } });
  });

  it('gets no more than so many, and each job once, however many there are', async () => {
    const echo = await stage.connect();
    const { batches } = serve(echo, { size: 50, waitMs: 500 }, undefined, { concurrency: 120 });
    const names = numbers(5000).map(String);
    await echo.jobs.enqueueMany(
      'q',
      names.map((name) => ({ name })),
    );
    await settled(echo, 5000);
    expect(batches.flat().sort()).toEqual(names.sort());
    expect(Math.max(...batches.map(({ length }) => length))).toBe(50);
    expect(batches.length).toBeLessThan(200);
  });

  it('gathers by itself where another one decides by the name', async () => {
    const echo = await stage.connect();
    const ran: string[][] = [];
    const gather = (jobs: Job[]) => void ran.push(jobs.map(({ name }) => name));
    const [rows, mails] = [
      batched({ size: 2, waitMs: NEVER_MS }, gather),
      batched({ size: 2, waitMs: NEVER_MS }, gather),
    ];
    echo.consume('q', { concurrency: 4 }, (job) => (job.name.startsWith('row') ? rows(job) : mails(job)));
    await echo.jobs.enqueueMany('q', named('row 1', 'mail 1', 'mail 2', 'row 2'));
    await settled(echo, 4);
    expect(ran).toEqual([
      ['mail 1', 'mail 2'],
      ['row 1', 'row 2'],
    ]);
  });

  it('gets data as the schema puts it out; a job whose data does not fit is buried before it joins', async () => {
    const Rows = defineQueue('q', { row: z.object({ at: z.coerce.date<string>() }) });
    const echo = await stage.connect();
    const seen: unknown[] = [];
    const handler = batched<Job<{ at: Date }>>({ size: 2, waitMs: NEVER_MS }, (jobs) => {
      seen.push(...jobs.map(({ data }) => data.at));
    });
    const bad = await echo.jobs.enqueue('q', 'row', { at: 'someday' });
    await echo.jobs.enqueueMany('q', [
      { name: 'row', data: { at: '2026-01-01' } },
      { name: 'row', data: { at: '2026-01-02' } },
    ]);
    echo.consume(Rows, { concurrency: 2 }, handler);
    await settled(echo, 3);
    expect(seen).toEqual([new Date('2026-01-01'), new Date('2026-01-02')]);
    expect(await echo.jobs.get('q', bad.id)).toMatchObject({ state: 'dead' });
  });

  it('is judged by how fast it is, not by how long its jobs gathered: jobs are claimed ahead', async () => {
    const echo = await stage.connect();
    let gate = latch();
    let started = latch();
    serve(echo, { size: 2, waitMs: 10 }, (jobs) => {
      if (!jobs.some(({ name }) => name === 'slow')) return undefined;
      started.open();
      return gate.opened;
    });
    const fast = numbers(6).map((n) => `fast ${n}`);
    let ahead: number[] = [];
    // Again where the machine was too slow for it: batches that gather for 10 ms and count so would never be fast enough.
    for (let round = 1, done = 0; round <= 5 && !ahead.some((claims) => claims > 0); round++) {
      for (const n of numbers(20)) {
        await echo.jobs.enqueue('q', `alone ${n}`);
        done += 1;
        await settled(echo, done);
      }
      [gate, started] = [latch(), latch()];
      await echo.jobs.enqueueMany('q', named('slow', 'slow', ...fast));
      await started.opened;
      await until(async () => (await stage.control.zcard('emq:{q}:active')) === 2, { what: 'the others to go back' });
      const { jobs } = await echo.jobs.list('q', 'pending');
      expect(jobs.map(({ name }) => name)).toEqual(fast);
      for (const { attempts, uncharged } of jobs) expect(uncharged).toBe(attempts);
      ahead = jobs.map(({ attempts }) => attempts);
      gate.open();
      done += 8;
      await settled(echo, done);
    }
    expect(ahead.some((claims) => claims > 0)).toBe(true);
  });

  it('refuses options that make no sense', () => {
    const handler = () => undefined;
    const refused = (options: unknown, given: unknown = handler) => {
      try {
        batched(options as BatchOptions, given as () => void);
      } catch (error) {
        expect(error).toBeInstanceOf(EchoConfigError);
        return (error as Error).message;
      }
      throw new Error('it was accepted');
    };
    expect(refused({ size: 0, waitMs: 1 })).toBe("option 'batched.size' must be a whole number from 1 to 10000, got 0");
    expect(refused({ size: 2.5, waitMs: 1 })).toMatch(/'batched\.size'/);
    expect(refused({ size: 2 })).toMatch(/'batched\.waitMs' must be a whole number from 0, got undefined/);
    expect(refused({ size: 2, waitMs: -1 })).toMatch(/'batched\.waitMs'/);
    expect(refused({ size: 2, waitMs: 1, wait: 5 })).toMatch(/unknown option 'wait'/);
    expect(refused(undefined)).toMatch(/batched must be an object/);
    expect(refused({ size: 2, waitMs: 1 }, 5)).toMatch(/needs a handler function, got 5/);
  });

  it('refuses a consumer with fewer slots than it is large', async () => {
    const echo = await stage.connect();
    const handler = batched({ size: 10, waitMs: 5 }, () => undefined);
    const consume = (options: ConsumerOptions) => Promise.resolve().then(() => echo.consume('q', options, handler));
    for (const options of [{}, { concurrency: 9 }]) {
      const error = await failure(consume(options));
      expect(error).toBeInstanceOf(EchoConfigError);
      expect(error.message).toMatch(/^option 'consume\('q'\)\.concurrency' is \d, but its handler takes batches of 10/);
    }
    await consume({ concurrency: 10 });
  });
});
