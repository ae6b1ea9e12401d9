import type { Timer } from '../kernel/clock.js';
import type { Codec } from '../kernel/codec.js';
import { EchoJobError, EchoStateError, EchoTimeoutError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { get, type Row, watch } from '../wire/transitions/index.js';
import type { Metronome } from './metronome.js';
import { resultOf } from './results.js';

export interface WaitsParts {
  readonly executor: Executor;
  readonly metronome: Metronome;
  readonly codec: Codec;
  /** Listens for the ends of a queue's jobs; {@link Waits.listening} is called when that has taken effect. */
  follow(keys: QueueKeys): void;
  unfollow(keys: QueueKeys): void;
}

interface Waiter {
  resolve(result: unknown): void;
  reject(error: unknown): void;
  limit: Timer | undefined;
  /** The job is on the server, or was: that it is not there means that it has ended. */
  begun: boolean;
  /** Something was heard of it before. */
  nudged: boolean;
  /** It waits no more. */
  over: boolean;
}

/** The waiters of one queue. */
interface Watched {
  readonly keys: QueueKeys;
  readonly waiters: Map<string, Set<Waiter>>;
  /** Jobs that will be looked at when this turn ends. */
  readonly due: Set<string>;
  /** Resolves when nothing is missed any more. */
  readonly heard: Promise<void>;
  isHeard: boolean;
  nowHeard(): void;
  /** Until the next look that nobody has asked for. */
  later: Timer | undefined;
}

const MOST_PER_LOOK = 100;
const LOOK_AGAIN_MS = 10_000;
const PAUSE_AFTER_FAULT_MS = 250;

/**
 * Those who wait for the end of jobs. The server tells only that a job has ended; what became of it stands in its row, which is
 * kept for a minute. A message lost with the connection is made up for by looking again; one that is lost without that (in a cluster the
 * client library subscribes again by itself when a slot has moved) by looking every 10 s while somebody waits.
 */
export class Waits {
  private readonly queues = new Map<string, Watched>();
  private closed = false;

  constructor(private readonly parts: WaitsParts) {}

  /**
   * Resolves with a job's result. `begin` is called once nothing can be missed: it enqueues the job, and answers whether its row
   * says that somebody waits; or is left out for one that may be there.
   * @throws EchoJobError when the job is dead or gone, EchoTimeoutError after `timeoutMs`
   */
  async end(keys: QueueKeys, id: string, timeoutMs: number, begin?: () => Promise<boolean>): Promise<unknown> {
    if (this.closed) throw new EchoStateError('this EchoMq is closed');
    const watched = this.watched(keys);
    const { ended, waiter } = this.join(watched, id, timeoutMs);
    this.start(watched, id, waiter, begin).catch((error) => waiter.reject(error));
    try {
      return await ended;
    } finally {
      this.leave(watched, id, waiter);
    }
  }

  /** A job has ended. */
  settled(queue: string, id: string): void {
    const watched = this.queues.get(queue);
    if (watched?.waiters.has(id)) this.nudge(watched, [id]);
  }

  /** The server tells of ends from now on; again after a reconnect: some may have been missed. */
  listening(queue: string): void {
    const watched = this.queues.get(queue);
    if (watched === undefined) return;
    if (watched.isHeard) this.nudge(watched, [...watched.waiters.keys()]);
    watched.isHeard = true;
    watched.nowHeard();
  }

  /** Tells those whose jobs have ended by now. */
  async lastLook(): Promise<void> {
    const looks: Promise<void>[] = [];
    for (const watched of this.queues.values()) {
      for (const ids of looksAt(begunOf(watched))) looks.push(this.look(watched, ids));
    }
    await Promise.allSettled(looks);
  }

  stop(): void {
    this.closed = true;
    const error = new EchoStateError('this EchoMq was closed before the job ended; the job goes on');
    for (const { waiters } of this.queues.values()) {
      for (const same of waiters.values()) for (const waiter of same) waiter.reject(error);
    }
  }

  private async start(
    watched: Watched,
    id: string,
    waiter: Waiter,
    begin: (() => Promise<boolean>) | undefined,
  ): Promise<void> {
    await watched.heard;
    if (waiter.over) return;
    const marked = begin !== undefined && (await begin());
    waiter.begun = true;
    if (!marked || waiter.nudged) this.nudge(watched, [id]);
  }

  private watched(keys: QueueKeys): Watched {
    let watched = this.queues.get(keys.queue);
    if (watched === undefined) {
      let nowHeard = () => {};
      const heard = new Promise<void>((resolve) => {
        nowHeard = resolve;
      });
      watched = { keys, waiters: new Map(), due: new Set(), heard, isHeard: false, nowHeard, later: undefined };
      this.queues.set(keys.queue, watched);
      this.lookAgain(watched);
      this.parts.follow(keys);
    }
    return watched;
  }

  private join(watched: Watched, id: string, timeoutMs: number): { ended: Promise<unknown>; waiter: Waiter } {
    const waiter: Waiter = {
      resolve: () => {},
      reject: () => {},
      limit: undefined,
      begun: false,
      nudged: false,
      over: false,
    };
    const ended = new Promise<unknown>((resolve, reject) => {
      waiter.resolve = resolve;
      waiter.reject = reject;
    });
    if (Number.isFinite(timeoutMs)) {
      const late = () =>
        waiter.reject(new EchoTimeoutError(`job ${id} has not ended within ${timeoutMs} ms; it goes on`));
      waiter.limit = this.parts.metronome.after(timeoutMs, late);
    }
    const same = watched.waiters.get(id);
    if (same === undefined) watched.waiters.set(id, new Set([waiter]));
    else same.add(waiter);
    return { ended, waiter };
  }

  private leave(watched: Watched, id: string, waiter: Waiter): void {
    waiter.over = true;
    waiter.limit?.cancel();
    const same = watched.waiters.get(id);
    same?.delete(waiter);
    if (same?.size === 0) watched.waiters.delete(id);
    if (watched.waiters.size > 0 || this.closed) return;
    this.queues.delete(watched.keys.queue);
    watched.later?.cancel();
    this.parts.unfollow(watched.keys);
  }

  /** These jobs may have ended. Of one that is only being enqueued, that it is not there yet says nothing. */
  private nudge(watched: Watched, ids: readonly string[]): void {
    for (const id of ids) {
      for (const waiter of watched.waiters.get(id) ?? []) {
        if (!waiter.begun) waiter.nudged = true;
        else if (watched.due.size > 0) watched.due.add(id);
        else {
          watched.due.add(id);
          setImmediate(() => this.lookAtDue(watched));
        }
      }
    }
  }

  private lookAtDue(watched: Watched): void {
    const ids = [...watched.due];
    watched.due.clear();
    this.lookAt(watched, ids);
  }

  /** The next one only when this one is over: a server that is away is not asked more and more. */
  private lookAgain(watched: Watched): void {
    watched.later = this.parts.metronome.after(LOOK_AGAIN_MS, async () => {
      await this.lookAt(watched, begunOf(watched));
      if (this.queues.get(watched.keys.queue) === watched) this.lookAgain(watched);
    });
  }

  private async lookAt(watched: Watched, ids: readonly string[]): Promise<void> {
    const looks = looksAt(ids).map((some) =>
      this.look(watched, some).catch((error) => {
        const fault = asEchoError(error);
        if (fault.retryable) this.parts.metronome.after(PAUSE_AFTER_FAULT_MS, () => this.nudge(watched, some));
        else for (const id of some) for (const waiter of watched.waiters.get(id) ?? []) waiter.reject(fault);
      }),
    );
    await Promise.all(looks);
  }

  private async look(watched: Watched, ids: readonly string[]): Promise<void> {
    const states = await this.parts.executor.run(watch, watched.keys, ids);
    const ended = ids.filter((_, i) => states[i] === 'done' || states[i] === 'dead');
    const rows = ended.length > 0 ? await this.parts.executor.run(get, watched.keys, ended) : [];
    ended.forEach((id, i) => {
      this.tell(watched, id, rows[i]);
    });
    ids.forEach((id, i) => {
      if (states[i] === undefined) this.tell(watched, id, undefined);
    });
  }

  private tell(watched: Watched, id: string, row: Row | undefined): void {
    const state = row?.get('state')?.toString();
    if (state !== undefined && state !== 'done' && state !== 'dead') {
      this.nudge(watched, [id]); // reprocessed between the two looks
      return;
    }
    for (const waiter of watched.waiters.get(id) ?? []) {
      if (!waiter.begun) continue;
      try {
        if (state === 'done') waiter.resolve(resultOf(row!.get('result'), this.parts.codec));
        else waiter.reject(state === undefined ? EchoJobError.removed(id) : EchoJobError.dead(id, reasonOf(row!)));
      } catch (error) {
        waiter.reject(error); // the codec cannot read the result
      }
    }
  }
}

/** Jobs that are on the server, or were. */
function begunOf({ waiters }: Watched): string[] {
  return [...waiters].filter(([, same]) => [...same].some(({ begun }) => begun)).map(([id]) => id);
}

function looksAt(ids: readonly string[]): (readonly string[])[] {
  const looks: (readonly string[])[] = [];
  for (let i = 0; i < ids.length; i += MOST_PER_LOOK) looks.push(ids.slice(i, i + MOST_PER_LOOK));
  return looks;
}

function reasonOf(row: Row): string {
  return row.get('last_error')?.toString() ?? '';
}
