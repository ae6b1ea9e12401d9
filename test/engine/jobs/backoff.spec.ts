import { describe, expect, it } from '@jest/globals';
import type { Backoff, EnqueueOptions } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { numbers, serverMs, useStage } from './stage.js';

const HOUR_MS = 3_600_000;

describe('the wait before the next attempt', () => {
  const stage = useStage();

  /** Lets a job fail `failures` times and answers the waits the server was given, at most `slackMs` too long. */
  const waits = async (failures: number, backoff: Backoff | undefined, opts: EnqueueOptions = {}) => {
    const echo = await stage.connect();
    let failed = 0;
    const startedAt: number[] = [];
    const consumer = echo.consume('q', { attempts: 100, backoff }, async () => {
      startedAt.push(await serverMs(stage.control));
      throw new Error('again');
    });
    consumer.on('failed', () => failed++);
    const { id } = await echo.jobs.enqueue('q', 'a', undefined, opts);
    const seen: { atLeast: number; atMost: number }[] = [];
    for (let n = 1; n <= failures; n++) {
      await until(() => failed === n, { what: `failure ${n}` });
      const at = Number(await stage.control.zscore('emq:{q}:schedule', id));
      seen.push({ atLeast: at - (await serverMs(stage.control)), atMost: at - startedAt.at(-1)! });
      await echo.jobs.reschedule('q', id, { delayMs: 0 });
    }
    await echo.close();
    return seen;
  };
  const expectWaits = (seen: { atLeast: number; atMost: number }[], expected: number[]) => {
    expect(seen).toHaveLength(expected.length);
    for (const [i, ms] of expected.entries()) {
      expect(seen[i]!.atLeast).toBeLessThanOrEqual(ms);
      expect(seen[i]!.atMost).toBeGreaterThanOrEqual(ms);
    }
  };

  it('doubles from one second by default', async () => {
    expectWaits(await waits(5, undefined), [1000, 2000, 4000, 8000, 16_000]);
  });

  it('stays the same when fixed', async () => {
    expectWaits(await waits(3, { type: 'fixed', delayMs: 7000 }), [7000, 7000, 7000]);
  });

  it('doubles up to its cap, which is an hour unless given', async () => {
    const capped: Backoff = { type: 'exponential', delayMs: 10_000, maxMs: 25_000 };
    expectWaits(await waits(4, capped), [10_000, 20_000, 25_000, 25_000]);
    await stage.server.flush();
    expectWaits(await waits(2, { type: 'exponential', delayMs: HOUR_MS - 1 }), [HOUR_MS - 1, HOUR_MS]);
  });

  it('is what a function says, asked with the failures and the error', async () => {
    const asked: [number, string][] = [];
    const seen = await waits(3, (failures, error) => {
      asked.push([failures, (error as Error).message]);
      return failures * 10_000.4;
    });
    expectWaits(seen, [10_000, 20_001, 30_001]);
    expect(asked).toEqual([
      [1, 'again'],
      [2, 'again'],
      [3, 'again'],
    ]);
  });

  it.each([Number.NaN, -5, Number.POSITIVE_INFINITY, 'soon', undefined])(
    'is an hour when a function says nonsense: %p',
    async (ms) => {
      expectWaits(await waits(1, () => ms as number), [HOUR_MS]);
    },
  );

  it('is the default, and a fault is told, when a function throws', async () => {
    const faults: Error[] = [];
    const echo = await stage.connect({ onError: (error) => faults.push(error) });
    const options = {
      backoff: () => {
        throw new Error('no idea');
      },
    };
    const outcomes: string[] = [];
    echo
      .consume('q', options, () => {
        throw new Error('again');
      })
      .on('failed', (_job, _error, outcome) => outcomes.push(outcome));
    await echo.jobs.enqueue('q', 'a');
    await until(() => outcomes.length === 1, { what: 'the failure' });
    expect(outcomes).toEqual(['scheduled']);
    expect(faults.map(({ message }) => message)).toEqual([
      expect.stringMatching(/backoff function of queue 'q' threw: Error: no idea/),
    ]);
  });

  it("is the job's own where it has one", async () => {
    const own: EnqueueOptions = { backoff: { type: 'exponential', delayMs: 3000, maxMs: 5000 } };
    expectWaits(await waits(2, () => 1, own), [3000, 5000]);
  });

  it('is shortened at random by up to its jitter', async () => {
    const echo = await stage.connect();
    let failed = 0;
    echo
      .consume('q', { concurrency: 50, backoff: { type: 'fixed', delayMs: 100_000, jitter: 0.5 } }, () => {
        throw new Error('again');
      })
      .on('failed', () => failed++);
    const before = await serverMs(stage.control);
    await echo.jobs.enqueueMany(
      'q',
      numbers(200).map(() => ({ name: 'a' })),
    );
    await until(() => failed === 200, { what: '200 failures' });
    const after = await serverMs(stage.control);
    const scores = (await stage.control.zrange('emq:{q}:schedule', '0', '-1', 'WITHSCORES')).filter((_, i) => i % 2);
    const at = scores.map(Number);
    expect(at).toHaveLength(200);
    expect(Math.min(...at)).toBeGreaterThanOrEqual(before + 50_000);
    expect(Math.max(...at)).toBeLessThanOrEqual(after + 100_000);
    expect(Math.min(...at)).toBeLessThan(after + 60_000);
    expect(Math.max(...at)).toBeGreaterThan(before + 90_000);
  });

  it('of nothing puts the job back at once', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    echo.consume('q', { backoff: { type: 'fixed', delayMs: 0 }, attempts: 2 }, (job) => {
      ran.push(`${job.name} ${job.attempt}`);
      if (job.name === 'bad') throw new Error('again');
    });
    await echo.jobs.enqueue('q', 'bad');
    await until(async () => (await echo.jobs.counts('q')).dead === 1, { what: 'the death' });
    expect(ran).toEqual(['bad 1', 'bad 2']);
  });
});
