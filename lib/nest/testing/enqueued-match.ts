import { isDeepStrictEqual } from 'node:util';
import type { EnqueuedJob } from '../../engine/by-hand/enqueued.js';
import { assertInteger, assertKnownKeys } from '../../kernel/arguments.js';
import type { TravellingOptions } from '../../kernel/codec.js';
import { EchoArgumentError } from '../../kernel/errors.js';
import { readId } from '../../kernel/id.js';
import { type Lane, laneText } from '../../kernel/lane.js';
import type { Queue } from '../../kernel/queue.js';
import { assertMatchableOptions, assertText } from './expected-options.js';
import { assertMatchable, matchesPartially } from './partial-match.js';

/** Which jobs are meant: those for which everything holds that is given. */
export interface EnqueuedMatch {
  queue: string | Queue;
  /** The `EchoMqModule` of this name. Default: all of the app, each looked at. */
  instance?: string | undefined;
  name?: string | undefined;
  /**
   * What the data holds: of objects only what is given is compared, at any depth, and arrays have the same length. Matchers
   * like `expect.any(String)` may stand anywhere. The data is as the codec brings it back; a Date may be given as it was.
   */
  data?: unknown;
  /**
   * What of `attempts`, `backoff`, `timeoutMs` and `keepMs` came with the job, and of one that a schedule has landed `schedule`
   * and `slot`; compared as `data` is.
   */
  opts?: Partial<TravellingOptions> | undefined;
  priority?: number | undefined;
  /** The lane it is in; null: none. */
  lane?: Lane | null | undefined;
  /** Time from its enqueueing until it may run, within `toleranceMs`; 0 is a job that may run now. */
  delayMs?: number | undefined;
  /** When it may run, within `toleranceMs`; by the server's clock. */
  runAt?: Date | number | undefined;
  /** How far `delayMs` and `runAt` may be off. Default 1,000. */
  toleranceMs?: number | undefined;
}

/** The same with a number: exactly so many jobs match. Default: one or more. */
export interface CountedMatch extends EnqueuedMatch {
  count?: number | undefined;
}

const PARTS = ['queue', 'instance', 'name', 'data', 'opts', 'priority', 'lane', 'delayMs', 'runAt', 'toleranceMs'];
const KNOWN = new Set(PARTS);
const KNOWN_COUNTED = new Set([...PARTS, 'count']);
/** Options of enqueue that stand by themselves here. */
const BESIDE_OPTS = ['priority', 'lane', 'delayMs', 'runAt'];
const TOLERANCE_MS = 1000;

/** @throws EchoArgumentError naming the part that makes no sense, or can be of no job: it would be refuted always */
export function checkMatch(match: CountedMatch, method: string, counted: boolean): void {
  assertKnownKeys(match, counted ? KNOWN_COUNTED : KNOWN, method);
  const { queue, name, data, opts, priority, lane, delayMs, runAt, toleranceMs, count } =
    match as unknown as CountedMatch;
  if (queue === undefined) throw new EchoArgumentError(`${method} needs a queue: { queue: 'mail' }`);
  if (delayMs !== undefined && runAt !== undefined) throw new EchoArgumentError('give delayMs or runAt, not both');
  if (name !== undefined) assertText(name, 'name');
  if (data !== undefined) assertMatchable(data, 'data');
  if (opts !== undefined) checkOptions(opts, method);
  if (priority !== undefined) assertInteger(priority, 'priority', -Number.MAX_SAFE_INTEGER);
  if (lane !== undefined && lane !== null) laneText(lane);
  if (delayMs !== undefined) assertInteger(delayMs, 'delayMs', 0);
  if (runAt !== undefined) assertInteger(momentOf(runAt), 'runAt (milliseconds since 1970)', 0);
  if (toleranceMs !== undefined) assertInteger(toleranceMs, 'toleranceMs', 0);
  if (count !== undefined) assertInteger(count, 'count', 0);
}

function checkOptions(opts: object, method: string): void {
  const misplaced = BESIDE_OPTS.find((part) => Object.hasOwn(Object(opts), part));
  if (misplaced !== undefined) throw new EchoArgumentError(`${method}: ${misplaced} stands beside opts, not in it`);
  assertMatchableOptions(opts, method);
}

/** A Date's, and that of its like. */
function momentOf(runAt: unknown): unknown {
  return typeof runAt === 'object' && runAt !== null ? Number(runAt) : runAt;
}

export function matches(job: EnqueuedJob, match: EnqueuedMatch): boolean {
  const { name, data, opts, priority, lane, delayMs, runAt, toleranceMs = TOLERANCE_MS } = match;
  if (name !== undefined && job.name !== name) return false;
  if (priority !== undefined && job.priority !== priority) return false;
  if (lane !== undefined && !isDeepStrictEqual(job.lane ?? null, lane)) return false;
  if (delayMs !== undefined && !isDelayed(job, delayMs, toleranceMs)) return false;
  if (runAt !== undefined && !isNear(job.runAt?.getTime(), Number(runAt), toleranceMs)) return false;
  if (opts !== undefined && !matchesPartially(job.opts ?? {}, opts)) return false;
  return data === undefined || matchesPartially(job.data, data);
}

/** Minting stands for enqueueing: it is that moment on the server's clock, as far as the client knows it. */
function isDelayed({ id, runAt }: EnqueuedJob, delayMs: number, toleranceMs: number): boolean {
  if (delayMs === 0 || runAt === undefined) return delayMs === 0 && runAt === undefined;
  return isNear(runAt.getTime() - readId(id).mintedAt.getTime(), delayMs, toleranceMs);
}

function isNear(actual: number | undefined, expected: number, toleranceMs: number): boolean {
  return actual !== undefined && Math.abs(actual - expected) <= toleranceMs;
}
