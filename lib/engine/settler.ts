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
/** Somebody may yet mend what is wrong (a key of another type, missing rights); not for ever. */
const MOST_REFUSALS = 20;

type Outcomes = (Outcome | RetryOutcome)[];

/** Settlements that go out as one call. */
interface Sending {
  jobs: Job[];
  settlements: Settlement[];
  call(onResend: () => void): Promise<Outcomes>;
  /** Refusals so far that a repetition is not expected to mend. */
  refusals: number;
}

/** Settlements of one kind, gathered during a turn. */
class Bundle<Item> {
  private items: Item[] = [];
  private jobs: Job[] = [];
  private settlements: Settlement[] = [];

  constructor(private readonly call: (items: Item[], onResend: () => void) => Promise<Outcomes>) {}

  add(item: Item, job: Job, settlement: Settlement): void {
    this.items.push(item);
    this.jobs.push(job);
    this.settlements.push(settlement);
  }

  /** Hands out everything gathered, in calls of bounded size. */
  *take(): Generator<Sending> {
    const { items, jobs, settlements } = this;
    if (items.length === 0) return;
    this.items = [];
    this.jobs = [];
    this.settlements = [];
    for (let at = 0; at < items.length; at += MOST_PER_CALL) {
      const part = items.slice(at, at + MOST_PER_CALL);
      yield {
        jobs: jobs.slice(at, at + MOST_PER_CALL),
        settlements: settlements.slice(at, at + MOST_PER_CALL),
        call: (onResend) => this.call(part, onResend),
        refusals: 0,
      };
    }
  }
}

const RELEASED: Settlement = { kind: 'release' };

/** Gathers the settlements of one queue during a turn of the event loop and sends each kind as one call. */
export class Settler {
  private readonly completes: Bundle<CompleteItem>;
  private readonly retries: Bundle<RetryItem>;
  private readonly releases: Bundle<ReleaseItem>;
  private unsettled = 0;
  private idleWaiters: (() => void)[] = [];

  constructor(
    executor: Executor,
    keys: QueueKeys,
    private readonly metronome: Metronome,
    private readonly events: SettlementEvents,
  ) {
    this.completes = new Bundle((items, onResend) =>
      executor.run(complete, keys, { record: 0, items }, undefined, onResend),
    );
    this.retries = new Bundle((items, onResend) =>
      executor.run(retry, keys, { record: 0, items }, undefined, onResend),
    );
    this.releases = new Bundle((items, onResend) => executor.run(release, keys, items, undefined, onResend));
  }

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
    for (const sending of this.completes.take()) this.send(sending);
    for (const sending of this.retries.take()) this.send(sending);
    for (const sending of this.releases.take()) this.send(sending);
  }

  /** Resolves when everything handed in has been answered. */
  idle(): Promise<void> {
    if (this.unsettled === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.idleWaiters.push(resolve);
    });
  }

  private send(sending: Sending): void {
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    sending.call(onResend).then(
      (outcomes) => {
        for (let i = 0; i < outcomes.length; i++) this.tell(sending, i, outcomes[i]!, resent);
        this.answered(sending.jobs.length);
      },
      (error: EchoError) => this.refused(sending, error),
    );
  }

  private tell({ jobs, settlements }: Sending, i: number, outcome: Outcome | RetryOutcome, resent: boolean): void {
    const job = jobs[i]!;
    const settlement = settlements[i]!;
    // The first sending may have been carried out and its answer lost: the job is then settled, not taken away.
    const settled = resent && !job.lost && (outcome === 'gone' || outcome === 'stale');
    const expected = settlement.kind === 'retry' ? settlement.expected : 'ok';
    this.events.settled(job, settled ? expected : outcome, settlement);
  }

  private refused(sending: Sending, error: EchoError): void {
    this.events.fault(error);
    const { jobs, settlements } = sending;
    if (!error.retryable) sending.refusals += 1;
    if (error.code === 'ECHO_STATE') {
      this.answered(jobs.length); // closed: the leases will lapse
    } else if (error.code === 'EMQARG' || sending.refusals > MOST_REFUSALS) {
      jobs.forEach((job, i) => {
        this.events.settled(job, 'stale', settlements[i]!); // the leases will lapse
      });
      this.answered(jobs.length);
    } else {
      this.metronome.after(PAUSE_AFTER_FAULT_MS, () => this.send(sending));
    }
  }

  private answered(n: number): void {
    this.unsettled -= n;
    if (this.unsettled > 0) return;
    const waiters = this.idleWaiters;
    this.idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}
