import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Outcome, RetryOutcome } from '../kernel/outcome.js';
import type { Executor } from '../wire/executor.js';
import {
  type Claimed,
  type CompleteItem,
  complete,
  type ReleaseItem,
  type RetryItem,
  release,
  retry,
  wait,
} from '../wire/transitions/index.js';
import { Conditions } from './conditions.js';
import type { Job } from './job.js';
import type { Metronome } from './metronome.js';
import { portions } from './portions.js';

/** What became of a settlement. */
export interface SettlementEvents {
  settled(job: Job, outcome: Outcome | RetryOutcome, settlement: Settlement): void;
  fault(error: EchoError): void;
}

export type Settlement =
  | { kind: 'complete'; value: unknown }
  | { kind: 'retry'; error: unknown; text: string; expected: RetryOutcome }
  | { kind: 'release' };

const PAUSE_AFTER_FAULT_MS = 500;
/** Somebody may yet mend what is wrong (a key of another type, missing rights); not for ever. */
const MOST_REFUSALS = 20;

interface Entry<Item> {
  item: Item;
  bytes: number;
  job: Job;
  settlement: Settlement;
}

type Call<Item> = (items: Item[], onResend: () => void) => Promise<(Outcome | RetryOutcome)[]>;

/** Settlements of one kind, gathered during a turn. */
class Bundle<Item> {
  private entries: Entry<Item>[] = [];

  constructor(readonly call: Call<Item>) {}

  add(entry: Entry<Item>): void {
    this.entries.push(entry);
  }

  take(): Entry<Item>[][] {
    const { entries } = this;
    if (entries.length === 0) return [];
    this.entries = [];
    return portions(entries, ({ bytes }) => bytes);
  }
}

const RELEASED: Settlement = { kind: 'release' };

/** Gathers the settlements of one queue during a turn of the event loop and sends each kind as one call. */
export class Settler {
  private readonly completes: Bundle<CompleteItem>;
  private readonly retries: Bundle<RetryItem>;
  private readonly releases: Bundle<ReleaseItem>;
  private readonly waits: Bundle<Claimed>;
  private readonly conditions = new Conditions();
  private unsettled = 0;

  constructor(
    executor: Executor,
    keys: QueueKeys,
    private readonly metronome: Metronome,
    /** As the wire wants it: 0 off, 1 untrimmed, n about n entries. */
    record: number,
    private readonly events: SettlementEvents,
  ) {
    this.completes = new Bundle((items, onResend) =>
      executor.run(complete, keys, { record, items }, undefined, onResend),
    );
    this.retries = new Bundle((items, onResend) => executor.run(retry, keys, { record, items }, undefined, onResend));
    this.releases = new Bundle((items, onResend) => executor.run(release, keys, items, undefined, onResend));
    this.waits = new Bundle((items, onResend) => executor.run(wait, keys, items, undefined, onResend));
  }

  complete(job: Job, value: unknown, result: string | Buffer, keepMs: number): void {
    this.unsettled += 1;
    const item = { id: job.id, token: job.token, keepMs, result };
    this.completes.add({ item, bytes: result.length, job, settlement: { kind: 'complete', value } });
  }

  retry(job: Job, cause: unknown, delayMs: number, maxAttempts: number, error: string): void {
    this.unsettled += 1;
    const item = { id: job.id, token: job.token, delayMs, maxAttempts, error };
    const expected = job.attempt >= maxAttempts ? 'dead' : delayMs > 0 ? 'scheduled' : 'pending';
    this.retries.add({
      item,
      bytes: error.length,
      job,
      settlement: { kind: 'retry', error: cause, text: error, expected },
    });
  }

  release(job: Job, delay: string): void {
    this.unsettled += 1;
    this.releases.add({ item: { id: job.id, token: job.token, delay }, bytes: 0, job, settlement: RELEASED });
  }

  wait(job: Job): void {
    this.unsettled += 1;
    this.waits.add({ item: { id: job.id, token: job.token }, bytes: 0, job, settlement: RELEASED });
  }

  flush(): void {
    for (const entries of this.completes.take()) this.send(this.completes, entries, 0);
    for (const entries of this.retries.take()) this.send(this.retries, entries, 0);
    for (const entries of this.releases.take()) this.send(this.releases, entries, 0);
    for (const entries of this.waits.take()) this.send(this.waits, entries, 0);
  }

  /** Resolves when everything handed in has been answered. */
  idle(): Promise<void> {
    return this.conditions.until(() => this.unsettled === 0);
  }

  /** `refusals`: how often the server has refused in a way that repeating is not expected to mend. */
  private send<Item>(bundle: Bundle<Item>, entries: Entry<Item>[], refusals: number): void {
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    const items = entries.map(({ item }) => item);
    bundle.call(items, onResend).then(
      (outcomes) => {
        for (let i = 0; i < entries.length; i++) this.tell(entries[i]!, outcomes[i]!, resent);
        this.answered(entries.length);
      },
      (error: EchoError) => this.refused(bundle, entries, refusals, error),
    );
  }

  private tell({ job, settlement }: Entry<unknown>, outcome: Outcome | RetryOutcome, resent: boolean): void {
    // The first sending may have been carried out and its answer lost: the job is then settled, not taken away.
    const settled = resent && !job.lost && (outcome === 'gone' || outcome === 'stale');
    const expected = settlement.kind === 'retry' ? settlement.expected : 'ok';
    this.events.settled(job, settled ? expected : outcome, settlement);
  }

  private refused<Item>(bundle: Bundle<Item>, entries: Entry<Item>[], refusals: number, error: EchoError): void {
    this.events.fault(error);
    const hopeless = error.code === 'EMQARG' || (!error.retryable && refusals >= MOST_REFUSALS);
    if (error.code === 'ECHO_STATE') {
      this.answered(entries.length); // closed: the leases will lapse
    } else if (hopeless && entries.length > 1) {
      for (const entry of entries) this.send(bundle, [entry], refusals); // one of them spoils it for the others
    } else if (hopeless) {
      for (const { job, settlement } of entries) this.events.settled(job, 'stale', settlement); // the lease will lapse
      this.answered(entries.length);
    } else {
      const counted = error.retryable ? refusals : refusals + 1;
      this.metronome.after(PAUSE_AFTER_FAULT_MS, () => this.send(bundle, entries, counted));
    }
  }

  private answered(n: number): void {
    this.unsettled -= n;
    this.conditions.changed();
  }
}
