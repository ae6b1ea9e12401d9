import { afterEach } from '@jest/globals';
import type { ConsumerOptions, EchoMq, FlowNode, FlowOptions, Job, JobState } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { queuesOn, type Stage, useStage } from '../jobs/stage.js';
import { expectBalance } from './balance.js';

/**
 * The stage of the jobs' specs, for flows: after each test, and before anything is closed, all that the queues owe each other
 * must get applied, and the invariants hold in and between them.
 */
export function useFlowStage(): Stage {
  let stage: Stage | undefined;
  afterEach(async () => {
    const queues = (await queuesOn(stage!.control)).map(({ queue }) => queue);
    await expectBalance(stage!.control, queues);
  });
  stage = useStage();
  return stage;
}

/** A node of a flow. */
export function node(queue: string, name: string, children: readonly FlowNode[] = [], opts?: FlowOptions): FlowNode {
  return { queue, name, children, ...(opts && { opts }) };
}

/** Waits until a job is in this state. */
export async function stateOf(echo: EchoMq, queue: string, id: string, state: JobState): Promise<void> {
  await until(async () => (await echo.jobs.get(queue, id))?.state === state, { what: `${id} to be ${state}` });
}

/** What ran, in the order in which it began. */
export class Diary {
  readonly jobs: Job[] = [];

  /** Consumes queues; a job without a handler of its name answers its name. */
  serve(
    echo: EchoMq,
    queues: readonly string[],
    handlers: Record<string, (job: Job) => unknown> = {},
    options: ConsumerOptions = {},
  ): void {
    for (const queue of queues) {
      echo.consume(queue, options, (job) => {
        this.jobs.push(job);
        return job.name in handlers ? handlers[job.name]!(job) : job.name;
      });
    }
  }

  get names(): string[] {
    return this.jobs.map(({ name }) => name);
  }

  /** How often a job of this name has begun. */
  count(name: string): number {
    return this.names.filter((one) => one === name).length;
  }

  /** A job of this name has begun. */
  async began(name: string, times = 1): Promise<Job> {
    await until(() => this.count(name) >= times, { what: `${name} to run` });
    return this.jobs.filter((job) => job.name === name)[times - 1]!;
  }
}
