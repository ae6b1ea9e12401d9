/**
 * Lateness of delayed jobs with an idle consumer: 500 jobs due at moments spread over 0.5 to 3 s from now. Due is the
 * client's clock just before the add, plus the delay; late is the handler's start after that, on the same clock.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { indexOf, jobData, Tally } from '../payload.js';
import { expectRemaining, type Scenario } from '../scenario.js';
import { percentile } from '../statistics.js';

const QUEUE = 'delayed';
const FIRST_MS = 500;

export const delayed: Scenario = {
  name: 'delayed',
  title: 'Delayed jobs, idle consumer',
  figures: [
    { key: 'p50', label: 'late, p50', unit: 'ms' },
    { key: 'p99', label: 'late, p99', unit: 'ms' },
    { key: 'earliest', label: 'late, least (below 0 is early)', unit: 'ms', incomparable: true },
  ],
  async measure(bench) {
    const jobs = bench.quick ? 100 : 500;
    const spreadMs = bench.quick ? 500 : 2_500;
    const session = await bench.adapter.connect(bench.url, { delayedJobs: true });
    const producer = await session.producer(QUEUE);
    const due = new Float64Array(jobs);
    const late: number[] = [];
    const tally = new Tally(0, jobs, 30_000);
    const consumer = await session.consume(QUEUE, 100, (data) => {
      late.push(clock() - due[indexOf(data)]!);
      tally.mark(data);
    });
    await sleep(500);
    for (let index = 0; index < jobs; index++) {
      // 7919 is a prime that divides no `jobs` used here: every slot once, in an order that looks random.
      const delayMs = FIRST_MS + Math.round((((index * 7919) % jobs) / jobs) * spreadMs);
      due[index] = clock() + delayMs;
      await producer.addDelayed(jobData(index), delayMs);
    }
    await tally.done;
    await expectRemaining(bench, QUEUE, 0);
    await consumer.close();
    await session.close();
    return { p50: percentile(late, 50), p99: percentile(late, 99), earliest: Math.min(...late) };
  },
};

/** Wall clock in ms, with a fraction. */
function clock(): number {
  return performance.timeOrigin + performance.now();
}
