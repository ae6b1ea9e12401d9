import type { Clock, Timer } from '../kernel/clock.js';
import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Executor } from '../wire/executor.js';
import { extend } from '../wire/transitions/index.js';
import type { Batch, Job } from './job.js';
import type { Metronome } from './metronome.js';

export interface LeaseEvents {
  lost(job: Job, why: string): void;
  cancelled(job: Job): void;
  fault(error: EchoError): void;
}

const MOST_PER_CALL = 500;

/**
 * Keeps the leases of one queue: renews them at a third, in one call for all, and knows by our own clock when one must
 * be over although the server cannot be reached. Nothing here is per job while batches come and go quickly.
 */
export class Leases {
  private readonly batches = new Set<Batch>();
  private timer: Timer | undefined;

  constructor(
    private readonly executor: Executor,
    private readonly keys: QueueKeys,
    private readonly leaseMs: number,
    private readonly metronome: Metronome,
    private readonly clock: Clock,
    private readonly events: LeaseEvents,
  ) {}

  add(batch: Batch): void {
    if (batch.left === 0) return;
    this.batches.add(batch);
    const wasLongOnItsWay = this.clock.monotonic() - batch.leasedAt >= this.leaseMs / 3;
    if (wasLongOnItsWay) this.hurry();
    else if (this.timer === undefined) this.wait(this.leaseMs / 3);
  }

  /** One job of the batch is finished. */
  drop(batch: Batch): void {
    batch.left -= 1;
    if (batch.left > 0) return;
    this.batches.delete(batch);
    batch.jobs = []; // a job may be held on to for long, by an async context that was begun in its handler; the others need not be
  }

  /** Every job that is held: running, or claimed ahead. */
  *held(): Generator<Job> {
    for (const batch of this.batches) for (const job of batch.jobs) if (!job.finished) yield job;
  }

  owns(job: Job): boolean {
    return job.batch.owner === this; // also when the lease was given up, which takes it out of the batches
  }

  find(id: string): Job | undefined {
    for (const job of this.held()) if (job.id === id) return job;
    return undefined;
  }

  /** Looks now: after a reconnect, leases may be short. */
  hurry(): void {
    if (this.batches.size > 0) this.wait(0);
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.batches.clear();
  }

  private wait(ms: number): void {
    this.timer?.cancel();
    this.timer = this.metronome.after(ms, () => this.look());
  }

  private look(): void {
    this.timer = undefined;
    const now = this.clock.monotonic();
    const due: Batch[] = [];
    for (const batch of this.batches) {
      if (now >= batch.leasedAt + this.leaseMs) this.giveUp(batch);
      else if (!batch.renewing && now >= batch.leasedAt + this.leaseMs / 3) due.push(batch);
    }
    if (due.length > 0) this.renew(due, now);
    this.waitForNext(now);
  }

  private waitForNext(now: number): void {
    let next = Number.POSITIVE_INFINITY;
    for (const batch of this.batches) {
      // A renewal in flight may stay unanswered: then the next thing to happen is the end of the lease.
      const at = batch.leasedAt + (batch.renewing ? this.leaseMs : this.leaseMs / 3);
      if (at < next) next = at;
    }
    if (next !== Number.POSITIVE_INFINITY) this.wait(Math.max(1, next - now));
  }

  private giveUp(batch: Batch): void {
    this.batches.delete(batch);
    for (const job of batch.jobs) {
      if (!job.finished && !job.lost) this.events.lost(job, 'it could not be renewed in time');
    }
  }

  private renew(due: Batch[], now: number): void {
    let jobs: Job[] = [];
    for (const batch of due) {
      batch.renewing = true;
      batch.jobs = batch.jobs.filter((job) => !job.finished);
      for (const job of batch.jobs) if (!job.lost) jobs.push(job);
    }
    const calls: Promise<void>[] = [];
    while (jobs.length > 0) {
      calls.push(this.call(jobs.slice(0, MOST_PER_CALL)));
      jobs = jobs.slice(MOST_PER_CALL);
    }
    Promise.all(calls).then(
      () => {
        for (const batch of due) {
          batch.leasedAt = now;
          batch.renewing = false;
        }
        if (this.timer === undefined && this.batches.size > 0) this.waitForNext(this.clock.monotonic());
      },
      (error) => {
        for (const batch of due) batch.renewing = false;
        this.events.fault(error);
        if (this.batches.size > 0) this.wait(this.leaseMs / 10);
      },
    );
  }

  private async call(jobs: Job[]): Promise<void> {
    const outcomes = await this.executor.run(extend, this.keys, { leaseMs: this.leaseMs, items: jobs });
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[i]!;
      if (job.finished) continue;
      const outcome = outcomes[i];
      if (outcome === 'cancelled') this.events.cancelled(job);
      else if (outcome !== 'ok') this.events.lost(job, `the server says ${outcome}`);
    }
  }
}
