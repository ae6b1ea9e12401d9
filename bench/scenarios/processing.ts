/**
 * No-op processing of jobs that wait already, at concurrency 1, 16 and 100. The clock runs from the first handler's
 * start to the last one's; the CPU is that of the jobs' whole life: bulk enqueue, run, settled.
 */

import { Tally } from '../payload.js';
import { type Bench, expectRemaining, NODE_CPU, RATE, type Scenario, SERVER_CPU, startCpu } from '../scenario.js';
import { enqueueBulk } from './bulk.js';

const QUEUE = 'processing';

export const processing: Scenario[] = [scenario(1, 24_000), scenario(16, 40_000), scenario(100, 80_000)];

function scenario(concurrency: number, jobs: number): Scenario {
  return {
    name: `processing-${concurrency}`,
    title: `No-op processing, concurrency ${concurrency}`,
    figures: [
      RATE,
      { ...SERVER_CPU, label: 'server CPU per job, whole life' },
      { ...NODE_CPU, label: 'Node CPU per job, whole life' },
    ],
    measure: (bench) => run(bench, concurrency, bench.quick ? jobs / 10 : jobs),
  };
}

async function run(bench: Bench, concurrency: number, jobs: number): Promise<Record<string, number>> {
  const warmUp = jobs / 4;
  const session = await bench.adapter.connect(bench.url);
  const producer = await session.producer(QUEUE);
  const enqueueAndRun = async (from: number, count: number): Promise<number> => {
    await enqueueBulk(producer, from, count);
    const tally = new Tally(from, count);
    const consumer = await session.consume(QUEUE, concurrency, (data) => tally.mark(data));
    await tally.done;
    await expectRemaining(bench, QUEUE, 0);
    await consumer.close();
    return tally.jobsPerSecond;
  };
  await enqueueAndRun(0, warmUp);
  const readCpu = await startCpu(bench.redis);
  const rate = await enqueueAndRun(warmUp, jobs);
  const cpu = await readCpu(jobs);
  await session.close();
  return { rate, ...cpu };
}
