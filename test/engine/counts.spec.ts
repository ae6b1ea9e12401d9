import { describe, expect, it } from '@jest/globals';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { useRig } from './rig.js';

const JOBS = 600;
const CONSUMERS = 20;
const CONCURRENCY = 2;

describe('counts', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  it('add up in every look, while twenty consumers claim by priority, and fail (C124)', async () => {
    const { jobs } = await rig.connect();
    for (let i = 0; i < CONSUMERS; i++) {
      const echo = await rig.connect();
      const options = {
        concurrency: CONCURRENCY,
        attempts: 2,
        backoff: { type: 'fixed', delayMs: 1 },
        claimAhead: false,
      };
      echo.consume('q', options as never, async (job) => {
        await new Promise((next) => setImmediate(next));
        if (Number(job.data) % 3 === 0 && (job.attempt === 1 || Number(job.data) % 6 === 0)) throw new Error('boom');
      });
    }
    const landed = jobs.enqueueMany(
      'q',
      Array.from({ length: JOBS }, (_, i) => ({ name: 'job', data: i, opts: { priority: i % 5 } })),
    );
    let looks = 0;
    let left = 0;
    await landed;
    await until(
      async () => {
        const { pending, active, scheduled, dead, metrics } = await jobs.counts('q');
        looks += 1;
        expect(pending + active + scheduled + dead + metrics.completed).toBe(JOBS);
        expect(active).toBeLessThanOrEqual(CONSUMERS * CONCURRENCY);
        left = pending + active + scheduled;
        return left === 0;
      },
      { what: 'all jobs to end', progress: () => left },
    );
    expect(looks).toBeGreaterThan(5);
    expect(await jobs.counts('q')).toMatchObject({
      pending: 0,
      active: 0,
      scheduled: 0,
      dead: JOBS / 6,
      metrics: { enqueued: JOBS, completed: JOBS - JOBS / 6, failed: JOBS / 6, retried: JOBS / 3 },
    });
    await expectInvariants(server.client(), 'q');
  });
});
