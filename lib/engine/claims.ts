import type { Clock } from '../kernel/clock.js';
import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { type ClaimedRow, claim, dispatch, type EnqueueItem, pass } from '../wire/transitions/index.js';
import type { Metronome } from './metronome.js';

/** What claiming needs of the process. */
export interface ClaimsHost {
  readonly executor: Executor;
  readonly metronome: Metronome;
  readonly clock: Clock;
  readonly process: string;
  /** False while there is no connection: a claim is built anew after a reconnect, never kept for it. */
  readonly isUp: boolean;
  epoch(keys: QueueKeys): string | undefined;
  /** Acts outside the async context of the caller: what follows must not see a stranger's. */
  inScope<T>(act: () => T): T;
  /** Takes this process off the list of the hungry. */
  stepAside(keys: QueueKeys): void;
}

/** Whoever the claims are made for. */
export interface Claimant {
  /** Jobs it could take, claims under way not counted. */
  free(): number;
  /** Jobs it can hold at most. */
  capacity(): number;
  /** False when it wants nothing more: what still comes is given back. */
  isOpen(): boolean;
  take(rows: ClaimedRow[], sentAt: number): void;
  giveBackReady(): void;
  /** Sends what was settled: it goes before a claim, or the server would see more jobs held than there are slots. */
  settle(): void;
  /** Something is to be sent at the end of this turn. */
  mark(): void;
  /** A claim has been answered, one way or the other. */
  answered(): void;
  fault(error: EchoError): void;
}

/** The answer to a claim. */
interface Arrival {
  rows: ClaimedRow[];
  count: number;
  sentAt: number;
}

const MOST_PER_CLAIM = 500;
const MOST_UNDER_WAY = 2;
const PAUSE_AFTER_FAULT_MS = 250;

/**
 * Decides when a queue is claimed and for how much. Only for free slots, two claims under way so that server and process
 * overlap; when one brings less than it asked for, the server knows this process as hungry and nothing is sent until it
 * is woken.
 */
export class Claims {
  /** Claims under way, and the jobs they ask for; and how many of them land the job that they claim. */
  private claims = 0;
  private asked = 0;
  private dispatches = 0;
  /** The last job that was to be dispatched had to be enqueued: until a claim brings some again, no other is tried. */
  private declined = false;
  /** The server knows us as hungry. */
  private parked = false;
  private woken = false;
  /** The last claim brought all it asked for. */
  private saturated = false;
  private listening = false;
  private backingOff = false;
  private tookThisTurn = false;
  private owed: number | undefined;
  private readonly arrivals: Arrival[] = [];
  /** Claims under way that bring jobs from behind those we gave back: theirs go back too, so that the order stays. */
  private recalled = 0;
  /** Jobs on their way back that had not started: the next claim waits for the answer, or it would take what follows them. */
  private returning = 0;

  constructor(
    private readonly host: ClaimsHost,
    private readonly keys: QueueKeys,
    private readonly leaseMs: number,
    private readonly claimant: Claimant,
  ) {
    this.due();
  }

  get underWay(): number {
    return this.claims;
  }

  /**
   * Since when a claim's answer has been due, by the monotonic clock: the first is due from the start, then one is from
   * when it is sent or should be. Undefined when the last one was answered and nothing has been heard of since.
   */
  get owedSince(): number | undefined {
    return this.owed;
  }

  /** A slot is free and something is claimable: a claim should be on its way, or about to be. */
  due(): void {
    this.owed ??= this.host.clock.monotonic();
  }

  /** While true, what a claim brings is not started. */
  get recalling(): boolean {
    return this.recalled > 0;
  }

  /** The server has acknowledged our channels: from now on a wake-up reaches us. */
  listen(): void {
    this.listening = true;
    this.parked = false;
    this.fill();
  }

  wake(): void {
    if (!this.claimant.isOpen()) {
      this.pass();
      return;
    }
    this.parked = false;
    if (this.claims > 0)
      this.woken = true; // the claim under way may have looked before the job came: claim again after it
    else if (this.free <= 0) this.pass();
    else this.fill();
  }

  /** The server says that something is claimable; were we told? */
  claimable(): void {
    if (this.parked && this.claims === 0) this.wake();
  }

  reconnected(): void {
    this.parked = false;
    this.backingOff = false; // that was for the old connection
    this.fill();
  }

  /** The claimant is open again. Closing took us off the list of the hungry, behind a claim that is under way. */
  reopened(): void {
    if (this.owed !== undefined) this.owed = this.host.clock.monotonic(); // closed, it owed nothing
    this.parked = false;
    this.woken = this.claims > 0;
  }

  /**
   * Does something that may make a job claimable and is sent on our connection. Idle, we claim right behind it, in the
   * same write, rather than wait to be woken: one round trip less until the handler starts.
   */
  behind<T>(send: () => T): T {
    if (!this.isIdle || this.claims > 0) return send();
    return this.host.executor.connection.inOneWrite(() => {
      this.host.stepAside(this.keys); // or we would be woken for a job that we take anyway
      const sent = send();
      this.parked = false;
      this.fill();
      return sent;
    });
  }

  /** Idle, and nothing says that a job could not be dispatched. */
  get isWaiting(): boolean {
    if (!this.isIdle || this.claims > this.dispatches || this.returning > 0 || this.declined) return false;
    return this.host.executor.isPlain(this.keys);
  }

  /**
   * Lands a job and claims it in one step: idle, we need neither be woken nor claim. False: not now. Later `told` hears whether it
   * landed: where more than that is to be looked at, nothing was done; or of an error, when it is not known what became of it.
   */
  dispatch(item: EnqueueItem, told: (landed: boolean | EchoError) => void): boolean {
    if (!this.isWaiting) return false;
    const { host, keys, leaseMs } = this;
    const stays = this.free > 1;
    this.claims += 1;
    this.dispatches += 1;
    this.asked += 1;
    const sentAt = host.clock.monotonic();
    this.owed ??= sentAt;
    const call = { leaseMs, epoch: host.epoch(keys), process: host.process, stays, item };
    host.inScope(() => this.claimant.settle());
    host.executor.runAtOnce(
      dispatch,
      keys,
      call,
      (row) =>
        host.inScope(() => {
          if (row === undefined) this.declined = true;
          else this.parked &&= stays;
          this.owed = undefined;
          this.dispatched(row, sentAt);
          told(row !== undefined);
        }),
      (error) =>
        host.inScope(() => {
          this.parked = false; // perhaps it was done
          this.dispatched(undefined, sentAt);
          told(error);
        }),
    );
    return true;
  }

  /** Hands a wake-up that we cannot use to the next hungry process; we are then no longer hungry ourselves. */
  pass(): void {
    this.parked = false;
    if (!this.host.isUp) return; // nobody wakes us over a connection that is gone
    this.host.executor
      .run(pass, this.keys, { process: this.host.process })
      .catch((error) => this.claimant.fault(asEchoError(error)));
  }

  /** Jobs that had not started were given back: what claims under way bring came from behind them. */
  recall(): void {
    this.recalled = this.claims;
  }

  /** A job that had not started is on its way back ... */
  leaves(): void {
    this.returning += 1;
  }

  /** ... and has arrived. */
  arrivedBack(): void {
    this.returning -= 1;
    if (this.returning === 0) this.claimant.mark();
  }

  /** Claims for what is free. */
  fill(): void {
    if (this.parked || this.dispatches > 0 || this.recalled > 0 || this.returning > 0 || !this.canClaim) return;
    while (this.claims < MOST_UNDER_WAY) {
      const { free } = this;
      if (free <= 0) return;
      // While claims come back full, halves: the server fetches one while this process works through the other.
      const half = Math.ceil(this.claimant.capacity() / 2);
      this.claim(Math.min(this.saturated ? Math.min(free, half) : free, MOST_PER_CLAIM));
      if (!this.saturated) return;
    }
  }

  /** A new turn: the next claim that has arrived may be taken. */
  turn(): void {
    this.tookThisTurn = false;
    const next = this.arrivals.shift();
    if (next) this.receive(next);
  }

  private get canClaim(): boolean {
    return this.claimant.isOpen() && this.listening && !this.backingOff && this.host.isUp;
  }

  /** The server knows us as hungry, and rightly. */
  private get isIdle(): boolean {
    return this.parked && this.canClaim && this.free > 0;
  }

  private get free(): number {
    return this.claimant.free() - this.asked;
  }

  private claim(count: number): void {
    this.claims += 1;
    this.asked += count;
    const { host, keys, leaseMs } = this;
    const sentAt = host.clock.monotonic();
    this.owed ??= sentAt;
    const call = { leaseMs, count, epoch: host.epoch(keys), process: host.process };
    host.inScope(() => {
      this.claimant.settle(); // here: its listeners must not see a stranger's context either
      host.executor.run(claim, keys, call).then(
        (rows) => this.arrive({ rows, count, sentAt }),
        (error) => this.failed(count, asEchoError(error)),
      );
    });
  }

  private failed(count: number, error: EchoError): void {
    this.claims -= 1;
    this.asked -= count;
    if (this.recalled > 0) this.recalled = this.claims;
    this.claimant.fault(error);
    this.backOff();
    this.claimant.answered();
  }

  /**
   * One claim a turn. Two that came in one read and were handled in one turn would be settled in one write, and from then
   * on travel together: the server would wait while this process works, and the other way round.
   */
  private arrive(arrival: Arrival): void {
    this.owed = undefined;
    if (this.tookThisTurn) this.arrivals.push(arrival);
    else this.receive(arrival);
  }

  private receive({ rows, count, sentAt }: Arrival): void {
    this.claims -= 1;
    this.asked -= count;
    this.tookThisTurn = true;
    this.claimant.mark();
    this.saturated = rows.length === count;
    this.parked = !this.saturated;
    if (rows.length > 0) {
      this.declined = false;
      this.claimant.take(rows, sentAt);
    }
    this.goOn();
  }

  private dispatched(row: ClaimedRow | undefined, sentAt: number): void {
    this.claims -= 1;
    this.dispatches -= 1;
    this.asked -= 1;
    if (row !== undefined) {
      this.claimant.take([row], sentAt);
      this.goOn();
    } else {
      this.goOn(() => this.claimant.mark()); // not yet: the job is enqueued in this turn, and others may wait behind it
    }
  }

  /** After an answer: claims again, or leaves it at that. */
  private goOn(fill = () => this.fill()): void {
    const woken = this.woken && this.dispatches === 0; // until then nothing is claimed
    if (woken) {
      this.woken = false;
      this.parked = false;
    }
    if (this.recalled > 0) {
      this.claimant.giveBackReady();
      this.recalled = this.claims;
      this.parked = false;
    }
    if (!this.claimant.isOpen()) this.claimant.giveBackReady();
    else if (woken && this.free <= 0) this.pass();
    else fill();
    this.claimant.answered();
  }

  private backOff(): void {
    if (this.backingOff) return;
    this.backingOff = true;
    this.host.metronome.after(PAUSE_AFTER_FAULT_MS, () => {
      this.backingOff = false;
      this.fill();
    });
  }
}
