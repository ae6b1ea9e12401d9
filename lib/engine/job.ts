import type { Timer } from '../kernel/clock.js';
import { type Codec, type Envelope, type TravellingOptions, travellingOptions } from '../kernel/codec.js';
import { JobAborted } from '../kernel/outcome.js';
import type { ClaimedRow } from '../wire/transitions/index.js';
import type { AddedNode, ChildrenReport, FlowNode } from './flow-calls.js';
import { inOwnContext } from './own-context.js';

/** What jobs wait for one another for: those of a consumer that come by the same one are handed over together. */
export interface Batching {
  /** Jobs in a batch at most. */
  readonly size: number;
  /** From the first of them on. */
  readonly waitMs: number;
  readonly handler: (jobs: Job[]) => unknown;
}

/** What a handler can do by way of its job, beyond looking at it. */
export interface JobReach {
  /** Has it wait for others; resolves, or rejects, with what becomes of this job. */
  gather(job: Job, batching: Batching): Promise<unknown>;
  children(job: Job): Promise<ChildrenReport>;
  addChildren(job: Job, children: readonly FlowNode[]): Promise<AddedNode[]>;
  progress(job: Job, value: unknown): Promise<void>;
}

/** The jobs of one claim: they share a lease, and are renewed together. */
export interface Batch {
  /** Who claimed it. */
  readonly owner: object;
  readonly reach: JobReach;
  jobs: Job[];
  /** Jobs that are not finished. */
  left: number;
  /** When the lease was asked for, on our monotonic clock: it is over at the latest a lease later. */
  leasedAt: number;
  renewing: boolean;
}

/** What a job has reported. */
export interface Reported {
  /** The latest value that has not been sent. */
  value: string | Buffer | undefined;
  /** No other is sent before, on our monotonic clock. */
  notBefore: number;
  /** Held back until then. */
  timer: Timer | undefined;
  /** One is on its way: what comes meanwhile, for as long as the server is away, makes no further call. */
  sending: boolean;
}

/** One run of a job, as its handler sees it. */
export class Job<Data = unknown, Name extends string = string> {
  readonly queue: string;
  readonly id: string;
  /** Empty when the payload was no envelope; `data` is then the payload itself. */
  readonly name: Name;
  /** On a queue with schemas what its schema puts out. */
  readonly data: Data;
  /** Options that came with the job. */
  readonly opts: Readonly<TravellingOptions> | undefined;
  /** The bytes as they were enqueued. */
  readonly payload: Buffer;
  /** Claims so far, this one counted: never goes down. */
  readonly attempts: number;
  /** Which charged attempt this is, from 1. Releases and snoozes are not charged. */
  readonly attempt: number;
  /** What settles this claim, and no other. */
  readonly token: string;

  /** @internal the jobs claimed with it, which share a lease */
  readonly batch: Batch;
  /** @internal settled, given up or timed out: whatever the handler still does no longer counts */
  finished = false;
  /** @internal the handler has been called */
  started = false;
  /** @internal why the codec could not read it */
  unreadable: { error: unknown } | undefined = undefined;
  /** @internal the lease is known to be lost */
  lost = false;
  /** @internal cancels the time limit */
  limit: { cancel(): void } | undefined = undefined;
  /** @internal since when its handler runs, where that is timed: what it gathered before does not count */
  timedFrom: number | undefined = undefined;
  /** @internal why its signal has fired, or would have */
  abortedBy: JobAborted | undefined = undefined;
  /** @internal told when the signal would fire */
  onAbort: ((why: JobAborted) => void) | undefined = undefined;
  /** @internal what its handler has said of how far it is */
  reported: Reported | undefined = undefined;
  private controller: AbortController | undefined = undefined;

  /** @internal */
  constructor(queue: string, row: ClaimedRow, envelope: Envelope | undefined, batch: Batch) {
    this.queue = queue;
    this.id = row.id;
    this.payload = row.payload;
    this.attempts = row.attempts;
    this.attempt = row.attempts - row.uncharged;
    this.token = row.token;
    this.batch = batch;
    if (envelope === undefined) {
      this.name = '' as Name;
      this.data = row.payload as Data;
      this.opts = undefined;
    } else {
      this.name = envelope.name as Name;
      this.data = envelope.data as Data;
      this.opts = envelope.opts && travellingOptions(envelope.opts); // a codec of somebody's may have let nonsense through
    }
  }

  /** The key of the repeating schedule that has landed it; undefined of any other job. */
  get schedule(): string | undefined {
    return this.opts?.schedule;
  }

  /** The moment that its schedule meant, however late it runs; undefined when it was run by hand (`runNow`). */
  get slot(): Date | undefined {
    const at = this.opts?.slot;
    return at === undefined ? undefined : new Date(at);
  }

  /**
   * Fires when the work is no longer wanted: time limit, cancel, lease lost, or the end of the drain. Its `reason` is a
   * {@link JobAborted}. Made on first use: a handler that does not look pays nothing.
   */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.abortedBy) this.controller.abort(this.abortedBy);
    }
    return this.controller.signal;
  }

  /** What became of this job's children: their results, and the failures that were ignored. */
  children(): Promise<ChildrenReport> {
    return this.batch.reach.children(this);
  }

  /**
   * More children for this job, in one atomic step while it is running. `throw new WaitForChildren()` then puts it back until
   * they have settled; without that it just goes on, and they run as any job.
   * @throws EchoStateError when the claim is over
   */
  addChildren(children: readonly FlowNode[]): Promise<AddedNode[]> {
    return this.batch.reach.addChildren(this, children);
  }

  /**
   * Says how far the work is: any value that could be a result. The latest one stands in the job's row (`jobs.get`), whoever listens
   * to the queue's events is told, and it goes out at once, but at most every 200 ms; the last one before the job is settled.
   * After that, or once the lease is lost, it does nothing.
   *
   * It need not be awaited, and never rejects. Awaited, it takes one round trip where something is sent, and no time where the value
   * is held back.
   * @throws EchoArgumentError, at once, for a value that cannot be encoded or is larger than `maxPayloadBytes`
   */
  progress(value: unknown): Promise<void> {
    return this.batch.reach.progress(this, value);
  }

  /** @internal */
  abort(why: JobAborted['why'], message: string): void {
    if (this.abortedBy) return;
    this.abortedBy = new JobAborted(why, message);
    const { controller } = this;
    if (controller !== undefined) inOwnContext(() => controller.abort(this.abortedBy));
    this.onAbort?.(this.abortedBy);
  }
}

/** Makes a job of what was claimed. What the codec cannot read is one too: its attempt fails with the codec's error. */
export function readJob(queue: string, row: ClaimedRow, codec: Codec, batch: Batch): Job {
  try {
    return new Job(queue, row, codec.decode(row.payload), batch);
  } catch (error) {
    const job = new Job(queue, row, undefined, batch);
    job.unreadable = { error };
    return job;
  }
}
