/**
 * Flows of one parent over 100 children, end to end: from the add of the first to the run of the last parent, ten flows in
 * flight at any time, consumers at concurrency 100. Once with all jobs in one queue, once with the children in another.
 */

import { indexOf, type JobData, jobData, jobDataRange, Tally } from '../payload.js';
import { type Bench, expectRemaining, NODE_CPU, type Scenario, SERVER_CPU, startCpu } from '../scenario.js';

const CHILDREN = 100;
/** The jobs of a flow, the parent first. */
const SIZE = 1 + CHILDREN;
const IN_FLIGHT = 10;
const CONCURRENCY = 100;

export const flows: Scenario[] = [
  scenario('flows', 'in one queue', { parent: 'flows', children: 'flows' }),
  scenario('flows-two-queues', 'the children in another queue', { parent: 'parents', children: 'children' }),
];

function scenario(name: string, where: string, queues: { parent: string; children: string }): Scenario {
  return {
    name,
    title: `Flows of 1 + ${CHILDREN} no-op jobs, ${where}`,
    libraries: ['echomq', 'bullmq'],
    figures: [
      { key: 'rate', label: 'flows per second', unit: 'flows/s' },
      { ...SERVER_CPU, label: 'server CPU per flow' },
      { ...NODE_CPU, label: 'Node CPU per flow' },
    ],
    measure: (bench) => run(bench, queues),
  };
}

async function run(bench: Bench, queues: { parent: string; children: string }): Promise<Record<string, number>> {
  const [warmUp, count] = bench.quick ? [10, 50] : [100, 500];
  const names = [...new Set(Object.values(queues))];
  const session = await bench.adapter.connect(bench.url);
  if (!session.flowProducer) throw new Error(`${bench.adapter.name} has no flows`);
  const producer = await session.flowProducer(queues);
  const runs = new Runs(warmUp + count);
  const consumers = [];
  for (const name of names) consumers.push(await session.consume(name, CONCURRENCY, (data) => runs.mark(data)));

  let next = 0;
  const addUpTo = async (end: number): Promise<void> => {
    while (next < end) {
      const first = next++ * SIZE;
      await producer.add(jobData(first), jobDataRange(first + 1, CHILDREN));
      await runs.parent(first);
    }
  };
  const runFlows = (end: number) => Promise.all(Array.from({ length: IN_FLIGHT }, () => addUpTo(end)));
  await runFlows(warmUp);
  const readCpu = await startCpu(bench.redis);
  const start = performance.now();
  await runFlows(warmUp + count);
  const elapsed = performance.now() - start;
  for (const name of names) await expectRemaining(bench, name, 0);
  const cpu = await readCpu(count);
  await runs.tally.done;
  for (const consumer of consumers) await consumer.close();
  await session.close();
  return { rate: (count / elapsed) * 1000, ...cpu };
}

/** Each job runs exactly once, and a parent behind all its children. */
class Runs {
  readonly tally: Tally;
  private readonly children: Uint8Array;
  private readonly parents = new Map<number, () => void>();
  private readonly early = new Set<number>();
  private readonly failed: Promise<never>;
  private fail!: (error: Error) => void;

  constructor(flows: number) {
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    this.failed.catch(() => {});
    this.tally = new Tally(0, flows * SIZE);
    this.children = new Uint8Array(flows);
  }

  mark(data: JobData): void {
    this.tally.mark(data);
    const index = indexOf(data);
    const flow = Math.floor(index / SIZE);
    if (index % SIZE > 0) {
      this.children[flow]! += 1;
      return;
    }
    if (this.children[flow] !== CHILDREN) {
      this.fail(new Error(`the parent of flow ${flow} ran behind ${this.children[flow]} children`));
    }
    const ran = this.parents.get(index);
    if (ran === undefined) this.early.add(index);
    else ran();
  }

  /** Resolves when this parent has run; rejects when something has gone wrong. */
  parent(index: number): Promise<void> {
    if (this.early.delete(index)) return Promise.resolve();
    const ran = new Promise<void>((resolve) => this.parents.set(index, resolve));
    return Promise.race([ran, this.tally.done, this.failed]);
  }
}
