import { type Ageing, assertAgeing } from '../kernel/ageing.js';
import { assertInteger, assertKnownKeys, show } from '../kernel/arguments.js';
import { assertJobBackoff, type JobBackoff } from '../kernel/backoff.js';
import type { TravellingOptions } from '../kernel/codec.js';
import { type Dedup, dedupText } from '../kernel/dedup.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import { type Lane, laneText } from '../kernel/lane.js';

export interface EnqueueOptions {
  /** Milliseconds from the server's now; 0 is now. */
  delayMs?: number | undefined;
  /** A moment, as a Date or milliseconds since 1970; one that has passed is now. Not together with `delayMs`. */
  runAt?: Date | number | undefined;
  /** Whole, lower first, -(2^53-1) to 2^53-1. Default 0. Equal priorities run in mint order. */
  priority?: number | undefined;
  /**
   * The job grows older while it waits: so many milliseconds, from 1, are worth one step of priority. It then stands
   * under a score reckoned when it lands, `priority * ageingMs` + the moment from which it may run, and jobs without
   * ageing stand in front of it unless their priority is as high as such a score: give it to all jobs of a queue or a
   * lane, or to none.
   */
  ageingMs?: number | undefined;
  /** Failed attempts before the job is buried; stronger than the consumer's. */
  attempts?: number | undefined;
  backoff?: JobBackoff | undefined;
  /** Time the handler may take; stronger than the consumer's. */
  timeoutMs?: number | undefined;
  /** How long the completed job's row is kept with its result. */
  keepMs?: number | undefined;
  /** Lapsed leases the job survives; stronger than the consumer's. */
  maxStalls?: number | undefined;
  /** From `jobs.mintId()`: the same job may then be enqueued again, and lands once. */
  id?: string | undefined;
  /**
   * Whose turn it takes, a tenant's say: lanes are served in turn, by their weights. Default: what the queue's
   * function for it says, or none; null is none, whatever that says.
   */
  lane?: Lane | null | undefined;
  /** Nothing lands while another job holds the key; see {@link Dedup}. */
  dedup?: Dedup | undefined;
}

/** Options as the wire wants them. */
export interface Landing {
  id: string | undefined;
  delay: string;
  fields: readonly string[];
  travelling: TravellingOptions | undefined;
  /** The priority is reckoned by it, once the job has an id. */
  ageing: Ageing | undefined;
}

const KNOWN = new Set([
  'delayMs',
  'runAt',
  'priority',
  'ageingMs',
  'attempts',
  'backoff',
  'timeoutMs',
  'keepMs',
  'maxStalls',
  'id',
  'lane',
  'dedup',
]);

const NO_FIELDS: readonly string[] = [];
const PLAIN: Landing = { id: undefined, delay: '', fields: NO_FIELDS, travelling: undefined, ageing: undefined };

/** @throws EchoArgumentError naming the option */
export function landingOf(options: EnqueueOptions | undefined): Landing {
  if (options === undefined) return PLAIN;
  assertKnownKeys(options, KNOWN, 'enqueue options');
  if (options.id !== undefined) assertJobId(options.id);
  const delay = delayOf(options);
  return {
    id: options.id,
    delay,
    fields: fieldsOf(options),
    travelling: travellingOf(options),
    ageing: ageingOf(options, delay),
  };
}

function ageingOf({ priority = 0, ageingMs }: EnqueueOptions, delay: string): Ageing | undefined {
  if (ageingMs === undefined) return undefined;
  assertAgeing({ priority, ageingMs });
  return { priority, ageingMs, delay };
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

function fieldsOf(options: EnqueueOptions): readonly string[] {
  const { priority, ageingMs, maxStalls, lane, dedup, delayMs, runAt } = options;
  if (priority === undefined && maxStalls === undefined && lane === undefined && dedup === undefined) return NO_FIELDS;
  const fields: string[] = [];
  if (priority !== undefined) {
    assertInteger(priority, 'priority', -Number.MAX_SAFE_INTEGER);
    if (priority !== 0 && ageingMs === undefined) fields.push('priority', String(priority));
  }
  if (maxStalls !== undefined) {
    assertInteger(maxStalls, 'maxStalls', 0);
    fields.push('max_stalls', String(maxStalls));
  }
  if (lane !== undefined && lane !== null) fields.push('lane', laneText(lane));
  if (dedup !== undefined) {
    fields.push('dedup', dedupText(dedup));
    if (dedup.mode === 'debounce' && (delayMs !== undefined || runAt !== undefined)) {
      throw new EchoArgumentError("dedup: mode 'debounce' delays the job by ttlMs: give no delayMs or runAt");
    }
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
