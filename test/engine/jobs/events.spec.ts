import { describe, expect, it } from '@jest/globals';
import type { Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { latch, numbers, quiet, useStage } from './stage.js';

describe('the events of a consumer', () => {
  const stage = useStage();

  it('completed: once the server has taken it, with the job and its result', async () => {
    const echo = await stage.connect();
    const seen: [Job, unknown, Promise<string | undefined>][] = [];
    const consumer = echo.consume('q', { keepMs: 60_000 }, (job: Job<number>) => job.data * 2);
    consumer.on('completed', (job, result) => {
      seen.push([job, result, echo.jobs.get('q', job.id).then((row) => row?.state)]);
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(20).map((n) => ({ name: `job ${n}`, data: n })),
    );
    await until(() => seen.length === 20, { what: 'all' });
    expect(seen.map(([job, result]) => [job.name, job.data, job.attempt, result])).toEqual(
      numbers(20).map((n) => [`job ${n}`, n, 1, n * 2]),
    );
    expect(new Set(await Promise.all(seen.map(([, , state]) => state)))).toEqual(new Set(['done']));
  });

  it('failed: for every failed attempt, with where the job went', async () => {
    const echo = await stage.connect();
    const outcomes: string[] = [];
    const backoff = (failures: number) => (failures === 1 ? 0 : 5);
    const consumer = echo.consume('q', { attempts: 3, backoff }, (job) => {
      throw new Error(`attempt ${job.attempt}`);
    });
    consumer.on('failed', (job, error, outcome) =>
      outcomes.push(`${job.name}: ${(error as Error).message} ${outcome}`),
    );
    await echo.jobs.enqueue('q', 'a');
    await until(() => outcomes.length === 3, { what: 'three failures' });
    expect(outcomes).toEqual(['a: attempt 1 pending', 'a: attempt 2 scheduled', 'a: attempt 3 dead']);
  });

  it('lease-lost: when the row is gone, and no other event for that run', async () => {
    const echo = await stage.connect();
    const gate = latch();
    const seen: string[] = [];
    const consumer = echo.consume('q', {}, (job) => (job.name === 'lost' ? gate.opened : undefined));
    consumer.on('lease-lost', (job, why) => seen.push(`lost ${job.name}: ${why}`));
    consumer.on('completed', (job) => seen.push(`completed ${job.name}`));
    await echo.jobs.enqueue('q', 'lost');
    await until(() => consumer.active === 1, { what: 'the handler' });
    expect(await echo.jobs.obliterate('q', { force: true })).toBe(1);
    gate.open();
    await until(() => seen.length > 0, { what: 'the event' });
    await quiet(echo, 'q');
    expect(seen).toEqual([expect.stringMatching(/^lost lost: .*gone/)]);
  });

  it('say nothing of jobs that are snoozed or given back', async () => {
    const { Snooze } = await import('../../../lib/core.js');
    const echo = await stage.connect();
    const seen: string[] = [];
    let runs = 0;
    const consumer = echo.consume('q', {}, () => {
      if (runs++ === 0) throw new Snooze(0);
    });
    for (const event of ['completed', 'failed', 'lease-lost'] as const) consumer.on(event, () => seen.push(event));
    await echo.jobs.enqueue('q', 'a');
    await until(() => seen.length > 0, { what: 'an event' });
    expect(seen).toEqual(['completed']);
  });

  it('can be listened to once, and no longer', async () => {
    const echo = await stage.connect();
    const seen = { on: 0, once: 0, off: 0 };
    const off = () => {
      seen.off += 1;
    };
    const consumer = echo.consume('q', {}, () => undefined);
    const chained = consumer
      .on('completed', () => {
        seen.on += 1;
      })
      .once('completed', () => {
        seen.once += 1;
      })
      .on('completed', off)
      .off('completed', off);
    expect(chained).toBe(consumer);
    await echo.jobs.enqueueMany(
      'q',
      numbers(3).map(() => ({ name: 'a' })),
    );
    await until(() => seen.on === 3, { what: 'all' });
    expect(seen).toEqual({ on: 3, once: 1, off: 0 });
  });

  it('error: trouble goes to its listener, and to onError only without one', async () => {
    const echo = await stage.connect();
    const told: string[] = [];
    const consumer = echo.consume('q', {}, () => undefined);
    consumer.on('error', (error) => told.push(error.code));
    await stage.control.set('emq:{q}:active', 'x');
    await stage.control.zadd('emq:{q}:hungry', 0, 'nobody');
    consumer.pause();
    consumer.resume();
    await until(() => told.length > 0, { what: 'the error' });
    await stage.control.del('emq:{q}:active');
    expect(told[0]).toBe('EMQTYPE');
  });
});
