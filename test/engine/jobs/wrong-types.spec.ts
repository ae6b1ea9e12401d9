import { describe, expect, it } from '@jest/globals';
import type { EchoError, Jobs } from '../../../lib/core.js';
import { describeWithProcess } from '../../support/availability.js';
import { dumpQueue } from '../../support/dump.js';
import { until } from '../../support/until.js';
import { failure, numbers, useStage } from './stage.js';

const ID = 'JOB0KHTOWnGLuC';

describe('a key of another type (C150)', () => {
  const stage = useStage();

  const CALLS: [keyof Jobs, (jobs: Jobs) => Promise<unknown>, keys: string[]][] = [
    ['enqueue', (jobs) => jobs.enqueue('q', 'a', 1, { delayMs: 9 }), ['pending', 'schedule', 'metrics:enqueued']],
    ['enqueueMany', (jobs) => jobs.enqueueMany('q', [{ name: 'a' }]), ['pending', 'metrics:enqueued']],
    ['claim', (jobs) => jobs.claim('q', { leaseMs: 1000 }), ['pending', 'active']],
    ['complete', (jobs) => jobs.complete('q', ID, '1'), ['active', 'metrics:completed']],
    ['retry', (jobs) => jobs.retry('q', ID, '1', { maxAttempts: 1 }), ['active', 'schedule', 'dead', 'metrics:failed']],
    ['release', (jobs) => jobs.release('q', ID, '1'), ['active', 'pending', 'schedule']],
    ['extend', (jobs) => jobs.extend('q', ID, '1', { leaseMs: 1 }), ['active']],
    ['promote', (jobs) => jobs.promote('q'), ['schedule', 'pending']],
    ['reap', (jobs) => jobs.reap('q'), ['active', 'pending', 'dead', 'metrics:stalled']],
    ['reprocess', (jobs) => jobs.reprocess('q', ID), ['dead', 'pending']],
    ['remove', (jobs) => jobs.remove('q', ID), ['pending', 'schedule', 'dead', 'metrics:removed']],
    ['cancel', (jobs) => jobs.cancel('q', ID), ['pending', 'schedule', 'metrics:removed']],
    ['reschedule', (jobs) => jobs.reschedule('q', ID, { delayMs: 1 }), ['schedule', 'pending']],
    ['trim', (jobs) => jobs.trim('q', { keepCount: 0 }), ['dead', 'metrics:removed']],
    ['list', (jobs) => jobs.list('q', 'pending'), ['pending']],
    ['counts', (jobs) => jobs.counts('q'), ['pending', 'active', 'schedule', 'dead', 'metrics:enqueued']],
    ['obliterate', (jobs) => jobs.obliterate('q'), ['pending', 'active', 'schedule', 'dead']],
  ];

  it.each(CALLS)('is refused by %s with an error that names it, and nothing is written', async (name, call, keys) => {
    const { jobs } = await stage.connect();
    for (const key of keys) {
      await stage.control.set(`emq:{q}:${key}`, 'x');
      const before = await dumpQueue(stage.control, 'q');
      const error = await failure(call(jobs));
      const kind = name === 'enqueueMany' ? 'EchoBulkError' : 'EchoStoreError'; // which also says the ids
      expect(error).toMatchObject({ name: kind, code: 'EMQTYPE', retryable: false });
      expect(error.message).toContain(`emq:{q}:${key} holds a string`);
      expect(await dumpQueue(stage.control, 'q')).toEqual(before);
      await stage.server.flush();
    }
  });

  it('does not hide whether the queue is paused, and does not keep it from being paused', async () => {
    const { jobs } = await stage.connect();
    await stage.control.set('emq:{q}:dead', 'x');
    expect(await jobs.pause('q')).toBe(true);
    expect(await jobs.resume('q')).toBe(true);
    await stage.control.del('emq:{q}:dead');
    expect(await jobs.isPaused('q')).toBe(false);
  });

  it('makes a consumer back off, and go on by itself once it is gone', async () => {
    const echo = await stage.connect();
    const errors: { code: string; message: string; at: number }[] = [];
    const ran: string[] = [];
    await stage.control.set('emq:{q}:pending', 'x');
    const started = performance.now();
    const consumer = echo.consume('q', { concurrency: 10 }, (job) => void ran.push(job.name));
    consumer.on('error', ({ code, message }: EchoError) =>
      errors.push({ code, message, at: performance.now() - started }),
    );
    await until(() => errors.length >= 3, { what: 'three errors' });
    // Under 20 a second: the third comes no sooner than two pauses after the first.
    expect(errors[2]!.at).toBeGreaterThan(300);
    for (const { code, message } of errors) {
      expect(code).toBe('EMQTYPE');
      expect(message).toContain('emq:{q}:pending');
    }
    await stage.control.del('emq:{q}:pending');
    await echo.jobs.enqueue('q', 'a');
    await until(() => ran.length === 1, { timeoutMs: 2000, what: 'the job, before a beat finds it' });
  });

  it('in the place of one row costs nobody else of the same claim anything', async () => {
    const echo = await stage.connect();
    const landed = await echo.jobs.enqueueMany(
      'q',
      numbers(5).map((n) => ({ name: String(n) })),
    );
    const row = `emq:{q}:job:${landed[2]!.id}`;
    const kept = await stage.control.hgetall(row);
    await stage.control.del(row);
    await stage.control.set(row, 'x');
    const ran: string[] = [];
    echo.consume('q', { concurrency: 5 }, (job) => void ran.push(job.name));
    await until(() => ran.length === 4, { what: 'the others' });
    expect(ran).toEqual(['0', '1', '3', '4']);
    // Put back as it was, so that the books balance again.
    await stage.control.del(row);
    await echo.close();
    await stage.control.hset(row, kept);
    await stage.control.zadd('emq:{q}:pending', 0, landed[2]!.id);
  });
});

describeWithProcess('compact and full encodings (C150)', () => {
  const stage = useStage();

  /** A queue's life, with everything that depends on no clock. */
  const life = async (jobs: Jobs) => {
    const notes: unknown[] = [];
    const landed = await jobs.enqueueMany(
      'q',
      numbers(200).map((n) => ({ name: `job ${n}`, data: { n }, opts: { priority: (n * 7) % 5, attempts: 2 } })),
    );
    const nth = new Map(landed.map(({ id }, n) => [id, n]));
    notes.push((await jobs.list('q', 'pending', { limit: 200 })).jobs.map(({ id }) => nth.get(id)));
    const claimed = await jobs.claim('q', { leaseMs: 60_000, count: 100 });
    notes.push(claimed.map(({ id, attempts }) => [nth.get(id), attempts]));
    for (const [i, { id, token }] of claimed.entries()) {
      if (i % 4 === 0) notes.push(await jobs.complete('q', id, token, { keepMs: i % 8 ? 0 : 60_000, result: i }));
      else if (i % 4 === 1) notes.push(await jobs.retry('q', id, token, { maxAttempts: 1, error: `failed ${i}` }));
      else if (i % 4 === 2) notes.push(await jobs.release('q', id, token));
      else notes.push(await jobs.cancel('q', id));
    }
    for (const state of ['pending', 'active', 'dead'] as const) {
      const { jobs: found } = await jobs.list('q', state, { limit: 1000 });
      notes.push(
        found.map(({ id, payload, result, ...row }) => ({ ...row, n: nth.get(id), text: payload.toString() })),
      );
    }
    notes.push(await jobs.trim('q', { keepCount: 5 }), await jobs.counts('q'));
    return notes;
  };

  it.each([
    ['hash', 'hash-max-listpack-entries'],
    ['zset', 'zset-max-listpack-entries'],
  ])('of a %s give the same results', async (_kind, setting) => {
    const results: unknown[] = [];
    const encodings = new Set<string>();
    for (const entries of ['1', '512']) {
      await stage.control.config('SET', setting, entries);
      const { jobs } = await stage.connect();
      results.push(await life(jobs));
      const [row] = await stage.control.keys('emq:{q}:job:*');
      encodings.add(await encodingOf(row!)).add(await encodingOf('emq:{q}:dead'));
      await jobs.obliterate('q', { force: true });
    }
    expect(results[1]).toEqual(results[0]);
    expect(encodings.size).toBeGreaterThan(1);
  });

  const encodingOf = async (key: string) => String(await stage.control.object('ENCODING', key));
});
