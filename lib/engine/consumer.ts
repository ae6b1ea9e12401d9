import { AsyncLocalStorage } from 'node:async_hooks';
import { type Backoff, DEFAULT_BACKOFF, waitAfter } from '../kernel/backoff.js';
import type { Clock } from '../kernel/clock.js';
import type { Codec, Envelope } from '../kernel/codec.js';
import { type EchoError, EchoStateError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { type Discard, type Outcome, onPurpose, type RetryOutcome, type Snooze } from '../kernel/outcome.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { type ClaimedRow, claim, pass } from '../wire/transitions/index.js';
import { AHEAD_FOR_MS, ClaimAhead } from './claim-ahead.js';
import type { ConsumerSettings } from './consumer-options.js';
import { Events } from './events.js';
import { failureText } from './failure-text.js';
import { type Batch, Job } from './job.js';
import { Leases } from './leases.js';
import type { Metronome } from './metronome.js';
import { type Settlement, Settler } from './settler.js';

/** Runs one job. Its return value, or what its promise resolves to, is the job's result. */
// biome-ignore lint/suspicious/noExplicitAny: a handler may be written for the payload it expects
export type Handler<Data = any> = (job: Job<Data>) => unknown;

export interface ConsumerEvents {
  /** The server has taken the completion. */
  completed: [job: Job, result: unknown];
  /** An attempt failed; `outcome` says where the job went. */
  failed: [job: Job, error: unknown, outcome: 'scheduled' | 'pending' | 'dead'];
  /** Somebody else has the job, or will have: what this run does no longer counts. */
  'lease-lost': [job: Job, why: string];
  /** The server, or the way to it, is in trouble; the consumer goes on by itself. */
  error: [error: EchoError];
}

/** What a consumer needs of the pump that owns it. */
export interface ConsumerHost {
  readonly executor: Executor;
  readonly metronome: Metronome;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly process: string;
  /** False while there is no connection: a claim is built anew after a reconnect, never kept for it. */
  readonly isUp: boolean;
  epoch(keys: QueueKeys): string | undefined;
  /** Takes this process off the list of the hungry. */
  stepAside(keys: QueueKeys): void;
  /** Something is to be sent at the end of this turn. */
  mark(consumer: Consumer): void;
  /** Unbooks the consumer: no more wake-ups, no leadership. */
  withdraw(consumer: Consumer): Promise<void>;
  fault(error: EchoError): void;
}

/** The answer to a claim. */
interface Arrival {
  rows: ClaimedRow[];
  count: number;
  sentAt: number;
}

const MOST_PER_CLAIM = 500;
const CLAIMS_IN_FLIGHT = 2;
const MOST_CANCELLED_EARLY = 1000;
const PAUSE_AFTER_FAULT_MS = 250;
/** Time for the last settlements when the server cannot be reached. */
const LAST_WORDS_MS = 2000;

/** Which job's handler the current code was called from: close() inside a handler must not wait for that handler. */
const running = new AsyncLocalStorage<Job>();

/** Is the caller, however many awaits later, a handler that has not ended? */
export function isInsideHandler(): boolean {
  return running.getStore()?.finished === false;
}

/**
 * Runs one queue's handlers in its slots. It claims for free slots only, two claims in flight so that server and process
 * overlap; when a claim brings less than it asked for, the server knows this process as hungry and nothing is sent until
 * it is woken.
 */
export class Consumer extends Events<ConsumerEvents> {
  private readonly leases: Leases;
  private readonly settler: Settler;
  private readonly ahead: ClaimAhead;
  private inSlots = 0;
  private ready: Job[] = [];
  private readyAt = 0;
  private asked = 0;
  private claims = 0;
  private parked = false;
  private woken = false;
  private saturated = false;
  private listening = false;
  private stopping = false;
  private held = false;
  private starting = false;
  private sampling = false;
  private backingOff = false;
  private aheadWatch = false;
  private tookThisTurn = false;
  private readonly arrivals: Arrival[] = [];
  /** Claims under way that bring jobs from behind those we gave back: theirs go back too, so that the order stays. */
  private recalled = 0;
  /** Jobs on their way back that had not started: the next claim waits for the answer, or it would take what follows them. */
  private returning = 0;
  /** Jobs that somebody cancelled while a claim was under way: they may be among what it brings. */
  private readonly cancelledEarly = new Set<string>();
  private waiters: { met: () => boolean; resolve: () => void }[] = [];
  /** Handlers that are waiting in close(): nobody waits for them. */
  private readonly insiders = new Set<Job>();
  private closing: Promise<void> | undefined;

  /** @internal */
  constructor(
    private readonly host: ConsumerHost,
    /** @internal */
    readonly keys: QueueKeys,
    readonly settings: Readonly<ConsumerSettings>,
    private readonly handler: Handler,
  ) {
    super();
    this.ahead = ClaimAhead.for(settings.claimAhead, settings.leaseMs);
    const fault = (error: EchoError) => this.fault(error);
    this.leases = new Leases(host.executor, keys, settings.leaseMs, host.metronome, host.clock, {
      lost: (job, why) => this.lose(job, why),
      cancelled: (job) => job.abort('cancelled', 'the job was cancelled'),
      fault,
    });
    this.settler = new Settler(host.executor, keys, host.metronome, {
      settled: (job, outcome, settlement) => this.settled(job, outcome, settlement),
      fault,
    });
  }

  get queue(): string {
    return this.keys.queue;
  }

  /** Handlers running now. */
  get active(): number {
    return this.inSlots;
  }

  get isPaused(): boolean {
    return this.held;
  }

  /** Stops claiming in this process; running handlers go on. What was claimed and not started is given back. */
  pause(): void {
    if (this.held) return;
    this.held = true;
    this.giveBackReady();
    this.hand(); // this process may be the one that would be woken
  }

  resume(): void {
    if (!this.held) return;
    this.held = false;
    this.parked = false;
    this.woken = this.claims > 0; // pausing took us off the list of the hungry behind the claim under way
    this.host.mark(this);
  }

  /**
   * Stops claiming, lets handlers finish up to `drainMs`, aborts the signals of those left and gives their jobs back, and
   * waits for the last settlement. Called inside a handler, it waits for all the others. Idempotent.
   */
  close(): Promise<void> {
    const drained = this.drained();
    const caller = running.getStore();
    if (caller === undefined || caller.finished || !this.leases.owns(caller)) return drained;
    this.insiders.add(caller);
    return Promise.race([drained, this.until(() => this.inSlots <= this.insiders.size)]);
  }

  /**
   * @internal Does something that may make a job claimable and is sent on our connection. An idle consumer claims right
   * behind it, in the same write, rather than wait to be woken: one round trip less until the handler starts.
   */
  behind<T>(send: () => T): T {
    if (!this.isIdle) return send();
    this.host.stepAside(this.keys); // or we would be woken for a job that we take anyway
    const sent = send();
    this.parked = false;
    this.fill();
    return sent;
  }

  /** @internal closes; resolves when the last handler has ended too, whoever calls */
  drained(): Promise<void> {
    this.closing ??= this.drain();
    return this.closing;
  }

  /** @internal the server has acknowledged our channels: from now on a wake-up reaches us */
  listen(): void {
    this.listening = true;
    this.parked = false;
    this.fill();
  }

  /** @internal */
  wake(): void {
    if (this.stopping || this.held) {
      this.hand();
      return;
    }
    this.parked = false;
    if (this.claims > 0) {
      this.woken = true; // the claim in flight may have looked before the job came: claim again after it
      return;
    }
    if (this.free() <= 0) this.hand();
    else this.fill();
  }

  /** @internal the server says that something is claimable; were we told? */
  claimable(): void {
    if (this.parked && this.claims === 0) this.wake();
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
      if (this.cancelledEarly.size >= MOST_CANCELLED_EARLY) this.cancelledEarly.clear();
      if (this.claims > 0) this.cancelledEarly.add(id);
      return;
    }
    job.abort('cancelled', 'the job was cancelled');
    if (!job.started) this.giveBack(job); // claimed ahead: it need not begin
  }

  /** @internal connected again */
  reconnected(): void {
    this.leases.hurry();
    this.parked = false;
    this.backingOff = false; // that was for the old connection
    this.fill();
  }

  /** @internal the end of a turn: settlements first, so that the claim behind them finds the slots free */
  turn(): void {
    this.settler.flush();
    this.fill();
    this.tookThisTurn = false;
    const next = this.arrivals.shift();
    if (next) this.receive(next);
  }

  private get isIdle(): boolean {
    return this.parked && this.claims === 0 && this.canClaim && this.free() > 0;
  }

  private get canClaim(): boolean {
    return !this.stopping && !this.held && this.listening && !this.backingOff && this.host.isUp;
  }

  private free(): number {
    const inUse = this.inSlots + this.ready.length - this.readyAt + this.asked;
    return this.settings.concurrency + this.ahead.target - inUse;
  }

  private fill(): void {
    if (this.parked || this.recalled > 0 || this.returning > 0 || !this.canClaim) return;
    while (this.claims < CLAIMS_IN_FLIGHT) {
      const free = this.free();
      if (free <= 0) return;
      // While claims come back full, halves: the server fetches one while this process works through the other.
      const half = Math.ceil((this.settings.concurrency + this.ahead.target) / 2);
      const count = Math.min(this.saturated ? Math.min(free, half) : free, MOST_PER_CLAIM);
      this.claim(count);
      if (!this.saturated) return;
    }
  }

  private claim(count: number): void {
    this.claims += 1;
    this.asked += count;
    const epoch = this.host.epoch(this.keys);
    const sentAt = this.host.clock.monotonic();
    const call = { leaseMs: this.settings.leaseMs, count, epoch, process: this.host.process };
    this.host.executor.run(claim, this.keys, call).then(
      (rows) => this.arrive({ rows, count, sentAt }),
      (error) => {
        this.claims -= 1;
        this.asked -= count;
        if (this.recalled > 0) this.recalled = this.claims;
        this.fault(asEchoError(error));
        this.backOff();
        this.tellWaiters();
      },
    );
  }

  /**
   * One claim a turn. Two that came in one read and were handled in one turn would be settled in one write, and from then
   * on travel together: the server would wait while this process works, and the other way round.
   */
  private arrive(arrival: Arrival): void {
    if (this.tookThisTurn) this.arrivals.push(arrival);
    else this.receive(arrival);
  }

  private receive({ rows, count, sentAt }: Arrival): void {
    this.claims -= 1;
    this.asked -= count;
    this.tookThisTurn = true;
    this.host.mark(this);
    this.saturated = rows.length === count;
    if (rows.length > 0) this.take(rows, sentAt);
    if (this.claims === 0) this.cancelledEarly.clear();
    const { woken } = this;
    this.woken = false;
    this.parked = !this.saturated && !woken;
    if (this.recalled > 0) {
      this.giveBackReady();
      this.recalled = this.claims;
      this.parked = false;
    }
    if (this.stopping || this.held) this.giveBackReady();
    else if (woken && this.free() <= 0) this.hand();
    else this.fill();
    this.tellWaiters();
  }

  private backOff(): void {
    if (this.backingOff) return;
    this.backingOff = true;
    this.host.metronome.after(PAUSE_AFTER_FAULT_MS, () => {
      this.backingOff = false;
      this.fill();
    });
  }

  private take(rows: ClaimedRow[], leasedAt: number): void {
    const jobs = new Array<Job>(rows.length);
    const batch: Batch = { owner: this.leases, jobs, left: rows.length, leasedAt, renewing: false };
    const { codec } = this.host;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      let envelope: Envelope | undefined;
      let unreadable: Job['unreadable'];
      try {
        envelope = codec.decode(row.payload);
      } catch (error) {
        unreadable = { error };
      }
      const job = new Job(this.keys.queue, row, envelope, batch);
      job.unreadable = unreadable;
      batch.jobs[i] = job;
      this.ready.push(job);
    }
    this.leases.add(batch);
    if (this.cancelledEarly.size > 0) {
      for (const { id } of batch.jobs) if (this.cancelledEarly.delete(id)) this.cancelled(id);
    }
    this.sampling = true;
    this.start();
    if (this.ready.length > this.readyAt) this.watchReady();
  }

  /** Starts what is ready while there are slots. A loop, not a recursion: handlers may return at once. */
  private start(): void {
    // What a claim under way brings is then given back.
    if (this.starting || this.stopping || this.held || this.recalled > 0) return;
    this.starting = true;
    const { concurrency } = this.settings;
    while (this.readyAt < this.ready.length && this.inSlots < concurrency) {
      const job = this.ready[this.readyAt++]!;
      if (!job.finished) this.run(job);
    }
    if (this.readyAt === this.ready.length) {
      this.ready = [];
      this.readyAt = 0;
    }
    this.starting = false;
  }

  private run(job: Job): void {
    job.started = true;
    this.inSlots += 1;
    if (job.unreadable) {
      this.fail(job, job.unreadable.error);
      return;
    }
    const timeoutMs = job.opts?.timeoutMs ?? this.settings.timeoutMs;
    if (timeoutMs > 0) job.limit = this.host.metronome.after(timeoutMs, () => this.expire(job, timeoutMs));
    const sampled = this.sampling;
    const startedAt = sampled ? this.host.clock.monotonic() : 0;
    this.sampling = false;
    let result: unknown;
    try {
      result = running.run(job, this.handler, job);
      // Foreign thenables may throw when asked; the promise around one rejects instead.
      if (!(result instanceof Promise) && isThenable(result)) result = Promise.resolve(result);
    } catch (error) {
      this.fail(job, error);
      return;
    }
    if (result instanceof Promise) {
      result.then(
        (value) => {
          if (sampled) this.ahead.saw(this.host.clock.monotonic() - startedAt);
          this.succeed(job, value);
        },
        (error) => this.fail(job, error),
      );
    } else {
      if (sampled) this.ahead.saw(this.host.clock.monotonic() - startedAt);
      this.succeed(job, result);
    }
  }

  /** Frees the job's slot. False when the job was settled, timed out or given back before: its result is dropped. */
  private finish(job: Job): boolean {
    if (job.finished) return false;
    job.finished = true;
    job.limit?.cancel();
    this.leases.drop(job.batch);
    if (job.started) this.inSlots -= 1;
    this.host.mark(this);
    this.tellWaiters();
    return true;
  }

  private succeed(job: Job, value: unknown): void {
    let result: string | Buffer;
    try {
      result = this.host.codec.encodeResult(value);
    } catch (error) {
      this.fail(job, error);
      return;
    }
    if (!this.finish(job)) return;
    const keepMs = job.opts?.keepMs ?? this.settings.keepMs;
    this.settler.complete(job, value, keepMs > 0 ? result : '', keepMs);
    this.start();
  }

  private fail(job: Job, error: unknown): void {
    if (!this.finish(job)) return;
    const thrown = onPurpose(error);
    if (job.lost) {
      // Stopped because the lease was lost: the attempt belongs to whoever has the job now.
    } else if (thrown === 'snooze') {
      this.settler.release(job, String((error as Snooze).ms));
    } else if (thrown === 'discard') {
      this.settler.retry(job, error, 0, 0, (error as Discard).message);
    } else {
      const attempts = job.opts?.attempts ?? this.settings.attempts;
      this.settler.retry(job, error, this.waitBefore(job, error), attempts, failureText(error));
    }
    this.start();
  }

  private waitBefore(job: Job, error: unknown): number {
    const backoff: Backoff = job.opts?.backoff ?? this.settings.backoff;
    const failures = Math.max(1, job.attempt);
    try {
      return waitAfter(backoff, failures, error, Math.random);
    } catch (fault) {
      this.fault(new EchoStateError(`the backoff function of queue '${this.queue}' threw: ${failureText(fault)}`));
      return waitAfter(DEFAULT_BACKOFF, failures, error, Math.random);
    }
  }

  private expire(job: Job, timeoutMs: number): void {
    const message = `the handler took longer than ${timeoutMs} ms`;
    job.abort('timeout', message);
    this.fail(job, new Error(message));
  }

  private lose(job: Job, why: string): void {
    job.lost = true;
    job.abort('lease_lost', `the lease is lost: ${why}`);
    this.emit('lease-lost', job, why);
  }

  private settled(job: Job, outcome: Outcome | RetryOutcome, settlement: Settlement): void {
    if (!job.started) {
      this.returning -= 1;
      if (this.returning === 0) this.host.mark(this);
    }
    switch (outcome) {
      case 'ok':
        if (settlement.kind === 'complete') this.emit('completed', job, settlement.value);
        break;
      case 'scheduled':
      case 'pending':
      case 'dead':
        if (settlement.kind === 'retry') this.emit('failed', job, settlement.error, outcome);
        break;
      default:
        if (!job.lost) this.lose(job, `its settlement was refused as ${outcome}`);
    }
  }

  /** Jobs claimed ahead may not wait long while other processes could start them. */
  private watchReady(): void {
    if (this.aheadWatch) return;
    this.aheadWatch = true;
    const oldest = this.ready[this.readyAt]!.batch;
    this.host.metronome.after(AHEAD_FOR_MS, () => {
      this.aheadWatch = false;
      if (this.ready.length === this.readyAt) return;
      const late = this.ready[this.readyAt]!.batch.leasedAt <= oldest.leasedAt;
      if (late) {
        this.ahead.stall();
        this.giveBackReady();
      } else this.watchReady();
    });
  }

  private giveBackReady(): void {
    const jobs = this.ready.splice(this.readyAt);
    this.ready = [];
    this.readyAt = 0;
    for (const job of jobs) this.giveBack(job);
    if (jobs.length > 0) this.recalled = this.claims;
  }

  private giveBack(job: Job): void {
    if (!this.finish(job)) return;
    if (!job.started) this.returning += 1;
    this.settler.release(job, '');
  }

  /** Hands a wake-up that we cannot use to the next hungry process. */
  private hand(): void {
    this.parked = false; // `pass` takes us off the list of the hungry
    this.host.executor
      .run(pass, this.keys, { process: this.host.process })
      .catch((error) => this.fault(asEchoError(error)));
  }

  private async drain(): Promise<void> {
    this.stopping = true;
    this.giveBackReady();
    const withdrawn = this.host.withdraw(this);
    await this.within(
      this.settings.drainMs,
      this.until(() => this.inSlots === 0),
    );
    for (const job of [...this.leases.held()]) {
      job.abort('shutdown', 'the consumer is closing');
      this.giveBack(job);
    }
    await this.within(LAST_WORDS_MS, Promise.all([withdrawn, this.lastWords()]));
    this.leases.stop();
  }

  /** A claim in flight may still bring jobs: they are given back as they come. */
  private async lastWords(): Promise<void> {
    await this.until(() => this.claims === 0);
    this.settler.flush();
    await this.settler.idle();
  }

  private until(met: () => boolean): Promise<void> {
    if (met()) return Promise.resolve();
    return new Promise((resolve) => {
      this.waiters.push({ met, resolve });
    });
  }

  private tellWaiters(): void {
    if (this.waiters.length === 0) return;
    const { waiters } = this;
    this.waiters = waiters.filter(({ met }) => !met());
    for (const waiter of waiters) if (!this.waiters.includes(waiter)) waiter.resolve();
  }

  private within(ms: number, done: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.host.metronome.after(ms, resolve);
      done.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  private fault(error: EchoError): void {
    if (this.heard('error')) this.emit('error', error);
    else this.host.fault(error);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
