import type { Clock } from '../kernel/clock.js';
import { type EchoError, EchoLaneFullError, EchoStoreError, EchoTimeoutError } from '../kernel/errors.js';
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

/** A batch of at least so many is answered in two halves when nothing else is on its way. */
const WORTH_HALVING = 16;

/** The consumer of a queue in this process, if it has one. */
export interface Neighbour {
  /** Sends jobs of a queue; an idle consumer claims behind them. */
  around<T>(queue: string, send: () => T): T;
  /** Lands a job in the hands of an idle consumer; false: it has to be enqueued. Undefined: at once. @throws EchoError */
  dispatch(queue: string, item: EnqueueItem): Promise<boolean> | undefined;
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
  private readonly turns = new Map<QueueKeys, Turn>();
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
      if (this.turns.size === 0) setImmediate(() => this.flush());
      turn = new Turn();
      this.turns.set(keys, turn);
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
      this.send(keys, portion).catch((error: EchoError) => portion.map(() => error)),
    );
    return (await Promise.all(sent)).flat();
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

  private flush(): void {
    const turns = [...this.turns];
    this.turns.clear();
    this.connection.cork();
    for (const [keys, turn] of turns) this.sendTurn(keys, turn);
    this.connection.uncork();
  }

  private sendTurn(keys: QueueKeys, turn: Turn): void {
    let at = 0;
    for (const portion of portions(turn.items, bytesOf)) {
      this.deliver(keys, portion, turn, at);
      at += portion.length;
    }
  }

  private deliver(keys: QueueKeys, items: OutgoingJob[], turn: Turn, at: number): void {
    this.send(keys, items).then(
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

  private dispatch(queue: string, items: OutgoingJob[]): Promise<boolean> | undefined {
    if (items.length > 1 || !isDispatchable(items[0]!)) return undefined;
    return this.neighbour.dispatch(queue, items[0]!);
  }

  /** Whether the job landed; undefined when that is not known: it is then sent again. @throws EchoError when it cannot be */
  private async outcomeOf(dispatched: Promise<boolean>): Promise<boolean | undefined> {
    const { timeoutMs } = this.limits;
    try {
      return await (Number.isFinite(timeoutMs) ? this.connection.inTime(dispatched, timeoutMs) : dispatched);
    } catch (error) {
      if (error instanceof EchoTimeoutError || this.connection.isClosed) throw error;
      return undefined; // why, enqueue will say
    }
  }

  private async send(keys: QueueKeys, items: OutgoingJob[]): Promise<Landing[]> {
    this.callsInFlight += 1;
    try {
      let resent = this.connection.cluster; // there the client library sends again by itself, and tells nobody
      let { timeoutMs } = this.limits;
      const dispatched = this.dispatch(keys.queue, items);
      if (dispatched !== undefined) {
        const since = this.clock.monotonic();
        const outcome = await this.outcomeOf(dispatched);
        if (outcome === true) return [{ id: items[0]!.id, status: 'landed' }];
        resent ||= outcome === undefined;
        timeoutMs = Math.max(timeoutMs - Math.floor(this.clock.monotonic() - since), 1);
      }
      const onResend = () => {
        resent = true;
      };
      const limit = Number.isFinite(timeoutMs) ? timeoutMs : undefined;
      const answers = await this.neighbour.around(keys.queue, () =>
        this.executor.run(enqueue, keys, items, limit, onResend),
      );
      return items.map((item, i) => landingOf(keys.queue, item, answers[i]!, resent));
    } finally {
      this.callsInFlight -= 1;
      this.unanswered -= items.length;
      this.conditions.changed();
    }
  }
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
