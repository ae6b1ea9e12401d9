import { assertKnownKeys, isDelay, show } from './arguments.js';

/** What a transition answers for one job: a normal outcome of a race, not an exception. */
export type Outcome = 'ok' | 'gone' | 'stale' | 'wrong_state';

/** What `extend` answers: `cancelled` means extended, but asked to stop working. */
export type ExtendOutcome = Outcome | 'cancelled';

/** What `retry` answers: where the job went, or why it did not. */
export type RetryOutcome = 'scheduled' | 'pending' | 'dead' | Exclude<Outcome, 'ok'>;

/** What `cancel` answers: `removed` before it ran, `stopping` when a running job was asked to stop. */
export type CancelOutcome = 'removed' | 'stopping' | 'gone' | 'wrong_state';

/** The same of one job of a tree. */
export type TreeCancelOutcome = CancelOutcome | 'children_first';

/**
 * What removing one job of a tree answers: `children_first` when it has children, which then go before it; `runs_on` when it
 * is running: it ends as any job.
 */
export type RemoveOutcome = Outcome | 'children_first' | 'runs_on';

/** The server's codes for an item. */
export const CODE = { done: 1, gone: 0, stale: -1, wrongState: -2, alsoCancelled: 2, childrenFirst: 3 } as const;

export function outcomeOf(code: number): Outcome {
  switch (code) {
    case CODE.gone:
      return 'gone';
    case CODE.stale:
      return 'stale';
    case CODE.wrongState:
      return 'wrong_state';
    default:
      return 'ok';
  }
}

export function removeOutcomeOf(code: number): RemoveOutcome {
  if (code === CODE.childrenFirst) return 'children_first';
  return code === CODE.alsoCancelled ? 'runs_on' : outcomeOf(code);
}

export function cancelOutcomeOf(code: number): TreeCancelOutcome {
  if (code === CODE.done) return 'removed';
  if (code === CODE.alsoCancelled) return 'stopping';
  return code === CODE.childrenFirst ? 'children_first' : (outcomeOf(code) as CancelOutcome);
}

/** Marks what a handler threw on purpose; a symbol of the realm, because two copies of this library can be loaded at once. */
const ON_PURPOSE = Symbol.for('nestjs-echomq:on-purpose');

/** Which of them a thrown value is. Asking a stranger's value may itself throw. */
export function onPurpose(thrown: unknown): 'discard' | 'snooze' | 'wait' | 'rate-limited' | undefined {
  try {
    return (thrown as Partial<Discard | Snooze | WaitForChildren | RateLimited> | null | undefined)?.[ON_PURPOSE];
  } catch {
    return undefined;
  }
}

/** Thrown by a handler: bury the job at once, whatever attempts it has left. */
export class Discard extends Error {
  /** @internal */
  readonly [ON_PURPOSE] = 'discard';

  constructor(reason = 'discarded by its handler') {
    super(reason);
    this.name = 'Discard';
  }
}

/** Thrown by a handler: put the job back for `ms` milliseconds without charging the attempt. */
export class Snooze extends Error {
  /** @internal */
  readonly [ON_PURPOSE] = 'snooze';
  readonly ms: number;

  /** @throws RangeError unless `ms` is a whole number of milliseconds, 0 to 2^53-1 */
  constructor(ms: number) {
    super(`snoozed for ${show(ms)} ms`);
    this.name = 'Snooze';
    if (!isDelay(ms)) throw new RangeError(`Snooze takes whole milliseconds from 0, got ${show(ms)}`);
    this.ms = ms;
  }
}

/**
 * Thrown by a handler: put the job back until its children have settled, without charging the attempt; it then runs again,
 * at once when none is outstanding. What it has done is its own to remember: `await job.children()` tells what they answered.
 */
export class WaitForChildren extends Error {
  /** @internal */
  readonly [ON_PURPOSE] = 'wait';

  constructor() {
    super('waits for its children');
    this.name = 'WaitForChildren';
  }
}

const KNOWN = new Set(['scope']);

/**
 * Thrown by a handler: what it needs allows no more for now. The job keeps its place and its attempt; for `ms` milliseconds nothing
 * is claimed of its lane, or of its queue, by any process.
 */
export class RateLimited extends Error {
  /** @internal */
  readonly [ON_PURPOSE] = 'rate-limited';
  readonly ms: number;
  readonly scope: 'lane' | 'queue';

  /**
   * `scope` is what is held back: the job's lane (default), or the queue; of a job without a lane always the queue.
   * @throws RangeError unless `ms` is a whole number of milliseconds, 1 to 2^53-1, and the options are `scope`, one of the two
   */
  constructor(ms: number, options: { scope?: 'lane' | 'queue' | undefined } = {}) {
    super(`held back for ${show(ms)} ms`);
    this.name = 'RateLimited';
    if (!isDelay(ms) || ms === 0) throw new RangeError(`RateLimited takes whole milliseconds from 1, got ${show(ms)}`);
    assertKnownKeys(options, KNOWN, "RateLimited's options", RangeError);
    const { scope = 'lane' } = options as { scope?: 'lane' | 'queue' | undefined };
    if (scope !== 'lane' && scope !== 'queue')
      throw new RangeError(`RateLimited holds back a 'lane' or a 'queue', got ${show(scope)}`);
    this.ms = ms;
    this.scope = scope;
  }
}

/** A {@link Snooze} because nobody here handles jobs of this name; the consumer's 'unhandled' event tells of it. */
export class NotHandled extends Snooze {
  constructor(ms: number) {
    super(ms);
    this.name = 'NotHandled';
  }
}

/** Why `job.signal` fired; the signal's `reason` is one of these. */
export class JobAborted extends Error {
  constructor(
    readonly why: 'timeout' | 'cancelled' | 'lease_lost' | 'shutdown',
    message: string,
  ) {
    super(message);
    this.name = 'JobAborted';
  }
}
