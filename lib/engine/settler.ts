import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Outcome, RetryOutcome } from '../kernel/outcome.js';
import type { Executor } from '../wire/executor.js';
import {
  type CompleteItem,
  complete,
  type ReleaseItem,
  type RetryItem,
  release,
  retry,
} from '../wire/transitions/index.js';
import type { Job } from './job.js';
import type { Metronome } from './metronome.js';

/** What became of a settlement. */
export interface SettlementEvents {
  settled(job: Job, outcome: Outcome | RetryOutcome, settlement: Settlement): void;
  fault(error: EchoError): void;
}

export type Settlement =
  | { kind: 'complete'; value: unknown }
  | { kind: 'retry'; error: unknown; expected: RetryOutcome }
  | { kind: 'release' };

const MOST_PER_CALL = 500;
const PAUSE_AFTER_FAULT_MS = 500;

class Bundle<Item> {
  items: Item[] = [];
  jobs: Job[] = [];
  settlements: Settlement[] = [];

  add(item: Item, job: Job, settlement: Settlement): void {
    this.items.push(item);
    this.jobs.push(job);
    this.settlements.push(settlement);
  }

  /** Hands out everything gathered, in calls of bounded size. */
  take(): { items: Item[]; jobs: Job[]; settlements: Settlement[] }[] {
    if (this.items.length === 0) return [];
    const parts = [];
    for (let at = 0; at < this.items.length; at += MOST_PER_CALL) {
      const end = at + MOST_PER_CALL;
      parts.push({
        items: this.items.slice(at, end),
        jobs: this.jobs.slice(at, end),
        settlements: this.settlements.slice(at, end),
      });
    }
    this.items = [];
    this.jobs = [];
    this.settlements = [];
    return parts;
  }
}

const RELEASED: Settlement = { kind: 'release' };

/** Gathers the settlements of one queue during a turn of the event loop and sends each kind as one call. */
export class Settler {
  private readonly completes = new Bundle<CompleteItem>();
  private readonly retries = new Bundle<RetryItem>();
  private readonly releases = new Bundle<ReleaseItem>();
  private unsettled = 0;
  private idleWaiters: (() => void)[] = [];

  constructor(
    private readonly executor: Executor,
    private readonly keys: QueueKeys,
    private readonly metronome: Metronome,
    private readonly events: SettlementEvents,
  ) {}

  complete(job: Job, value: unknown, result: string | Buffer, keepMs: number): void {
    this.unsettled += 1;
    this.completes.add({ id: job.id, token: job.token, keepMs, result }, job, { kind: 'complete', value });
  }

  retry(job: Job, cause: unknown, delayMs: number, maxAttempts: number, error: string): void {
    this.unsettled += 1;
    const item = { id: job.id, token: job.token, delayMs, maxAttempts, error };
    const expected = job.attempt >= maxAttempts ? 'dead' : delayMs > 0 ? 'scheduled' : 'pending';
    this.retries.add(item, job, { kind: 'retry', error: cause, expected });
  }

  release(job: Job, delay: string): void {
    this.unsettled += 1;
    this.releases.add({ id: job.id, token: job.token, delay }, job, RELEASED);
  }

  flush(): void {
    for (const { items, jobs, settlements } of this.completes.take()) {
      this.send(jobs, settlements, (onResend) =>
        this.executor.run(complete, this.keys, { record: 0, items }, undefined, onResend),
      );
    }
    for (const { items, jobs, settlements } of this.retries.take()) {
      this.send(jobs, settlements, (onResend) =>
        this.executor.run(retry, this.keys, { record: 0, items }, undefined, onResend),
      );
    }
    for (const { items, jobs, settlements } of this.releases.take()) {
      this.send(jobs, settlements, (onResend) => this.executor.run(release, this.keys, items, undefined, onResend));
    }
  }

  /** Resolves when everything handed in has been answered. */
  idle(): Promise<void> {
    if (this.unsettled === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.idleWaiters.push(resolve);
    });
  }

  private send(
    jobs: Job[],
    settlements: Settlement[],
    call: (onResend: () => void) => Promise<(Outcome | RetryOutcome)[]>,
  ): void {
    let resent = false;
    call(() => {
      resent = true;
    }).then(
      (outcomes) => {
        for (let i = 0; i < jobs.length; i++) {
          const job = jobs[i]!;
          let outcome = outcomes[i]!;
          // The first sending may have been carried out and its answer lost: the job is then settled, not taken away.
          const settlement = settlements[i]!;
          if (resent && !job.lost && (outcome === 'gone' || outcome === 'stale')) {
            outcome = settlement.kind === 'retry' ? settlement.expected : 'ok';
          }
          this.events.settled(job, outcome, settlement);
        }
        this.answered(jobs.length);
      },
      (error: EchoError) => {
        this.events.fault(error);
        if (error.code === 'ECHO_STATE')
          this.answered(jobs.length); // closed: the leases will lapse
        else this.metronome.after(PAUSE_AFTER_FAULT_MS, () => this.send(jobs, settlements, call));
      },
    );
  }

  private answered(n: number): void {
    this.unsettled -= n;
    if (this.unsettled > 0) return;
    const waiters = this.idleWaiters;
    this.idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}
