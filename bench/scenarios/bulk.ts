/** Bulk enqueue, 1,000 jobs a call, one call after the other. */

import type { Producer } from '../adapters/adapter.js';
import { jobDataRange } from '../payload.js';
import { expectRemaining, NODE_CPU, RATE, type Scenario, SERVER_CPU, startCpu } from '../scenario.js';

export const BATCH = 1_000;
const QUEUE = 'bulk';

export const bulk: Scenario = {
  name: 'bulk',
  title: `Bulk enqueue by ${BATCH.toLocaleString('en')}`,
  figures: [RATE, SERVER_CPU, NODE_CPU],
  async measure(bench) {
    const warmUp = bench.quick ? 1_000 : 10_000;
    const jobs = bench.quick ? 5_000 : 60_000;
    const session = await bench.adapter.connect(bench.url);
    const producer = await session.producer(QUEUE);
    await enqueueBulk(producer, 0, warmUp);
    const readCpu = await startCpu(bench.redis);
    const start = performance.now();
    await enqueueBulk(producer, warmUp, jobs);
    const elapsed = performance.now() - start;
    const cpu = await readCpu(jobs);
    await expectRemaining(bench, QUEUE, warmUp + jobs);
    await session.close();
    return { rate: (jobs / elapsed) * 1000, ...cpu };
  },
};

export async function enqueueBulk(producer: Producer, from: number, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += BATCH) {
    await producer.addMany(jobDataRange(from + sent, Math.min(BATCH, count - sent)));
  }
}
