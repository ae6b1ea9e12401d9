import type { Job } from '../../lib/core.js';
import { until } from '../support/until.js';

/** One run of a job whose handler waits to be told how to end. */
export interface Run {
  readonly job: Job;
  end(result?: unknown): void;
  fail(error: unknown): void;
}

/** A handler whose runs begin and end under a test's control. */
export class Gates {
  readonly runs: Run[] = [];

  readonly handler = (job: Job): Promise<unknown> =>
    new Promise((end, fail) => {
      this.runs.push({ job, end, fail });
    });

  /** The n-th run (from 1) since the beginning; waits for it to start. */
  async run(n: number, timeoutMs = 5_000): Promise<Run> {
    const progress = () => this.runs.length;
    await until(() => this.runs.length >= n, { timeoutMs, progress, what: `run ${n} to start` });
    return this.runs[n - 1]!;
  }
}

/** A handler that ends at once and remembers. */
export class Ledger {
  readonly jobs: Job[] = [];

  readonly handler = (job: Job): void => {
    this.jobs.push(job);
  };

  /** Job ids in the order they were run. */
  get ids(): string[] {
    return this.jobs.map((job) => job.id);
  }

  async ran(n: number, timeoutMs = 5_000): Promise<void> {
    const progress = () => this.jobs.length;
    await until(() => this.jobs.length >= n, { timeoutMs, progress, what: `${n} jobs to run` }).catch(
      (error: Error) => {
        throw new Error(`${error.message}: ${this.jobs.length} did`);
      },
    );
  }
}
