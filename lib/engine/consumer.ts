import type { Codec } from '../kernel/codec.js';
import { type EchoError, EchoStateError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Outcome, RetryOutcome } from '../kernel/outcome.js';
import { type ClaimedRow, type EnqueueItem, get } from '../wire/transitions/index.js';
import { Gatherings } from './batching.js';
import { ClaimAhead } from './claim-ahead.js';
import { Claims, type ClaimsHost } from './claims.js';
import { Conditions } from './conditions.js';
import { type ConsumerEvents, deadHere, foundDead, type Where } from './consumer-events.js';
import type { ConsumerSettings } from './consumer-options.js';
import { Events } from './events.js';
import { failureText } from './failure-text.js';
import type { Flows } from './flows.js';
import { callingJobs, type Handler } from './handler.js';
import { type Batch, type Job, type JobReach, readJob } from './job.js';
import { viewOf } from './job-view.js';
import { Leases } from './leases.js';
import { encodedProgress, ProgressReports } from './progress.js';
import { recordArg } from './recording.js';
import { type Settlement, Settler } from './settler.js';
import { Slots } from './slots.js';
import { encodedResult, verdictOn } from './verdict.js';

/** What a consumer needs of the pump that owns it. */
export interface ConsumerHost extends ClaimsHost {
  readonly codec: Codec;
  readonly flows: Flows;
  /** Also for results and progress. */
  readonly maxPayloadBytes: number;
  /** Something is to be sent at the end of this turn. */
  mark(consumer: Consumer): void;
  /** Unbooks the consumer: no more wake-ups, no leadership. */
  withdraw(consumer: Consumer): Promise<void>;
  fault(error: EchoError): void;
}

const MOST_CANCELLED_EARLY = 1000;
/** Time for the last settlements when the server cannot be reached. */
const LAST_WORDS_MS = 2000;

/**
 * Runs one queue's handlers: its claims bring jobs, its slots run them, its leases are kept meanwhile, and its settler
 * tells the server what became of them. What is decided here is what a handler's end means, and how it all stops.
 */
export class Consumer extends Events<ConsumerEvents> {
  private readonly ahead: ClaimAhead;
  private readonly claims: Claims;
  private readonly slots: Slots;
  private readonly leases: Leases;
  private readonly settler: Settler;
  private readonly reports: ProgressReports;
  private readonly conditions = new Conditions();
  private readonly gatherings: Gatherings;
  private readonly reach: JobReach;
  /** Jobs that somebody cancelled while a claim was under way: they may be among what it brings. */
  private readonly cancelledEarly = new Set<string>();
  /** Handlers that are waiting in close(): nobody waits for them. */
  private readonly insiders = new Set<Job>();
  private held = false;
  private stopping = false;
  private closing: Promise<void> | undefined;

  /** @internal */
  constructor(
    private readonly host: ConsumerHost,
    /** @internal */
    readonly keys: QueueKeys,
    readonly settings: Readonly<ConsumerSettings>,
    handler: Handler,
  ) {
    super(['completed', 'failed', 'dead', 'unhandled', 'lease-lost', 'error']);
    const { executor, metronome, clock } = host;
    const { concurrency, timeoutMs, leaseMs, claimAhead } = settings;
    const fault = (error: EchoError) => this.fault(error);
    const isOpen = () => !this.stopping && !this.held;
    const gatherings = new Gatherings(metronome, concurrency);
    this.gatherings = gatherings;
    this.reach = {
      gather: (job, batching) => gatherings.join(job, batching),
      children: ({ id }) => host.flows.children(keys.queue, id),
      addChildren: ({ id, token }, children) => host.flows.addChildren(keys, id, token, children),
      progress: (job, value) => this.reports.report(job, encodedProgress(value, host.codec, host.maxPayloadBytes)),
    };
    this.ahead = ClaimAhead.for(claimAhead, leaseMs);
    const slots: Slots = new Slots(
      { concurrency, leaseMs, timeoutMs, handler, ahead: this.ahead, metronome, clock },
      {
        mayStart: () => isOpen() && !claims.recalling, // what a claim under way brings is then given back
        succeeded: (job, value) => this.succeed(job, value),
        failed: (job, error) => this.fail(job, error),
        late: () => this.giveBackReady(),
        expired: (job) => this.expired(job),
      },
    );
    const claims: Claims = new Claims(host, keys, leaseMs, {
      free: () => slots.free,
      capacity: () => slots.capacity,
      isOpen,
      take: (rows, sentAt) => this.take(rows, sentAt),
      giveBackReady: () => this.giveBackReady(),
      settle: () => this.flush(),
      mark: () => host.mark(this),
      answered: () => this.conditions.changed(),
      fault,
    });
    this.slots = slots;
    this.claims = claims;
    this.leases = new Leases(executor, keys, leaseMs, metronome, clock, {
      lost: (job, why) => this.lose(job, why),
      cancelled: (job) => job.abort('cancelled', 'the job was cancelled'),
      fault,
    });
    this.reports = new ProgressReports(executor, keys, metronome, { mark: () => host.mark(this), fault });
    this.settler = new Settler(executor, keys, metronome, recordArg(settings.record), {
      settled: (job, outcome, settlement) => this.settled(job, outcome, settlement),
      fault,
    });
  }

  get queue(): string {
    return this.keys.queue;
  }

  /** Handlers running now. */
  get active(): number {
    return this.slots.running;
  }

  get isPaused(): boolean {
    return this.held;
  }

  /** Stops claiming in this process; running handlers go on. What was claimed and not started is given back. */
  pause(): void {
    if (this.held) return;
    this.held = true;
    this.giveBackReady();
    this.claims.pass(); // this process may be the one that would be woken
  }

  resume(): void {
    if (!this.held) return;
    this.held = false;
    this.claims.reopened();
    this.host.mark(this);
  }

  /**
   * Stops claiming, lets handlers finish up to `drainMs`, aborts the signals of those left and gives their jobs back, and
   * waits for the last settlement. Called inside a handler, it waits for all the others. Idempotent.
   */
  close(): Promise<void> {
    const drained = this.drained();
    const callers = callingJobs().filter((job) => this.leases.owns(job));
    if (callers.length === 0) return drained;
    for (const job of callers) this.insiders.add(job);
    return Promise.race([drained, this.conditions.until(() => this.slots.running <= this.insiders.size)]);
  }

  /** @internal closes; resolves when the last handler has ended too, whoever calls */
  drained(): Promise<void> {
    this.closing ??= this.drain();
    return this.closing;
  }

  /** @internal sends something that may make a job of this queue claimable */
  behind<T>(send: () => T): T {
    return this.claims.behind(send);
  }

  /** @internal a job would be dispatched */
  get isWaiting(): boolean {
    return this.claims.isWaiting;
  }

  /** @internal lands a job that is claimed in the same step; false when we do not wait for one */
  dispatch(item: EnqueueItem, told: (landed: boolean | EchoError) => void): boolean {
    return this.claims.dispatch(item, told);
  }

  /** @internal the server has acknowledged our channels */
  listen(): void {
    this.claims.listen();
  }

  /** @internal */
  wake(): void {
    this.claims.wake();
  }

  /** @internal the server says that something is claimable */
  claimable(): void {
    if (this.hasFreeSlot) this.claims.due();
    this.claims.claimable();
  }

  /** @internal */
  get hasFreeSlot(): boolean {
    return this.slots.running < this.settings.concurrency;
  }

  /** @internal since when a claim's answer has been due; undefined when none is */
  get claimOwedSince(): number | undefined {
    return this.claims.owedSince;
  }

  /** @internal their leases lapsed too often, or they died of a child: they lie in the morgue, and this process leads */
  buried(ids: readonly string[]): void {
    if (!this.heard('dead')) return;
    const { executor, codec } = this.host;
    executor.run(get, this.keys, ids).then(
      (rows) => {
        ids.forEach((id, i) => {
          const row = rows[i]; // none: trimmed meanwhile
          if (row) this.emit('dead', foundDead(this.queue, viewOf(id, row, codec)));
        });
      },
      (error) => this.fault(error),
    );
  }

  /** @internal the queue was paused for everybody */
  queuePaused(): void {
    this.giveBackReady();
  }

  /** @internal */
  cancelled(id: string): void {
    const job = this.leases.find(id);
    if (job === undefined) {
      // The answer to a claim may be behind, on its own connection. The bound is for those of other processes.
      if (this.claims.underWay === 0 || this.cancelledEarly.size >= MOST_CANCELLED_EARLY) this.cancelledEarly.clear();
      if (this.claims.underWay > 0) this.cancelledEarly.add(id);
      return;
    }
    job.abort('cancelled', 'the job was cancelled');
    if (!job.started) this.giveBack(job); // claimed ahead: it need not begin
  }

  /** @internal connected again */
  reconnected(): void {
    this.reports.reconnected();
    this.leases.hurry();
    this.claims.reconnected();
  }

  /** @internal the end of a turn: settlements first, so that the claim behind them finds the slots free */
  turn(): void {
    this.flush();
    this.claims.fill();
    this.claims.turn();
  }

  /** @internal starts nothing more */
  get isClosing(): boolean {
    return this.stopping;
  }

  /** @internal runs a job that was claimed by hand; resolves when it is settled */
  async runOne(row: ClaimedRow): Promise<void> {
    this.take([row], this.host.clock.monotonic());
    await this.conditions.until(() => this.slots.running === 0);
    await this.lastWords();
  }

  private take(rows: ClaimedRow[], leasedAt: number): void {
    const jobs = new Array<Job>(rows.length);
    const batch: Batch = { owner: this.leases, reach: this.reach, jobs, left: rows.length, leasedAt, renewing: false };
    for (let i = 0; i < rows.length; i++) jobs[i] = readJob(this.keys.queue, rows[i]!, this.host.codec, batch);
    this.leases.add(batch);
    if (this.cancelledEarly.size > 0) {
      for (const { id } of jobs) if (this.cancelledEarly.delete(id)) this.cancelled(id);
    }
    this.ahead.carried(rows);
    this.slots.admit(jobs);
  }

  /** Frees the job's slot. False when the job was settled, timed out or given back before: its result is dropped. */
  private finish(job: Job): boolean {
    if (job.finished) return false;
    job.finished = true;
    this.reports.last(job);
    this.leases.drop(job.batch);
    if (this.insiders.size > 0) this.insiders.delete(job);
    this.slots.leave(job);
    this.host.mark(this);
    this.conditions.changed();
    return true;
  }

  /** Not settled: the reap, or whoever has claimed it since, sees to it. */
  private expired(job: Job): void {
    if (!job.lost) this.lose(job, 'it was over before a slot was free');
    this.finish(job);
  }

  private succeed(job: Job, value: unknown): void {
    let result: string | Buffer;
    try {
      result = encodedResult(value, this.host.codec, this.host.maxPayloadBytes);
    } catch (error) {
      this.fail(job, error);
      return;
    }
    if (!this.finish(job)) return;
    const keepMs = job.opts?.keepMs ?? this.settings.keepMs;
    // Nobody asks for a result that is not there; for any other somebody may: a parent, or who waits for the job.
    this.settler.complete(job, value, keepMs > 0 || value !== undefined ? result : '', keepMs);
    this.slots.start();
  }

  private fail(job: Job, error: unknown): void {
    if (!this.finish(job)) return;
    // Stopped because the lease was lost: the attempt belongs to whoever has the job now.
    if (!job.lost) this.settleFailed(job, error);
    this.slots.start();
  }

  private settleFailed(job: Job, error: unknown): void {
    const verdict = verdictOn(error, job, this.settings, (fault) => this.fault(fault));
    if (verdict.kind === 'retry') {
      this.settler.retry(job, error, verdict.delayMs, verdict.maxAttempts, verdict.text);
    } else if (verdict.kind === 'wait') {
      this.settler.wait(job);
    } else {
      this.settler.release(job, verdict.delay);
      if (verdict.unhandled) this.emit('unhandled', job);
    }
  }

  private lose(job: Job, why: string): void {
    job.lost = true;
    job.abort('lease_lost', `the lease is lost: ${why}`);
    this.emit('lease-lost', job, why);
  }

  private settled(job: Job, outcome: Outcome | RetryOutcome, settlement: Settlement): void {
    if (!job.started) this.claims.arrivedBack();
    switch (outcome) {
      case 'ok':
        if (settlement.kind === 'complete') this.emit('completed', job, settlement.value);
        break;
      case 'scheduled':
      case 'pending':
      case 'dead':
        if (settlement.kind === 'retry') this.failed(job, settlement, outcome);
        break;
      default:
        if (!job.lost) this.lose(job, `its settlement was refused as ${outcome}`);
    }
  }

  private failed(job: Job, { error, text }: Settlement & { kind: 'retry' }, outcome: Where): void {
    this.emit('failed', job, error, outcome);
    if (outcome === 'dead') this.emit('dead', deadHere(job, text));
  }

  private giveBackReady(): void {
    const jobs = this.slots.recall();
    for (const job of jobs) this.giveBack(job);
    if (jobs.length > 0) this.claims.recall();
  }

  private giveBack(job: Job): void {
    if (!this.finish(job)) return;
    if (!job.started) this.claims.leaves();
    this.settler.release(job, '');
  }

  private async drain(): Promise<void> {
    this.stopping = true;
    this.giveBackReady();
    // Nothing more comes that they could wait for. Not now: what is called then may close us too.
    queueMicrotask(() => this.host.inScope(() => this.gatherings.hurry()));
    const withdrawn = this.host.withdraw(this);
    const ended = this.conditions.until(() => this.slots.running === 0);
    await this.host.metronome.within(this.settings.drainMs, ended);
    for (const job of [...this.leases.held()]) {
      job.abort('shutdown', 'the consumer is closing');
      this.giveBack(job);
    }
    await this.host.metronome.within(LAST_WORDS_MS, Promise.all([withdrawn, this.lastWords()]));
    this.host.flows.owes(this.keys); // nobody leads the queue any more, and perhaps nobody else will for long
    this.leases.stop();
  }

  /** A claim under way may still bring jobs: they are given back as they come. */
  private async lastWords(): Promise<void> {
    await this.conditions.until(() => this.claims.underWay === 0);
    this.flush();
    await this.settler.idle();
  }

  /** What a job has reported goes before its settlement, after which it would count no more. */
  private flush(): void {
    this.reports.flush();
    this.settler.flush();
  }

  protected override listenerFailed(event: string, thrown: unknown): void {
    this.host.fault(
      new EchoStateError(`a listener of '${event}' on queue '${this.queue}' threw: ${failureText(thrown)}`),
    );
  }

  private fault(error: EchoError): void {
    if (this.heard('error')) this.emit('error', error);
    else this.host.fault(error);
  }
}
