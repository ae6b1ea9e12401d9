/** Single enqueues, 64 of them in flight at any time: what a busy web process does. */

import type { Producer } from '../adapters/adapter.js';
import { jobData } from '../payload.js';
import { expectRemaining, NODE_CPU, RATE, type Scenario, SERVER_CPU, startCpu } from '../scenario.js';

const IN_FLIGHT = 64;
const QUEUE = 'enqueue';

export const enqueue: Scenario = {
  name: 'enqueue',
  title: `Single enqueues, ${IN_FLIGHT} in flight`,
  figures: [RATE, SERVER_CPU, NODE_CPU],
  async measure(bench) {
    const warmUp = bench.quick ? 1_000 : 10_000;
    const jobs = bench.quick ? 4_000 : 200_000;
    const session = await bench.adapter.connect(bench.url);
    const producer = await session.producer(QUEUE);
    await enqueueAll(producer, 0, warmUp);
    const readCpu = await startCpu(bench.redis);
    const start = performance.now();
    await enqueueAll(producer, warmUp, jobs);
    const elapsed = performance.now() - start;
    const cpu = await readCpu(jobs);
    await expectRemaining(bench, QUEUE, warmUp + jobs);
    await session.close();
    return { rate: (jobs / elapsed) * 1000, ...cpu };
  },
};

async function enqueueAll(producer: Producer, from: number, count: number): Promise<void> {
  let next = from;
  const slot = async (): Promise<void> => {
    while (next < from + count) await producer.add(jobData(next++));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, slot));
}
