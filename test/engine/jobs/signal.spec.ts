import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { Job, JobAborted } from '../../../lib/core.js';
import type { ProxiedConnection } from '../../support/proxied-connection.js';
import { until } from '../../support/until.js';
import { hungry, latch, numbers, quiet, useStage } from './stage.js';

const AT_ONCE = { type: 'fixed', delayMs: 0 } as const;

/** Resolves with the reason once the signal fires. */
function aborted(job: Job): Promise<JobAborted> {
  const { signal } = job;
  if (signal.aborted) return Promise.resolve(signal.reason);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }));
}

describe('the signal of a job', () => {
  const stage = useStage();
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('fires when the time limit is over', async () => {
    const echo = await stage.connect();
    const reasons: JobAborted[] = [];
    echo.consume('q', { timeoutMs: 30, attempts: 1 }, async (job) => {
      reasons.push(await aborted(job));
      throw reasons[0];
    });
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(() => reasons.length === 1, { what: 'the signal' });
    expect(reasons[0]).toMatchObject({ name: 'JobAborted', why: 'timeout' });
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'the death' });
    expect((await echo.jobs.get('q', id))!.lastError).toMatch(/longer than 30 ms/);
  });

  it('fires when another process cancels the job, which is then buried when its handler gives up', async () => {
    const [echo, other] = [await stage.connect(), await stage.connect()];
    const started = latch();
    const failed: string[] = [];
    const consumer = echo.consume('q', {}, async (job) => {
      const stop = aborted(job);
      started.open();
      throw await stop;
    });
    consumer.on('failed', (_job, error, outcome) => failed.push(`${(error as JobAborted).why} ${outcome}`));
    const { id } = await echo.jobs.enqueue('q', 'a');
    await started.opened;
    expect(await other.jobs.cancel('q', id)).toBe('stopping');
    await until(() => failed.length === 1, { what: 'the end' });
    expect(failed).toEqual(['cancelled dead']);
    expect(await other.jobs.get('q', id)).toMatchObject({ state: 'dead', attempts: 1, lastError: 'cancelled' });
  });

  it('may be passed over: a cancelled job whose handler ends well is completed', async () => {
    const [echo, other] = [await stage.connect(), await stage.connect()];
    const [started, gate] = [latch(), latch()];
    const completed: string[] = [];
    echo
      .consume('q', {}, async () => {
        started.open();
        await gate.opened;
      })
      .on('completed', (job) => completed.push(job.id));
    const { id } = await echo.jobs.enqueue('q', 'a');
    await started.opened;
    expect(await other.jobs.cancel('q', id)).toBe('stopping');
    gate.open();
    await until(() => completed.length === 1, { what: 'completion' });
    expect(completed).toEqual([id]);
    expect(await other.jobs.get('q', id)).toBeUndefined();
  });

  it('fires when first looked at after the cancel', async () => {
    const [echo, other] = [await stage.connect(), await stage.connect()];
    const [started, gate] = [latch(), latch()];
    const seen: string[] = [];
    echo.consume('q', {}, async (job) => {
      started.open();
      await gate.opened;
      seen.push(`${job.signal.aborted} ${(job.signal.reason as JobAborted).why}`);
    });
    const { id } = await echo.jobs.enqueue('q', 'a');
    await started.opened;
    await other.jobs.cancel('q', id);
    await quiet(other, 'q');
    gate.open();
    await until(() => seen.length === 1, { what: 'the look' });
    expect(seen).toEqual(['true cancelled']);
  });

  it('fires when a short lease is renewed, should the message about the cancel be lost', async () => {
    const echo = await stage.connect();
    const started = latch();
    const reasons: string[] = [];
    echo.consume('q', { leaseMs: 300 }, async (job) => {
      started.open();
      reasons.push((await aborted(job)).why);
    });
    const { id } = await echo.jobs.enqueue('q', 'a');
    await started.opened;
    await stage.control.hset(`emq:{q}:job:${id}`, 'cancel', 1); // what cancel writes; nothing is said
    await until(() => reasons.length === 1, { what: 'the renewal to tell' });
    expect(reasons).toEqual(['cancelled']);
  });

  it('fires at the end of the drain, and the job is given back uncharged', async () => {
    const echo = await stage.connect();
    const started = latch();
    const reasons: string[] = [];
    const consumer = echo.consume('q', { drainMs: 30 }, async (job) => {
      const stop = aborted(job);
      started.open();
      reasons.push((await stop).why);
    });
    const { id } = await echo.jobs.enqueue('q', 'a');
    await started.opened;
    await consumer.close();
    expect(reasons).toEqual(['shutdown']);
    expect(await echo.jobs.get('q', id)).toMatchObject({ state: 'pending', attempts: 1, uncharged: 1 });
  });

  it('fires when somebody else has taken the job; what the handler then does counts for nothing', async () => {
    const [echo, other] = [await stage.connect(), await stage.connect()];
    const [started, gate] = [latch(), latch()];
    const lost: string[] = [];
    const reasons: string[] = [];
    const ended: string[] = [];
    const consumer = echo.consume('q', { leaseMs: 300 }, async (job) => {
      const stop = aborted(job);
      started.open();
      reasons.push((await stop).why);
      await gate.opened;
    });
    consumer.on('lease-lost', (job, why) => lost.push(`${job.id} ${why}`));
    consumer.on('completed', () => ended.push('completed'));
    consumer.on('failed', () => ended.push('failed'));
    const { id } = await echo.jobs.enqueue('q', 'a');
    await started.opened;
    const reaped = async () => {
      await stage.control.zadd('emq:{q}:active', 'XX', 1, id); // as if the lease had lapsed; it may be renewed meanwhile
      return (await other.jobs.reap('q')).requeued === 1 || reasons.length;
    };
    await until(reaped, { what: 'a reap' });
    const [taken] = await other.jobs.claim('q', { leaseMs: 60_000 });
    await until(() => reasons.length === 1, { what: 'the signal' });
    expect(reasons).toEqual(['lease_lost']);
    expect(lost).toEqual([expect.stringMatching(`^${id} `)]);
    gate.open();
    await quiet(other, 'q');
    expect(ended).toEqual([]);
    expect(await other.jobs.complete('q', id, taken!.token)).toBe('ok');
  });

  it('is not made unless asked for', async () => {
    const echo = await stage.connect();
    const made = jest.spyOn(globalThis, 'AbortController');
    let ran = 0;
    echo.consume('q', { concurrency: 4, timeoutMs: 1000, attempts: 1 }, async (job) => {
      ran += 1;
      if (job.name === 'asks') expect(job.signal).toBe(job.signal);
      if (job.name === 'fails') throw new Error('failed');
    });
    await echo.jobs.enqueueMany('q', [...numbers(100).map(() => ({ name: 'a' })), { name: 'fails' }]);
    await until(() => ran === 101, { what: 'all' });
    expect(made).toHaveBeenCalledTimes(0);
    await echo.jobs.enqueue('q', 'asks');
    await until(() => ran === 102, { what: 'the last' });
    await quiet(echo, 'q');
    expect(made).toHaveBeenCalledTimes(1);
  });
});

describe('cancel, seen from the handlers', () => {
  const stage = useStage();

  it('of a pending or scheduled job means that it never runs', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    const [pending, , scheduled] = await echo.jobs.enqueueMany('q', [
      { name: 'cancelled' },
      { name: 'stays' },
      { name: 'cancelled', opts: { delayMs: 30 } },
      { name: 'stays', opts: { delayMs: 60 } },
    ]);
    expect(await echo.jobs.cancel('q', pending!.id)).toBe('removed');
    expect(await echo.jobs.cancel('q', scheduled!.id)).toBe('removed');
    echo.consume('q', {}, (job) => void ran.push(job.name));
    await until(() => ran.length === 2, { what: 'the others' });
    expect(ran).toEqual(['stays', 'stays']);
    expect((await echo.jobs.counts('q')).metrics).toMatchObject({ removed: 2, completed: 2 });
  });

  it('is heard when it overtakes the answer to the claim', async () => {
    const proxy = await stage.proxy();
    const asked = latch<ProxiedConnection>();
    const forget = proxy.onRequest((command, connection) => {
      if (!command.includes('{q}:active')) return undefined;
      forget();
      connection.toClient.setShut(true);
      asked.open(connection);
      return 'pass';
    });
    const [echo, other] = [await stage.connect({ connection: proxy.url }), await stage.connect()];
    await other.jobs.claim('q', { leaseMs: 1000 }); // teaches the server the script
    const { id } = await other.jobs.enqueue('q', 'a');
    let ran = 0;
    echo.consume('q', {}, () => void ran++);
    const connection = await asked.opened;
    await until(async () => (await other.jobs.get('q', id))!.state === 'active', { what: 'the claim' });
    expect(await other.jobs.cancel('q', id)).toBe('stopping');
    await quiet(other, 'q');
    connection.toClient.setShut(false);
    await until(async () => (await other.jobs.get('q', id))!.state === 'dead', { what: 'the end' });
    expect(ran).toBe(0);
  });

  it('of a retrying job that is asked to stop ends its attempts', async () => {
    const [echo, other] = [await stage.connect(), await stage.connect()];
    let runs = 0;
    let cancelled: Promise<unknown> | undefined;
    echo.consume('q', { attempts: 1000, backoff: AT_ONCE }, async (job) => {
      if (++runs === 5) {
        cancelled = other.jobs.cancel('q', job.id);
        await cancelled;
      }
      throw new Error('again');
    });
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(async () => (await other.jobs.get('q', id))?.state === 'dead', { what: 'the death' });
    expect(await cancelled).toBe('stopping');
    expect(runs).toBe(5);
  });

  it('of a job that was claimed ahead and has not started means that it does not run', async () => {
    const { echo, other, warm } = await warmed();
    const ran: string[] = [];
    const ids = { first: other.jobs.mintId(), victim: other.jobs.mintId(), last: other.jobs.mintId() };
    const { victim } = ids;
    let answer = '';
    warm.push(async (job) => {
      ran.push(job.name);
      if (job.name !== 'first') return;
      await until(async () => (await other.jobs.get('q', victim))!.state !== 'pending', { what: 'claim ahead' });
      answer = await other.jobs.cancel('q', victim);
      await quiet(other, 'q', 5); // time for the message to come
    });
    await other.jobs.enqueueMany(
      'q',
      Object.entries(ids).map(([name, id]) => ({ name, opts: { id } })),
    );
    await until(() => ran.includes('last'), { what: 'the last' });
    await quiet(echo, 'q');
    expect(answer).toBe('stopping');
    expect(ran).toEqual(['first', 'last']);
    expect(await other.jobs.get('q', victim)).toMatchObject({ state: 'dead', lastError: 'cancelled' });
  });

  /** A consumer that has seen its handlers to be fast, and so claims ahead; what is pushed to `warm` takes over. */
  async function warmed() {
    const [echo, other] = [await stage.connect(), await stage.connect()];
    const warm: ((job: Job) => Promise<void>)[] = [];
    let ran = 0;
    echo.consume('q', { concurrency: 1 }, (job) => {
      ran += 1;
      return warm[0]?.(job);
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(2000).map(() => ({ name: 'warm' })),
    );
    await until(() => ran === 2000, { what: 'the warm-up', progress: () => ran });
    await hungry(stage.control, 'q');
    return { echo, other, warm };
  }
});
