import { describe, expect, it } from '@jest/globals';
import type { ClaimedJob, Jobs } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { failure, numbers, serverMs, useStage } from './stage.js';

const LONG = { leaseMs: 60_000 };

describe('handles for a loop of your own', () => {
  const stage = useStage();
  const open = async () => (await stage.connect()).jobs;
  const landed = async (jobs: Jobs, opts = {}) => (await jobs.enqueue('q', 'a', { n: 1 }, opts)).id;
  const claimed = async (jobs: Jobs, options = LONG): Promise<ClaimedJob> => (await jobs.claim('q', options))[0]!;
  const started = async (jobs: Jobs) => {
    await landed(jobs);
    return claimed(jobs);
  };
  const dead = async (jobs: Jobs) => {
    const { id, token } = await started(jobs);
    await jobs.retry('q', id, token, { maxAttempts: 0 });
    return id;
  };
  /** A claim whose lease has lapsed, and which a reap has put back to pending. */
  const lapsed = async (jobs: Jobs) => {
    await landed(jobs);
    const job = await claimed(jobs, { leaseMs: 1 });
    await until(async () => (await jobs.reap('q')).requeued === 1, { what: 'the lapse' });
    return job;
  };
  const stateOf = async (jobs: Jobs, id: string) => (await jobs.get('q', id))?.state;

  it('claim gives what was enqueued with a token, up to count, in order, and nothing when there is nothing', async () => {
    const jobs = await open();
    expect(await jobs.claim('q', LONG)).toEqual([]);
    const ids = (
      await jobs.enqueueMany(
        'q',
        numbers(5).map((n) => ({ name: `job ${n}`, data: n })),
      )
    ).map(({ id }) => id);
    const [first] = await jobs.claim('q', LONG);
    expect(first).toEqual({
      id: ids[0],
      name: 'job 0',
      data: 0,
      payload: Buffer.from('{"name":"job 0","data":0}'),
      attempts: 1,
      token: expect.stringMatching(/^1@/),
    });
    const rest = await jobs.claim('q', { ...LONG, count: 500 });
    expect(rest.map(({ id }) => id)).toEqual(ids.slice(1));
    expect(await jobs.counts('q')).toMatchObject({ pending: 0, active: 5 });
  });

  it('complete: ok once; then gone, or with keepMs ok again for the same token', async () => {
    const jobs = await open();
    const { id, token } = await started(jobs);
    expect(await jobs.complete('q', id, `${token}x`)).toBe('stale');
    expect(await jobs.complete('q', id, '1')).toBe('stale');
    expect(await jobs.complete('q', id, token, { result: 5 })).toBe('ok');
    expect(await jobs.complete('q', id, token)).toBe('gone');

    const kept = await started(jobs);
    const keep = { result: { sum: 3 }, keepMs: 60_000 };
    expect(await jobs.complete('q', kept.id, kept.token, keep)).toBe('ok');
    expect(await jobs.complete('q', kept.id, kept.token, { result: 'other', keepMs: 1 })).toBe('ok');
    expect(await jobs.complete('q', kept.id, `${kept.token}x`)).toBe('stale');
    const row = await jobs.get('q', kept.id);
    expect(row).toMatchObject({ state: 'done', result: Buffer.from('{"sum":3}'), attempts: 1 });
    expect(await stage.control.pttl(`emq:{q}:job:${kept.id}`)).toBeGreaterThan(30_000);
    expect((await jobs.counts('q')).metrics.completed).toBe(2);
  });

  it('retry: pending, scheduled or dead; stale for another token, gone without a row', async () => {
    const jobs = await open();
    const { id, token } = await started(jobs);
    expect(await jobs.retry('q', id, '1', { maxAttempts: 3 })).toBe('stale');
    expect(await jobs.retry('q', id, token, { maxAttempts: 3, error: new Error('first') })).toBe('pending');
    expect(await jobs.retry('q', id, token, { maxAttempts: 3 })).toBe('stale');
    const second = await claimed(jobs);
    const asked = await serverMs(stage.control);
    const later = { maxAttempts: 3, delayMs: 5000, error: 'second' };
    expect(await jobs.retry('q', id, second.token, later)).toBe('scheduled');
    expect(Number(await stage.control.zscore('emq:{q}:schedule', id))).toBeGreaterThanOrEqual(asked + 5000);
    await jobs.reschedule('q', id, { delayMs: 0 });
    const third = await claimed(jobs);
    expect(await jobs.retry('q', id, third.token, { maxAttempts: 3, error: 'third' })).toBe('dead');
    expect(await jobs.get('q', id)).toMatchObject({
      state: 'dead',
      attempts: 3,
      lastError: 'third',
      errors: [
        { attempt: 1, text: expect.stringMatching(/^Error: first\n/) },
        { attempt: 2, text: 'second' },
        { attempt: 3, text: 'third' },
      ],
    });
    await jobs.remove('q', id);
    expect(await jobs.retry('q', id, third.token, { maxAttempts: 3 })).toBe('gone');
    const buried = await started(jobs);
    expect(await jobs.retry('q', buried.id, buried.token, { maxAttempts: 0 })).toBe('dead');
    expect((await jobs.counts('q')).metrics).toMatchObject({ failed: 2, retried: 2, removed: 1 });
  });

  it('release: back at once or later, uncharged; stale and gone as elsewhere', async () => {
    const jobs = await open();
    const { id, token } = await started(jobs);
    expect(await jobs.release('q', id, '9')).toBe('stale');
    expect(await jobs.release('q', id, token)).toBe('ok');
    expect(await jobs.release('q', id, token)).toBe('stale');
    expect(await jobs.get('q', id)).toMatchObject({ state: 'pending', attempts: 1, uncharged: 1 });
    const second = await claimed(jobs);
    expect(await jobs.release('q', id, second.token, { delayMs: 60_000 })).toBe('ok');
    expect(await jobs.get('q', id)).toMatchObject({ state: 'scheduled', attempts: 2, uncharged: 2 });
    await jobs.reschedule('q', id, { delayMs: 0 });
    const third = await claimed(jobs);
    // Two claims were given back: this is the first attempt that counts.
    expect(await jobs.retry('q', id, third.token, { maxAttempts: 2 })).toBe('pending');
    await jobs.remove('q', id);
    expect(await jobs.release('q', id, third.token)).toBe('gone');
  });

  it('extend: a new deadline from the server; cancelled, wrong_state, stale, gone', async () => {
    const jobs = await open();
    const { id, token } = await started(jobs);
    const asked = await serverMs(stage.control);
    expect(await jobs.extend('q', id, token, { leaseMs: 100_000 })).toBe('ok');
    expect(Number(await stage.control.zscore('emq:{q}:active', id))).toBeGreaterThanOrEqual(asked + 100_000);
    expect(await jobs.extend('q', id, '1', LONG)).toBe('stale');
    expect(await jobs.cancel('q', id)).toBe('stopping');
    expect(await jobs.extend('q', id, token, LONG)).toBe('cancelled');
    await jobs.complete('q', id, token);
    expect(await jobs.extend('q', id, token, LONG)).toBe('gone');
    const late = await lapsed(jobs);
    expect(await jobs.extend('q', late.id, late.token, LONG)).toBe('wrong_state');
  });

  it('reap: gives back, counts, and buries past maxStalls; says when to come again', async () => {
    const jobs = await open();
    expect(await jobs.reap('q')).toEqual({
      requeued: 0,
      died: 0,
      deadIds: [],
      nextDeadline: undefined,
      nextInMs: undefined,
    });
    const running = await started(jobs);
    const none = await jobs.reap('q');
    expect(none).toMatchObject({ requeued: 0, died: 0 });
    expect(none.nextInMs).toBeGreaterThan(30_000);
    expect(String(none.nextDeadline)).toBe(await stage.control.zscore('emq:{q}:active', running.id));
    await jobs.complete('q', running.id, running.token);

    const { id } = await lapsed(jobs);
    expect(await jobs.get('q', id)).toMatchObject({ state: 'pending', stalls: 1, attempts: 1 });
    await claimed(jobs, { leaseMs: 1 });
    await until(async () => (await jobs.reap('q', { maxStalls: 1 })).died === 1, { what: 'the second lapse' });
    expect(await jobs.get('q', id)).toMatchObject({ state: 'dead', lastError: 'lease lapsed 2 times' });
    expect((await jobs.counts('q')).metrics).toMatchObject({ stalled: 2, failed: 1 });
  });

  it.each(['complete', 'retry', 'release'] as const)(
    "after a lapse, %s is still its holder's until somebody claims the job",
    async (settle) => {
      const jobs = await open();
      const first = await lapsed(jobs);
      const call = (token: string) =>
        settle === 'retry'
          ? jobs.retry('q', first.id, token, { maxAttempts: 5, delayMs: 60_000 })
          : jobs[settle]('q', first.id, token);
      expect(await call(first.token)).toBe(settle === 'retry' ? 'scheduled' : 'ok');

      await jobs.obliterate('q');
      const second = await lapsed(jobs);
      const taken = await claimed(jobs);
      expect(taken.id).toBe(second.id);
      const stale =
        settle === 'retry'
          ? jobs.retry('q', second.id, second.token, { maxAttempts: 5 })
          : jobs[settle]('q', second.id, second.token);
      expect(await stale).toBe('stale');
      expect(await stateOf(jobs, second.id)).toBe('active');
    },
  );

  it('reprocess: ok from the morgue, wrong_state elsewhere, gone without a row; fresh forgets the attempts', async () => {
    const jobs = await open();
    const id = await dead(jobs);
    expect(await jobs.reprocess('q', id)).toBe('ok');
    expect(await jobs.reprocess('q', id)).toBe('wrong_state');
    const again = await claimed(jobs);
    expect(again.attempts).toBe(2);
    expect(await jobs.retry('q', id, again.token, { maxAttempts: 2 })).toBe('dead');
    expect(await jobs.reprocess('q', id, { fresh: true })).toBe('ok');
    expect(await jobs.get('q', id)).toMatchObject({ attempts: 2, uncharged: 2, lastError: undefined });
    const fresh = await claimed(jobs);
    expect(await jobs.retry('q', id, fresh.token, { maxAttempts: 2 })).toBe('pending');
    await jobs.remove('q', id);
    expect(await jobs.reprocess('q', id)).toBe('gone');
  });

  it('remove: ok wherever nobody runs it, wrong_state for active, gone without a row', async () => {
    const jobs = await open();
    const pending = await landed(jobs);
    expect(await jobs.remove('q', pending)).toBe('ok');
    expect(await jobs.remove('q', pending)).toBe('gone');
    expect(await jobs.remove('q', await landed(jobs, { delayMs: 60_000 }))).toBe('ok');
    expect(await jobs.remove('q', await dead(jobs))).toBe('ok');
    const { id, token } = await started(jobs);
    expect(await jobs.remove('q', id)).toBe('wrong_state');
    await jobs.complete('q', id, token, { keepMs: 60_000 });
    expect(await jobs.remove('q', id)).toBe('ok');
    expect(await jobs.get('q', id)).toBeUndefined();
  });

  it('cancel: removed before it ran, stopping while it runs, wrong_state afterwards, gone without a row', async () => {
    const jobs = await open();
    expect(await jobs.cancel('q', await landed(jobs))).toBe('removed');
    const scheduled = await landed(jobs, { delayMs: 60_000 });
    expect(await jobs.cancel('q', scheduled)).toBe('removed');
    expect(await jobs.cancel('q', scheduled)).toBe('gone');
    expect(await jobs.cancel('q', await dead(jobs))).toBe('wrong_state');
    const { id, token } = await started(jobs);
    expect(await jobs.cancel('q', id)).toBe('stopping');
    expect(await jobs.get('q', id)).toMatchObject({ state: 'active', cancelRequested: true });
    expect(await jobs.retry('q', id, token, { maxAttempts: 9, error: 'gave up' })).toBe('dead');
    expect(await jobs.get('q', id)).toMatchObject({ state: 'dead', lastError: 'cancelled' });
    const completed = await started(jobs);
    await jobs.cancel('q', completed.id);
    expect(await jobs.complete('q', completed.id, completed.token, { keepMs: 60_000 })).toBe('ok');
    expect(await jobs.cancel('q', completed.id)).toBe('wrong_state');
    const released = await started(jobs);
    await jobs.cancel('q', released.id);
    expect(await jobs.release('q', released.id, released.token)).toBe('ok');
    expect(await stateOf(jobs, released.id)).toBe('dead');
  });

  it('trim: removes the oldest dead ones down to keepCount, however many', async () => {
    const jobs = await open();
    const ids = (
      await jobs.enqueueMany(
        'q',
        numbers(2500).map(() => ({ name: 'a' })),
      )
    ).map(({ id }) => id);
    for (let done = 0; done < 2500; done += 500) {
      const batch = await jobs.claim('q', { ...LONG, count: 500 });
      await Promise.all(batch.map(({ id, token }) => jobs.retry('q', id, token, { maxAttempts: 0 })));
    }
    expect(await jobs.trim('q', { keepCount: 2500 })).toBe(0);
    expect(await jobs.trim('q', { keepCount: 3 })).toBe(2497);
    expect((await jobs.list('q', 'dead')).jobs.map(({ id }) => id)).toEqual(ids.slice(-3));
    expect(await jobs.trim('q', { keepCount: 0 })).toBe(3);
    expect((await jobs.counts('q')).metrics).toMatchObject({ removed: 2500, failed: 2500 });
  });

  it('get: nothing for an id that has no row', async () => {
    const jobs = await open();
    expect(await jobs.get('q', jobs.mintId())).toBeUndefined();
  });

  it('get shows everything there is to know', async () => {
    const jobs = await open();
    const opts = { attempts: 4, backoff: { type: 'fixed' as const, delayMs: 5 }, timeoutMs: 6, keepMs: 7 };
    const id = await landed(jobs, { ...opts, priority: 8 });
    expect(await jobs.get('q', id)).toEqual({
      id,
      state: 'pending',
      name: 'a',
      data: { n: 1 },
      opts,
      payload: expect.any(Buffer),
      attempts: 0,
      uncharged: 0,
      stalls: 0,
      priority: 8,
      cancelRequested: false,
      lastError: undefined,
      errors: [],
      result: undefined,
    });
  });

  it('counts: one consistent look', async () => {
    const jobs = await open();
    const nothing = { pending: 0, active: 0, scheduled: 0, dead: 0, awaitingChildren: 0, paused: false };
    const noMetrics = { enqueued: 0, completed: 0, removed: 0, failed: 0, retried: 0, stalled: 0 };
    expect(await jobs.counts('q')).toEqual({ ...nothing, metrics: noMetrics });
    await dead(jobs);
    await started(jobs);
    await landed(jobs);
    await landed(jobs, { delayMs: 60_000 });
    expect(await jobs.counts('q')).toEqual({
      ...nothing,
      pending: 1,
      active: 1,
      scheduled: 1,
      dead: 1,
      metrics: { ...noMetrics, enqueued: 4, failed: 1 },
    });
  });

  it('tokens of one process do not fit the claims of another, not even for the same attempt', async () => {
    const [one, two] = [await open(), await open()];
    const first = await lapsed(one);
    expect(await two.release('q', first.id, first.token)).toBe('ok');
    const ours = await started(one);
    const other = await claimed(two);
    expect(other.token.split('@')[1]).not.toBe(ours.token.split('@')[1]);
  });

  it('closed, they reject with an error that says so', async () => {
    const echo = await stage.connect();
    await echo.close();
    expect(await failure(echo.jobs.counts('q'))).toMatchObject({ name: 'EchoStateError', retryable: false });
    expect(await failure(echo.jobs.enqueue('q', 'a'))).toMatchObject({ name: 'EchoStateError' });
  });
});
