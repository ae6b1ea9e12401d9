import { describe, expect, it } from '@jest/globals';
import type { Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { latch, numbers, quiet, useStage } from './stage.js';

describe('concurrency', () => {
  const stage = useStage();

  it.each([1, 2, 7, 100].flatMap((concurrency) => [true, false].map((claimAhead) => ({ concurrency, claimAhead }))))(
    'is exact: $concurrency slots, claimAhead $claimAhead',
    async ({ concurrency, claimAhead }) => {
      const echo = await stage.connect();
      const total = 3000;
      let running = 0;
      let most = 0;
      const started: number[] = [];
      const consumer = echo.consume('q', { concurrency, claimAhead }, (job: Job<number>) => {
        most = Math.max(most, ++running);
        started.push(job.data);
        if (job.data % 3 === 0) {
          running -= 1;
          return undefined; // at once
        }
        const turn = job.data % 3 === 1 ? Promise.resolve() : new Promise((next) => setImmediate(next));
        return turn.then(() => {
          running -= 1;
        });
      });
      await echo.jobs.enqueueMany(
        'q',
        numbers(total).map((n) => ({ name: 'a', data: n })),
      );
      await until(async () => (await echo.jobs.counts('q')).metrics.completed === total, {
        what: 'all',
        progress: () => started.length,
      });
      expect(most).toBeLessThanOrEqual(concurrency);
      expect(consumer.active).toBe(0);
      expect(started).toHaveLength(total);
      expect(new Set(started).size).toBe(total);
      if (concurrency === 1) expect(started).toEqual(numbers(total));
    },
  );

  it.each([1, 7, 600])('of %i is used in full, and no further', async (concurrency) => {
    const echo = await stage.connect();
    const gate = latch();
    const consumer = echo.consume('q', { concurrency }, () => gate.opened);
    await echo.jobs.enqueueMany(
      'q',
      numbers(concurrency + 50).map(() => ({ name: 'a' })),
    );
    await until(() => consumer.active === concurrency, { what: 'all slots to be taken' });
    await quiet(echo, 'q');
    expect(await echo.jobs.counts('q')).toMatchObject({ active: concurrency, pending: 50 });
    gate.open();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === concurrency + 50, { what: 'the rest' });
  });

  it('of 1 keeps mint order while jobs keep coming', async () => {
    const [producer, echo] = [await stage.connect(), await stage.connect()];
    const started: string[] = [];
    const minted: string[] = [];
    echo.consume('q', {}, (job) => void started.push(job.id));
    for (let round = 0; round < 100; round++) {
      const results = await Promise.all(numbers(10).map(() => producer.jobs.enqueue('q', 'a')));
      minted.push(...results.map(({ id }) => id));
    }
    await until(() => started.length === 1000, { what: 'all', progress: () => started.length });
    expect(started).toEqual(minted);
  });

  it.each([true, false])(
    'of 1 keeps mint order when handlers block the event loop now and then, claimAhead %p',
    async (claimAhead) => {
      const echo = await stage.connect();
      const started: number[] = [];
      echo.consume('q', { claimAhead }, (job: Job<number>) => {
        started.push(job.data);
        if (job.data % 150 === 149) block(40);
      });
      await echo.jobs.enqueueMany(
        'q',
        numbers(3000).map((n) => ({ name: 'a', data: n })),
      );
      await until(() => started.length >= 3000, { what: 'all', progress: () => started.length });
      expect(started).toEqual(numbers(3000));
    },
  );

  it('of 1 keeps mint order when handlers are slow now and then', async () => {
    const echo = await stage.connect();
    const started: number[] = [];
    echo.consume('q', {}, async (job: Job<number>) => {
      started.push(job.data);
      if (job.data % 150 === 149) await quiet(echo, 'q', 60);
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(3000).map((n) => ({ name: 'a', data: n })),
    );
    await until(() => started.length >= 3000, { what: 'all', progress: () => started.length });
    expect(started).toEqual(numbers(3000));
  });

  it('holds for two queues of one process separately', async () => {
    const echo = await stage.connect();
    const most: Record<string, number> = { one: 0, two: 0 };
    const running: Record<string, number> = { one: 0, two: 0 };
    const handler = async ({ queue }: Job) => {
      most[queue] = Math.max(most[queue]!, ++running[queue]!);
      await new Promise((next) => setImmediate(next));
      running[queue]! -= 1;
    };
    echo.consume('one', { concurrency: 3 }, handler);
    echo.consume('two', { concurrency: 5 }, handler);
    for (const queue of ['one', 'two']) {
      await echo.jobs.enqueueMany(
        queue,
        numbers(300).map(() => ({ name: 'a' })),
      );
    }
    const done = async (queue: string) => (await echo.jobs.counts(queue)).metrics.completed === 300;
    await until(async () => (await done('one')) && (await done('two')), { what: 'both' });
    expect(most).toEqual({ one: 3, two: 5 });
  });

  it('is not exceeded when attempts fail', async () => {
    const echo = await stage.connect();
    let running = 0;
    let most = 0;
    let ran = 0;
    const options = { concurrency: 4, attempts: 3, backoff: { type: 'fixed' as const, delayMs: 0 } };
    echo.consume('q', options, async (job: Job<number>) => {
      most = Math.max(most, ++running);
      ran += 1;
      await new Promise((next) => setImmediate(next));
      running -= 1;
      if (job.data % 2 && job.attempt < 3) throw new Error('again');
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(400).map((n) => ({ name: 'a', data: n })),
    );
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 400, {
      what: 'all',
      progress: () => ran,
    });
    expect(most).toBe(4);
    expect((await echo.jobs.counts('q')).metrics).toMatchObject({ retried: 400, failed: 0 });
  });
});

/** Nothing else happens in this process for so long. */
function block(ms: number): void {
  const over = performance.now() + ms;
  while (performance.now() < over);
}
