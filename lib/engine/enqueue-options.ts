import { assertInteger, assertKnownKeys, show } from '../kernel/arguments.js';
import { assertJobBackoff, type JobBackoff } from '../kernel/backoff.js';
import type { TravellingOptions } from '../kernel/codec.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';

export interface EnqueueOptions {
  /** Milliseconds from the server's now; 0 is now. */
  delayMs?: number;
  /** A moment, as a Date or milliseconds since 1970; one that has passed is now. Not together with `delayMs`. */
  runAt?: Date | number;
  /** Whole, lower first, -(2^53-1) to 2^53-1. Default 0. Equal priorities run in mint order. */
  priority?: number;
  /** Failed attempts before the job is buried; stronger than the consumer's. */
  attempts?: number;
  backoff?: JobBackoff;
  /** Time the handler may take; stronger than the consumer's. */
  timeoutMs?: number;
  /** How long the completed job's row is kept with its result. */
  keepMs?: number;
  /** Lapsed leases the job survives; stronger than the consumer's. */
  maxStalls?: number;
  /** From `jobs.mintId()`: the same job may then be enqueued again, and lands once. */
  id?: string;
}

/** Options as the wire wants them. */
export interface Landing {
  id: string | undefined;
  delay: string;
  fields: readonly string[];
  travelling: TravellingOptions | undefined;
}

const KNOWN = new Set([
  'delayMs',
  'runAt',
  'priority',
  'attempts',
  'backoff',
  'timeoutMs',
  'keepMs',
  'maxStalls',
  'id',
]);

const NO_FIELDS: readonly string[] = [];
const PLAIN: Landing = { id: undefined, delay: '', fields: NO_FIELDS, travelling: undefined };

/** @throws EchoArgumentError naming the option */
export function landingOf(options: EnqueueOptions | undefined): Landing {
  if (options === undefined) return PLAIN;
  assertKnownKeys(options, KNOWN, 'enqueue options');
  if (options.id !== undefined) assertJobId(options.id);
  return {
    id: options.id,
    delay: delayOf(options),
    fields: fieldsOf(options),
    travelling: travellingOf(options),
  };
}

function delayOf({ delayMs, runAt }: EnqueueOptions): string {
  if (delayMs !== undefined) {
    if (runAt !== undefined) throw new EchoArgumentError('give delayMs or runAt, not both');
    return delayText(delayMs, 'delayMs');
  }
  if (runAt === undefined) return '';
  const at = runAt instanceof Date ? runAt.getTime() : runAt;
  assertInteger(at, 'runAt (milliseconds since 1970)', 0);
  return `@${at}`;
}

/** Milliseconds as the wire spells a delay. */
export function delayText(ms: unknown, name: string): string {
  assertInteger(ms, name, 0);
  return ms === 0 ? '' : String(ms);
}

function fieldsOf({ priority, maxStalls }: EnqueueOptions): readonly string[] {
  if (priority === undefined && maxStalls === undefined) return NO_FIELDS;
  const fields: string[] = [];
  if (priority !== undefined) {
    assertInteger(priority, 'priority', -Number.MAX_SAFE_INTEGER);
    if (priority !== 0) fields.push('priority', String(priority));
  }
  if (maxStalls !== undefined) {
    assertInteger(maxStalls, 'maxStalls', 0);
    fields.push('max_stalls', String(maxStalls));
  }
  return fields;
}

function travellingOf({ attempts, backoff, timeoutMs, keepMs }: EnqueueOptions): TravellingOptions | undefined {
  if (attempts === undefined && backoff === undefined && timeoutMs === undefined && keepMs === undefined) {
    return undefined;
  }
  if (attempts !== undefined) assertInteger(attempts, 'attempts', 1);
  if (timeoutMs !== undefined) assertInteger(timeoutMs, 'timeoutMs', 0);
  if (keepMs !== undefined) assertInteger(keepMs, 'keepMs', 0);
  if (backoff !== undefined) {
    if (typeof backoff === 'function') {
      throw new EchoArgumentError(`backoff ${show(backoff)} cannot travel with a job: give it to the consumer`);
    }
    assertJobBackoff(backoff);
  }
  return { attempts, backoff, timeoutMs, keepMs };
}
