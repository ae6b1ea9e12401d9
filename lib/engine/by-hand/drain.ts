import type { Complete } from '../../kernel/complete.js';
import { EchoStateError } from '../../kernel/errors.js';
import type { ClaimedRow } from '../../wire/transitions/index.js';
import type { QueueByHand, RunEnd } from './queue-by-hand.js';

export interface DrainOptions {
  /** Also runs what waits for its time, as if it passed: the earliest first, retries and snoozes included. Default false. */
  scheduled?: boolean | undefined;
  /** Also runs what is enqueued or retried meanwhile, until nothing is left. False: what is there now, once. Default true. */
  recursive?: boolean | undefined;
  /** Runs after which it gives up: jobs can put themselves back for ever. Default 1,000. */
  limit?: number | undefined;
  /** Throws what a handler threw, instead of counting on: the jobs behind it are put back. Default false. */
  throwOnFailure?: boolean | undefined;
}

/** An attempt that failed. */
export interface DrainFailure {
  queue: string;
  id: string;
  name: string;
  data: unknown;
  /** Which charged attempt it was, from 1. */
  attempt: number;
  /** What the handler threw. */
  error: unknown;
  /** It was the last one. */
  dead: boolean;
}

/** What became of the runs. A job that ran three times is in it three times. */
export interface DrainResult {
  completed: number;
  /** Attempts that failed and have another behind them. */
  failed: number;
  /** Jobs that died: out of attempts, or discarded. */
  dead: number;
  snoozed: number;
  /** Runs that ended by waiting for children. */
  waiting: number;
  /** Jobs that nobody here handles, put back. */
  unhandled: number;
  /** Runs whose job had been taken away meanwhile: removed, or claimed by somebody else. */
  lost: number;
  /** The failures, in the order they happened; also those that were the last. */
  errors: DrainFailure[];
}

interface Taken {
  readonly from: QueueByHand;
  readonly row: ClaimedRow;
}

/**
 * Runs the jobs of these queues one after the other: first everything due is claimed, queue by queue, then it is run in that
 * order; then the next round.
 */
export class Drain {
  readonly result: DrainResult = {
    completed: 0,
    failed: 0,
    dead: 0,
    snoozed: 0,
    waiting: 0,
    unhandled: 0,
    lost: 0,
    errors: [],
  };
  private runs = 0;
  /** Nobody will handle them later either: time does not pass for their sake. */
  private readonly unhandled = new Set<string>();

  constructor(
    private readonly queues: readonly QueueByHand[],
    private readonly options: Complete<DrainOptions>,
  ) {}

  /** @throws EchoStateError at the limit, or when the app is closing; under `throwOnFailure` what a handler threw */
  async run(): Promise<DrainResult> {
    const { scheduled, recursive, limit } = this.options;
    for (;;) {
      const taken = await this.takeDue(limit - this.runs);
      // Without recursion all of it is claimed before anything runs, and so what comes of it is not among it.
      while (scheduled && (taken.length === 0 || !recursive) && (await this.pass())) {
        taken.push(...(await this.takeDue(limit - this.runs - taken.length)));
      }
      if (!recursive && taken.length >= limit) await this.refuseMore(taken);
      await this.runAll(taken);
      if (recursive && this.runs >= limit) await this.refuseMore([]);
      if (taken.length === 0 || !recursive) return this.result;
    }
  }

  private async takeDue(most: number): Promise<Taken[]> {
    for (const relay of new Set(this.queues.map(({ relay }) => relay))) await relay();
    const taken: Taken[] = [];
    for (const from of this.queues) {
      for (const row of await from.take(most - taken.length)) taken.push({ from, row });
    }
    return taken;
  }

  /** Lets time pass until the next scheduled job is due. False when there is none. */
  private async pass(): Promise<boolean> {
    const ms = await this.nextInMs();
    if (ms === undefined) return false;
    for (const queue of this.queues) await queue.letTimePass(ms);
    return true;
  }

  private async nextInMs(): Promise<number | undefined> {
    const waits: number[] = [];
    for (const queue of this.queues) {
      const ms = await queue.nextInMs(this.unhandled);
      if (ms !== undefined) waits.push(ms);
    }
    return waits.length > 0 ? Math.min(...waits) : undefined;
  }

  private async runAll(taken: readonly Taken[]): Promise<void> {
    let at = 0;
    try {
      while (at < taken.length) {
        const { from, row } = taken[at]!;
        const end = await from.runOne(row);
        at += 1;
        this.runs += 1;
        this.count(row.id, end);
        const hasFailed = end.outcome === 'failed' || end.outcome === 'dead';
        if (hasFailed && this.options.throwOnFailure) throw end.error;
      }
    } finally {
      await this.giveBack(taken.slice(at));
    }
  }

  private async giveBack(taken: readonly Taken[]): Promise<void> {
    for (const queue of new Set(taken.map(({ from }) => from))) {
      await queue.giveBack(taken.filter(({ from }) => from === queue).map(({ row }) => row));
    }
  }

  private count(id: string, { outcome, job, error }: RunEnd): void {
    if (outcome === 'unhandled') {
      if (!this.unhandled.has(id)) this.result.unhandled += 1;
      this.unhandled.add(id);
      return;
    }
    this.result[outcome] += 1;
    if (job === undefined || (outcome !== 'failed' && outcome !== 'dead')) return;
    const { queue, name, data, attempt } = job;
    this.result.errors.push({ queue, id, name, data, attempt, error, dead: outcome === 'dead' });
  }

  /** `taken`: what has been claimed and not run yet. */
  private async refuseMore(taken: readonly Taken[]): Promise<void> {
    const { scheduled, limit } = this.options;
    const places: string[] = [];
    for (const queue of this.queues) {
      if (await queue.isClaimable()) places.push(`pending in '${queue.queue}'`);
      else if (scheduled && (await queue.nextInMs(this.unhandled)) !== undefined)
        places.push(`scheduled in '${queue.queue}'`);
    }
    if (places.length === 0) return;
    await this.giveBack(taken);
    const { completed, failed, dead, snoozed } = this.result;
    throw new EchoStateError(
      `drain: more than ${limit} runs. So far ${completed} completed, ${failed} failed, ${dead} dead, ${snoozed} snoozed; ` +
        `left are jobs ${places.join(', ')}. Do they enqueue or snooze themselves for ever? If not, raise option 'limit'`,
    );
  }
}
