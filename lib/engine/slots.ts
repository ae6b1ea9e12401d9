import type { Clock } from '../kernel/clock.js';
import { AHEAD_FOR_MS, ClaimAhead } from './claim-ahead.js';
import { callHandler, type Handler } from './handler.js';
import type { Job } from './job.js';
import type { Metronome } from './metronome.js';

/** Whoever the handlers run for. */
export interface SlotsOwner {
  /** False while nothing new may start. */
  mayStart(): boolean;
  succeeded(job: Job, value: unknown): void;
  failed(job: Job, error: unknown): void;
  /** Jobs claimed ahead have waited too long for a slot. */
  late(): void;
  /** A job that was ready has lost its lease before it could start. */
  expired(job: Job): void;
}

export interface SlotsParts {
  concurrency: number;
  leaseMs: number;
  /** Time a handler may take; 0 is no limit. A job's own limit is stronger. */
  timeoutMs: number;
  /** Jobs may be claimed beyond the free slots. */
  claimAhead: boolean;
  handler: Handler;
  metronome: Metronome;
  clock: Clock;
}

/** The slots of one consumer: the jobs that are ready, and the handlers that run. Order and number are exact. */
export class Slots {
  private readonly ahead: ClaimAhead;
  private inSlots = 0;
  private ready: Job[] = [];
  private readyAt = 0;
  private starting = false;
  private sampling = false;
  private watching = false;

  constructor(
    private readonly parts: SlotsParts,
    private readonly owner: SlotsOwner,
  ) {
    this.ahead = ClaimAhead.for(parts.claimAhead, parts.leaseMs);
  }

  /** Handlers running now. */
  get running(): number {
    return this.inSlots;
  }

  /** Jobs that may be held at a time: those in slots, and some ahead where handlers are fast. */
  get capacity(): number {
    return this.parts.concurrency + this.ahead.target;
  }

  get free(): number {
    return this.capacity - this.inSlots - (this.ready.length - this.readyAt);
  }

  /** Takes the jobs of one claim, and starts what it can. */
  admit(jobs: readonly Job[]): void {
    this.ahead.carried(jobs);
    for (const job of jobs) this.ready.push(job);
    this.sampling = true; // one handler a claim is timed: a clock reading a job would cost more than it tells
    this.start();
    if (this.ready.length > this.readyAt) this.watch();
  }

  /** Starts what is ready while there are slots. A loop, not a recursion: handlers may return at once. */
  start(): void {
    if (this.starting || !this.owner.mayStart()) return;
    this.starting = true;
    while (this.readyAt < this.ready.length && this.inSlots < this.parts.concurrency) {
      const job = this.ready[this.readyAt++]!;
      if (job.finished) continue;
      if (job.lost || this.isOver(job)) this.owner.expired(job);
      else this.run(job);
    }
    if (this.readyAt === this.ready.length) {
      this.ready = [];
      this.readyAt = 0;
    }
    this.starting = false;
  }

  /** The job no longer takes up a slot. */
  leave(job: Job): void {
    job.limit?.cancel();
    if (job.started) this.inSlots -= 1;
  }

  /** Hands over what has not started. */
  recall(): Job[] {
    const jobs = this.ready.slice(this.readyAt);
    this.ready = [];
    this.readyAt = 0;
    return jobs;
  }

  /** A blocked event loop can hold a job ready beyond its lease: by then somebody else may have it. */
  private isOver(job: Job): boolean {
    return this.parts.clock.monotonic() >= job.batch.leasedAt + this.parts.leaseMs;
  }

  private run(job: Job): void {
    job.started = true;
    this.inSlots += 1;
    if (job.unreadable) {
      this.owner.failed(job, job.unreadable.error);
      return;
    }
    const timeoutMs = job.opts?.timeoutMs ?? this.parts.timeoutMs;
    if (timeoutMs > 0) job.limit = this.parts.metronome.after(timeoutMs, () => this.expire(job, timeoutMs));
    if (this.sampling) job.timedFrom = this.parts.clock.monotonic();
    this.sampling = false;
    let result: unknown;
    try {
      result = callHandler(this.parts.handler, job);
    } catch (error) {
      this.owner.failed(job, error);
      return;
    }
    if (result instanceof Promise) {
      result.then(
        (value) => this.succeed(job, value),
        (error) => this.owner.failed(job, error),
      );
    } else {
      this.succeed(job, result);
    }
  }

  private succeed(job: Job, value: unknown): void {
    if (job.timedFrom !== undefined) this.ahead.saw(this.parts.clock.monotonic() - job.timedFrom);
    this.owner.succeeded(job, value);
  }

  private expire(job: Job, timeoutMs: number): void {
    const message = `the handler took longer than ${timeoutMs} ms`;
    job.abort('timeout', message);
    this.owner.failed(job, new Error(message));
  }

  /** Jobs claimed ahead may not wait long while other processes could start them. */
  private watch(): void {
    if (this.watching) return;
    this.watching = true;
    const oldest = this.ready[this.readyAt]!.batch;
    this.parts.metronome.after(AHEAD_FOR_MS, () => {
      this.watching = false;
      const next = this.ready[this.readyAt];
      if (next === undefined) return;
      if (next.batch.leasedAt > oldest.leasedAt) {
        this.watch();
      } else {
        this.ahead.stall();
        this.owner.late();
      }
    });
  }
}
