/**
 * Idle-to-handler latency: one job every 5 ms, the queue empty and the consumer idle before each; from just before the
 * add to the handler's start. Once with producer and consumer in one process, once with the producer in another one.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { indexOf, jobData, Tally } from '../payload.js';
import { startRole } from '../role.js';
import { expectRemaining, type Figure, type Scenario } from '../scenario.js';
import { percentile } from '../statistics.js';

const QUEUE = 'latency';
const EVERY_MS = 5;
/** Five seconds: the first hundreds of jobs of a process run code that is not compiled yet, here as in the peers. */
const WARM_UP = 1_000;
/** One at a time is all that is needed, and what BullMQ is fastest with here. */
const CONCURRENCY = 1;
const figures: Figure[] = [
  { key: 'p50', label: 'idle to handler, p50', unit: 'ms' },
  { key: 'p99', label: 'idle to handler, p99', unit: 'ms' },
];

export const latency: Scenario = {
  name: 'latency',
  title: 'Idle to handler at 200 jobs/s, one process',
  figures,
  async measure(bench) {
    const warmUp = bench.quick ? 20 : WARM_UP;
    const jobs = bench.quick ? 100 : 600;
    const session = await bench.adapter.connect(bench.url);
    const producer = await session.producer(QUEUE);
    const sentAt = new Float64Array(warmUp + jobs);
    const tally = new Tally(0, warmUp + jobs);
    const latencies: number[] = [];
    let handled = (): void => {};
    const consumer = await session.consume(QUEUE, CONCURRENCY, (data) => {
      const index = indexOf(data);
      latencies.push(performance.now() - sentAt[index]!);
      tally.mark(data);
      handled();
    });
    await sleep(500);
    for (let index = 0; index < warmUp + jobs; index++) {
      const ran = new Promise<void>((resolve) => {
        handled = resolve;
      });
      sentAt[index] = performance.now();
      await producer.add(jobData(index));
      await Promise.race([ran, tally.done]);
      await sleep(Math.max(1, EVERY_MS - (performance.now() - sentAt[index]!)));
    }
    await tally.done;
    await expectRemaining(bench, QUEUE, 0);
    await consumer.close();
    await session.close();
    return summary(latencies.slice(warmUp));
  },
};

export const latencyTwoProcesses: Scenario = {
  name: 'latency-two-processes',
  title: 'Idle to handler at 200 jobs/s, two processes',
  figures,
  async measure(bench) {
    const warmUp = bench.quick ? 20 : WARM_UP;
    const jobs = bench.quick ? 100 : 500;
    const session = await bench.adapter.connect(bench.url);
    const tally = new Tally(0, warmUp + jobs);
    const latencies: number[] = [];
    const consumer = await session.consume(QUEUE, CONCURRENCY, (data) => {
      const now = process.hrtime.bigint();
      latencies.push(Number(now - BigInt(data.at!)) / 1e6);
      tally.mark(data);
    });
    await sleep(300);
    const producer = startRole('producer', {
      library: bench.adapter.name,
      url: bench.url,
      queue: QUEUE,
      count: warmUp + jobs,
      everyMs: EVERY_MS,
    });
    await tally.done;
    await producer.stop();
    await expectRemaining(bench, QUEUE, 0);
    await consumer.close();
    await session.close();
    return summary(latencies.slice(warmUp));
  },
};

function summary(latencies: number[]): Record<string, number> {
  return { p50: percentile(latencies, 50), p99: percentile(latencies, 99) };
}
