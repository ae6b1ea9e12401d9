import type { Clock, Timer } from '../kernel/clock.js';
import { type EchoError, EchoLaneFullError, EchoStoreError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { laneOf } from '../kernel/lane.js';
import type { JobState } from '../kernel/state.js';
import type { Connection } from '../wire/connection.js';
import type { Executor } from '../wire/executor.js';
import { type EnqueueAnswer, type EnqueueItem, enqueue } from '../wire/transitions/index.js';
import { Conditions } from './conditions.js';
import { portions } from './portions.js';

export interface EnqueueResult {
  /** The job's; of a duplicate that of the job that is there. */
  id: string;
  /**
   * `duplicate`: a job of this id, or one that holds the deduplication key, is there already, and was left as it is. `replaced`: it
   * holds the key, and was given this one's data.
   */
  status: 'landed' | 'duplicate' | 'replaced';
  /** Of a job that was there, its state; `gone` when it has ended and only its key is still held, by time. */
  state?: JobState | 'gone';
}

/** The same, or why nothing landed. */
export type Landing = EnqueueResult | EchoLaneFullError;

export interface EnqueueLimits {
  /** Time for an answer, counted from the call; Infinity waits for the server to come back. */
  timeoutMs: number;
  /** Jobs that may wait for an answer while the server cannot be reached. */
  bufferLimit: number;
}

/** A job to send. */
export interface OutgoingJob extends EnqueueItem {
  /** Minted for this call: nobody else can have enqueued it. */
  readonly fresh: boolean;
}

/** `queueMicrotask` for less: that one keeps an async context of its own for each. */
const AT_ONCE = Promise.resolve();

/** A batch of at least so many is answered in two halves when nothing else is on its way. */
const WORTH_HALVING = 16;

/** The consumer of a queue in this process, if it has one. */
export interface Neighbour {
  /** Sends jobs of a queue; an idle consumer claims behind them. */
  around<T>(queue: string, send: () => T): T;
  /** Would a job be handed over at once? */
  isWaiting(queue: string): boolean;
  /**
   * Lands a job in the hands of an idle consumer; false when there is none, and nothing is done. Later `told` is called once, with
   * whether it landed (if not, it has to be enqueued), or with an error when that is not known.
   */
  dispatch(queue: string, item: EnqueueItem, told: (landed: boolean | EchoError) => void): boolean;
}

/** What a dispatched job may say of itself. */
const DISPATCHED_FIELDS = new Set(['priority', 'max_stalls', 'awaited']);

const bytesOf = ({ payload }: OutgoingJob) => payload.length;

class Turn {
  readonly items: OutgoingJob[] = [];
  readonly resolvers: ((result: EnqueueResult) => void)[] = [];
  readonly rejecters: ((error: unknown) => void)[] = [];
}

/** Sends what one turn of the event loop enqueues to a queue as one script call. */
export class Enqueuer {
  private turns = new Map<QueueKeys, Turn>();
  private flushing = false;
  private unanswered = 0;
  /** Of {@link holding}: waits that are over in this turn. */
  private handingOver = 0;
  private callsInFlight = 0;
  private readonly conditions = new Conditions();

  constructor(
    private readonly executor: Executor,
    private readonly connection: Connection,
    private readonly clock: Clock,
    private readonly limits: EnqueueLimits,
    private readonly neighbour: Neighbour,
  ) {}

  /** Resolves once the server has the job. @throws EchoError */
  add(keys: QueueKeys, item: OutgoingJob): Promise<EnqueueResult> {
    const full = this.refusal(1);
    if (full) return Promise.reject(full);
    this.unanswered += 1;
    let turn = this.turns.get(keys);
    if (turn === undefined) {
      turn = new Turn();
      this.turns.set(keys, turn);
      // A consumer that waits for a job need not wait for the end of the turn as well, if this one stays alone.
      if (this.neighbour.isWaiting(keys.queue) && isDispatchable(item)) AT_ONCE.then(() => this.flushAlone(keys));
      else this.flushLater();
    }
    turn.items.push(item);
    const { resolvers, rejecters } = turn;
    return new Promise((resolve, reject) => {
      resolvers.push(resolve);
      rejecters.push(reject);
    });
  }

  /**
   * Each call of up to 500 jobs lands whole or not at all, but for jobs whose lane is full; all of them are on their way
   * at once. Answers for each item what became of it, or why its call failed.
   */
  async addMany(keys: QueueKeys, items: OutgoingJob[]): Promise<(EnqueueResult | EchoError)[]> {
    const full = this.refusal(items.length);
    if (full) throw full;
    this.unanswered += items.length;
    const sent = portions(items, bytesOf).map((portion) =>
      this.enqueue(keys, portion).catch((error: EchoError) => portion.map(() => error)),
    );
    const none: (EnqueueResult | EchoError)[] = [];
    return none.concat(...(await Promise.all(sent)));
  }

  /** Counts jobs that are sent by somebody else. @throws EchoStoreError when that is too many; then `send` is not called */
  async sending<T>(jobs: number, send: () => Promise<T>): Promise<T> {
    const full = this.refusal(jobs);
    if (full) throw full;
    return this.holding(jobs, send());
  }

  /** Counts jobs that wait for something before they can be handed in. @throws EchoStoreError when that is too many */
  async holding<T>(jobs: number, wait: Promise<T>): Promise<T> {
    const full = this.refusal(jobs);
    if (full) {
      wait.catch(() => undefined); // others may be waiting for it; this caller hears of the limit
      throw full;
    }
    this.unanswered += jobs;
    try {
      return await wait;
    } finally {
      this.unanswered -= jobs;
      // They are handed in within this turn; between the two, idle() must not think that there are none.
      this.handingOver += 1;
      setImmediate(() => {
        this.handingOver -= 1;
        this.conditions.changed();
      });
    }
  }

  /** Resolves when everything handed in has been answered, one way or the other. */
  idle(): Promise<void> {
    return this.conditions.until(() => this.unanswered === 0 && this.handingOver === 0);
  }

  private refusal(more: number): EchoStoreError | undefined {
    if (this.connection.isUp || this.unanswered + more <= this.limits.bufferLimit) return undefined;
    const message = `the server cannot be reached and ${this.unanswered} jobs are waiting for it already`;
    return new EchoStoreError('ECHO_BUFFER_FULL', message, true);
  }

  private flushAlone(keys: QueueKeys): void {
    const turn = this.turns.get(keys);
    if (turn === undefined) return;
    if (turn.items.length > 1) {
      this.flushLater();
    } else {
      this.turns.delete(keys);
      if (!this.handOver(keys, turn.items[0]!, turn.resolvers[0]!, turn.rejecters[0]!))
        this.deliver(keys, turn.items, turn, 0);
    }
  }

  /** Gives a job to a consumer that waits for it. Without promises: its handler waits for what is done here. False when none does. */
  private handOver(
    keys: QueueKeys,
    item: OutgoingJob,
    resolve: (result: EnqueueResult) => void,
    reject: (error: unknown) => void,
  ): boolean {
    const { connection, neighbour, clock, limits } = this;
    const since = clock.monotonic();
    let limit: Timer | undefined;
    let late = false;
    const enqueueIt = (again: boolean) =>
      this.enqueue(keys, [item], again, Math.floor(clock.monotonic() - since)).then(([landing]) => {
        if (landing instanceof EchoLaneFullError) reject(landing);
        else resolve(landing!);
      }, reject);
    const given = neighbour.dispatch(keys.queue, item, (landed) => {
      if (late) return;
      limit?.cancel();
      if (landed === true) resolve({ id: item.id, status: 'landed' });
      // Why it failed, that will say.
      else if (landed === false || !connection.isClosed) return void enqueueIt(landed !== false);
      else reject(landed);
      this.over(1);
    });
    if (!given) return false;
    if (Number.isFinite(limits.timeoutMs)) {
      limit = connection.limit(limits.timeoutMs, (error) => {
        late = true;
        reject(error);
        this.over(1);
      });
    }
    return true;
  }

  private flushLater(): void {
    if (this.flushing) return;
    this.flushing = true;
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.flushing = false;
    const { turns } = this;
    // A new map, not this one cleared: what a map held before is held on to by what is left of it, for the garbage collection, and one
    // that has grown old would make every turn after it grow old.
    this.turns = new Map();
    this.connection.inOneWrite(() => {
      for (const [keys, turn] of turns) this.sendTurn(keys, turn);
    });
  }

  private sendTurn(keys: QueueKeys, turn: Turn): void {
    let at = 0;
    for (const portion of portions(turn.items, bytesOf)) {
      this.deliver(keys, portion, turn, at);
      at += portion.length;
    }
  }

  private deliver(keys: QueueKeys, items: OutgoingJob[], turn: Turn, at: number): void {
    this.enqueue(keys, items).then(
      (results) => {
        const answer = (from: number, to: number) => {
          for (let i = from; i < to; i++) {
            const result = results[i]!;
            if (result instanceof EchoLaneFullError) turn.rejecters[at + i]!(result);
            else turn.resolvers[at + i]!(result);
          }
        };
        const all = results.length;
        const half = this.callsInFlight === 0 && all >= WORTH_HALVING ? all >> 1 : all;
        answer(0, half);
        // Producers that wait for an answer before they go on would otherwise all go on at once, in one batch, while the
        // server has nothing to do; and wait together while it works. In two halves, one is worked on during the other.
        if (half < all) setImmediate(() => setImmediate(answer, half, all));
      },
      (error) => {
        for (let i = 0; i < items.length; i++) turn.rejecters[at + i]!(error);
      },
    );
  }

  private over(jobs: number): void {
    this.unanswered -= jobs;
    this.conditions.changed();
  }

  /** `again`: perhaps they have landed already. */
  private enqueue(keys: QueueKeys, items: OutgoingJob[], again = false, spentMs = 0): Promise<Landing[]> {
    let resent = again || this.connection.cluster; // there one that was dispatched before may have been sent again
    const onResend = () => {
      resent = true;
    };
    const { timeoutMs } = this.limits;
    const limit = Number.isFinite(timeoutMs) ? Math.max(timeoutMs - spentMs, 1) : undefined;
    this.callsInFlight += 1;
    const ended = () => {
      this.callsInFlight -= 1;
      this.over(items.length);
    };
    const send = () => this.executor.run(enqueue, keys, items, limit, onResend);
    return (items.some(runsNow) ? this.neighbour.around(keys.queue, send) : send()).then(
      (answers) => {
        ended();
        return items.map((item, i) => landingOf(keys.queue, item, answers[i]!, resent));
      },
      (error) => {
        ended();
        throw error;
      },
    );
  }
}

function runsNow({ delay }: OutgoingJob): boolean {
  return delay === '';
}

function isDispatchable({ delay, fields }: OutgoingJob): boolean {
  return delay === '' && fields.every((name, i) => i % 2 === 1 || DISPATCHED_FIELDS.has(name));
}

function landingOf(queue: string, { id, fresh, fields }: OutgoingJob, answer: EnqueueAnswer, resent: boolean): Landing {
  if (answer === 'landed') return { id, status: 'landed' };
  if (answer === 'full') return new EchoLaneFullError(queue, laneOf(fields[fields.indexOf('lane') + 1]!) as string);
  // After a repetition, a fresh id that exists is the job of the first sending, whose answer was lost.
  if (resent && fresh && answer.id === id) return { id, status: 'landed' };
  return { id: answer.id, status: answer.replaced ? 'replaced' : 'duplicate', state: answer.state };
}
