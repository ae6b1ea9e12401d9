import type { Clock } from '../kernel/clock.js';
import type { Codec } from '../kernel/codec.js';
import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Executor } from '../wire/executor.js';
import type { ClaimedRow } from '../wire/transitions/index.js';
import { Gatherings } from './batching.js';
import type { ConsumerSettings } from './consumer-options.js';
import { encodedProgress } from './encoding.js';
import type { Flows } from './flows.js';
import { type Batch, type Job, type JobReach, readJob } from './job.js';
import { Leases } from './leases.js';
import type { Metronome } from './metronome.js';
import { ProgressReports } from './progress.js';

/** What holding jobs needs of the process. */
export interface HolderHost {
  readonly executor: Executor;
  readonly metronome: Metronome;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly flows: Flows;
  /** Also for results and progress. */
  readonly maxPayloadBytes: number;
}

/** Whoever the jobs are held for. */
export interface HolderOwner {
  /** Claims that have not been answered. */
  claimsUnderWay(): number;
  /** Something is to be sent at the end of this turn. */
  mark(): void;
  /** A job was cancelled that has not started: it need not begin. */
  needless(job: Job): void;
  lost(job: Job, why: string): void;
  fault(error: EchoError): void;
}

const MOST_CANCELLED_EARLY = 1000;

/**
 * Holds the jobs that the claims of one queue bring, running or claimed ahead, until they end: keeps their leases, lets
 * their handlers reach beyond them, and hears that one was cancelled or lost.
 */
export class Holder {
  private readonly leases: Leases;
  private readonly reports: ProgressReports;
  private readonly gatherings: Gatherings;
  private readonly reach: JobReach;
  /** Jobs that somebody cancelled while a claim was under way: they may be among what it brings. */
  private readonly cancelledEarly = new Set<string>();

  constructor(
    private readonly host: HolderHost,
    private readonly keys: QueueKeys,
    { leaseMs, concurrency }: Readonly<Pick<ConsumerSettings, 'leaseMs' | 'concurrency'>>,
    private readonly owner: HolderOwner,
  ) {
    const { executor, metronome, clock, codec, flows, maxPayloadBytes } = host;
    this.leases = new Leases(executor, keys, leaseMs, metronome, clock, {
      lost: (job, why) => this.lose(job, why),
      cancelled: (job) => this.cancel(job),
      fault: (error) => owner.fault(error),
    });
    this.reports = new ProgressReports(executor, keys, metronome, owner);
    this.gatherings = new Gatherings(metronome, concurrency);
    this.reach = {
      gather: (job, batching) => this.gatherings.join(job, batching),
      children: ({ id }) => flows.children(keys.queue, id),
      addChildren: ({ id, token }, children) => flows.addChildren(keys, id, token, children),
      progress: (job, value) => this.reports.report(job, encodedProgress(value, codec, maxPayloadBytes)),
    };
  }

  /** Makes jobs of what a claim brought; one that was cancelled meanwhile is finished already. */
  take(rows: readonly ClaimedRow[], leasedAt: number): readonly Job[] {
    const jobs = new Array<Job>(rows.length);
    const batch: Batch = { owner: this.leases, reach: this.reach, jobs, left: rows.length, leasedAt, renewing: false };
    for (let i = 0; i < rows.length; i++) jobs[i] = readJob(this.keys.queue, rows[i]!, this.host.codec, batch);
    this.leases.add(batch);
    if (this.cancelledEarly.size > 0) {
      for (const { id } of jobs) if (this.cancelledEarly.delete(id)) this.cancelled(id);
    }
    return jobs;
  }

  owns(job: Job): boolean {
    return this.leases.owns(job);
  }

  /** Every job that is held, as they are now: they may be let go of meanwhile. */
  all(): Job[] {
    return [...this.leases.held()];
  }

  /** Somebody has cancelled a job of the queue. */
  cancelled(id: string): void {
    const job = this.leases.find(id);
    if (job === undefined) {
      const underWay = this.owner.claimsUnderWay();
      // The answer to a claim may be behind, on its own connection. The bound is for those of other processes.
      if (underWay === 0 || this.cancelledEarly.size >= MOST_CANCELLED_EARLY) this.cancelledEarly.clear();
      if (underWay > 0) this.cancelledEarly.add(id);
      return;
    }
    this.cancel(job);
    if (!job.started) this.owner.needless(job);
  }

  /** Somebody else has the job, or will have: what this run does no longer counts. */
  lose(job: Job, why: string): void {
    job.lost = true;
    job.abort('lease_lost', `the lease is lost: ${why}`);
    this.owner.lost(job, why);
  }

  /** The job has ended here; what it has reported goes out before it is settled. */
  letGo(job: Job): void {
    this.reports.last(job);
    this.leases.drop(job.batch);
  }

  /** Connected again. */
  reconnected(): void {
    this.reports.reconnected();
    this.leases.hurry();
  }

  /** Sends what was reported. */
  flush(): void {
    this.reports.flush();
  }

  /** Nothing more comes that a batch could wait for. */
  hurry(): void {
    this.gatherings.hurry();
  }

  /** Renews nothing more. */
  stop(): void {
    this.leases.stop();
  }

  private cancel(job: Job): void {
    job.abort('cancelled', 'the job was cancelled');
  }
}
