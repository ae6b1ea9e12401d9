import { type EchoError, EchoStateError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { ClaimedRow } from '../wire/transitions/index.js';
import { Claims, type ClaimsHost } from './claims.js';
import { Conditions } from './conditions.js';
import { type ConsumerEvents, foundDead } from './consumer-events.js';
import type { ConsumerSettings } from './consumer-options.js';
import { Endings } from './endings.js';
import { Events } from './events.js';
import { failureText } from './failure-text.js';
import { callingJobs, type Handler } from './handler.js';
import { Holder, type HolderHost } from './holder.js';
import type { Job } from './job.js';
import { Slots } from './slots.js';

/** What a consumer needs of the pump that owns it. */
export interface ConsumerHost extends ClaimsHost, HolderHost {
  /** Something is to be sent at the end of this turn. */
  mark(consumer: Consumer): void;
  /** Unbooks the consumer: no more wake-ups, no leadership. */
  withdraw(consumer: Consumer): Promise<void>;
  fault(error: EchoError): void;
}

/** Time for the last settlements when the server cannot be reached. */
const LAST_WORDS_MS = 2000;

/**
 * Runs one queue's handlers: its claims bring jobs, its holder keeps them, its slots run them, and its endings tell the
 * server what became of them. What is decided here is how these meet, and how it all stops.
 */
export class Consumer extends Events<ConsumerEvents> {
  /** @internal woken by the pump, and handed what is to be dispatched */
  readonly claims: Claims;
  private readonly slots: Slots;
  private readonly holder: Holder;
  private readonly endings: Endings;
  private readonly conditions = new Conditions();
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
    const { metronome, clock } = host;
    const { concurrency, leaseMs, timeoutMs, claimAhead } = settings;
    const fault = (error: EchoError) => this.fault(error);
    const mark = () => host.mark(this);
    const isOpen = () => !this.stopping && !this.held;
    const giveBackReady = () => this.giveBackReady();
    this.holder = new Holder(host, keys, settings, {
      claimsUnderWay: () => this.claims.underWay,
      needless: (job) => this.endings.giveBack(job),
      lost: (job, why) => this.emit('lease-lost', job, why),
      mark,
      fault,
    });
    this.slots = new Slots(
      { concurrency, leaseMs, timeoutMs, claimAhead, handler, metronome, clock },
      {
        mayStart: () => isOpen() && !this.claims.recalling, // what a claim under way brings is then given back
        succeeded: (job, value) => this.endings.succeed(job, value),
        failed: (job, error) => this.endings.fail(job, error),
        late: giveBackReady,
        expired: (job) => this.endings.expire(job),
      },
    );
    this.claims = new Claims(host, keys, leaseMs, {
      free: () => this.slots.free,
      capacity: () => this.slots.capacity,
      isOpen,
      take: (rows, sentAt) => this.take(rows, sentAt),
      giveBackReady,
      settle: () => this.flush(),
      mark,
      answered: () => this.conditions.changed(),
      fault,
    });
    const { holder, slots, claims } = this;
    this.endings = new Endings(host, keys, settings, {
      holder,
      slots,
      claims,
      ended: (job) => this.ended(job),
      completed: (job, result) => this.emit('completed', job, result),
      failed: (job, error, outcome) => this.emit('failed', job, error, outcome),
      dead: (job) => this.emit('dead', job),
      unhandled: (job) => this.emit('unhandled', job),
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
    const callers = callingJobs().filter((job) => this.holder.owns(job));
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
    foundDead(this.host, this.keys, ids).then(
      (found) => {
        for (const job of found) this.emit('dead', job);
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
    this.holder.cancelled(id);
  }

  /** @internal connected again */
  reconnected(): void {
    this.holder.reconnected();
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
    this.slots.admit(this.holder.take(rows, leasedAt));
  }

  private ended(job: Job): void {
    if (this.insiders.size > 0) this.insiders.delete(job);
    this.host.mark(this);
    this.conditions.changed();
  }

  private giveBackReady(): void {
    const jobs = this.slots.recall();
    for (const job of jobs) this.endings.giveBack(job);
    if (jobs.length > 0) this.claims.recall();
  }

  private async drain(): Promise<void> {
    this.stopping = true;
    this.giveBackReady();
    // Nothing more comes that they could wait for. Not now: what is called then may close us too.
    queueMicrotask(() => this.host.inScope(() => this.holder.hurry()));
    const withdrawn = this.host.withdraw(this);
    const ended = this.conditions.until(() => this.slots.running === 0);
    await this.host.metronome.within(this.settings.drainMs, ended);
    for (const job of this.holder.all()) {
      job.abort('shutdown', 'the consumer is closing');
      this.endings.giveBack(job);
    }
    await this.host.metronome.within(LAST_WORDS_MS, Promise.all([withdrawn, this.lastWords()]));
    this.host.flows.owes(this.keys); // nobody leads the queue any more, and perhaps nobody else will for long
    this.holder.stop();
  }

  /** A claim under way may still bring jobs: they are given back as they come. */
  private async lastWords(): Promise<void> {
    await this.conditions.until(() => this.claims.underWay === 0);
    this.flush();
    await this.endings.idle();
  }

  /** What a job has reported goes before its settlement, after which it would count no more. */
  private flush(): void {
    this.holder.flush();
    this.endings.flush();
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
