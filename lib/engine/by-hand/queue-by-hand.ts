import { EchoStateError } from '../../kernel/errors.js';
import type { QueueKeys } from '../../kernel/keyspace.js';
import { type ClaimedRow, claim, counts, get, release } from '../../wire/transitions/index.js';
import { Consumer, type ConsumerHost } from '../consumer.js';
import type { ConsumerSettings } from '../consumer-options.js';
import type { Handler } from '../handler.js';
import type { Job } from '../job.js';
import type { Run } from './enqueued.js';
import { letTimePass, nextInMs, promoteDue } from './passing-time.js';

/** What became of one run of a job. */
export type RunOutcome = 'completed' | 'failed' | 'dead' | 'snoozed' | 'waiting' | 'unhandled' | 'lost';

export interface RunEnd {
  readonly outcome: RunOutcome;
  /** Undefined of a run that only put its job back. */
  readonly job: Job | undefined;
  /** What the handler threw, of one that failed or died. */
  readonly error: unknown;
}

/** What it needs of the engine; an object of its own, whose functions need no `this`. */
export interface QueueByHandParts extends Omit<ConsumerHost, 'process' | 'isUp' | 'stepAside' | 'mark' | 'withdraw'> {
  readonly run: Run;
  /** Carries what the engine's queues owe each other: a child that has ended may release its parent in another queue. */
  readonly relay: () => Promise<void>;
}

const MOST_PER_CLAIM = 500;
/** Nobody else reaps what a test has claimed, and what waits for its turn here is not renewed. */
const CLAIM_MS = 3_600_000;

/**
 * A queue whose jobs are run when it is said. It has a consumer like any other, so that a run means what it always means;
 * only that this one never claims by itself, and has one slot.
 */
export class QueueByHand {
  readonly consumer: Consumer;
  private end: RunEnd | undefined;

  constructor(
    private readonly parts: QueueByHandParts,
    private readonly keys: QueueKeys,
    settings: ConsumerSettings,
    handler: Handler,
  ) {
    const host: ConsumerHost = {
      ...parts,
      process: '',
      isUp: true,
      stepAside: () => undefined,
      mark: (consumer) => void setImmediate(() => parts.inScope(() => consumer.turn())),
      withdraw: () => Promise.resolve(),
    };
    this.consumer = new Consumer(host, keys, { ...settings, concurrency: 1, claimAhead: false }, handler);
    this.consumer
      .on('completed', (job) => this.ended('completed', job))
      .on('failed', (job, error, where) => this.ended(where === 'dead' ? 'dead' : 'failed', job, error))
      .on('unhandled', (job) => this.ended('unhandled', job))
      .on('lease-lost', (job) => this.ended('lost', job));
  }

  get relay(): () => Promise<void> {
    return this.parts.relay;
  }

  get queue(): string {
    return this.keys.queue;
  }

  /** Takes what is due, in the order it is claimed: at most so many. */
  async take(most: number): Promise<ClaimedRow[]> {
    await promoteDue(this.parts.run, this.keys);
    const taken: ClaimedRow[] = [];
    while (taken.length < most) {
      const count = Math.min(most - taken.length, MOST_PER_CLAIM);
      const call = { leaseMs: CLAIM_MS, count, epoch: this.parts.epoch(this.keys), process: '' };
      const rows = await this.parts.run(claim, this.keys, call);
      if (rows.length === 0) break; // fewer than asked for may mean that they are large
      taken.push(...rows);
    }
    return taken;
  }

  /** Resolves when the job is settled. @throws EchoStateError when the app is closing */
  async runOne(row: ClaimedRow): Promise<RunEnd> {
    if (this.consumer.isClosing) throw new EchoStateError(`the app is closing: no job of queue '${this.queue}' is run`);
    this.end = undefined;
    await this.parts.inScope(() => this.consumer.runOne(row));
    return this.end ?? { outcome: await this.putBack(row.id), job: undefined, error: undefined };
  }

  /** Puts back what was taken and has not run; not when the app is closing, for then nothing may be left. */
  async giveBack(rows: readonly ClaimedRow[]): Promise<void> {
    if (this.consumer.isClosing) return;
    const items = rows.map(({ id, token }) => ({ id, token, delay: '' }));
    if (items.length > 0) await this.parts.run(release, this.keys, items);
  }

  /** Would a claim bring something? */
  async isClaimable(): Promise<boolean> {
    const { pending, paused } = await this.parts.run(counts, this.keys, undefined);
    return pending > 0 && !paused;
  }

  nextInMs(except: ReadonlySet<string>): Promise<number | undefined> {
    return nextInMs(this.parts.run, this.keys, except);
  }

  letTimePass(ms: number): Promise<number> {
    return letTimePass(this.parts.run, this.keys, ms);
  }

  /** A consumer tells nobody of a job that its handler has put back: its row says how. */
  private async putBack(id: string): Promise<RunOutcome> {
    const [row] = await this.parts.run(get, this.keys, [id]);
    return row?.get('state')?.toString() === 'awaiting_children' ? 'waiting' : 'snoozed';
  }

  private ended(outcome: RunOutcome, job: Job, error?: unknown): void {
    this.end = { outcome, job, error };
  }
}
