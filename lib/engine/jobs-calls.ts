import { assertInteger } from '../kernel/arguments.js';
import type { EnqueueOptions } from './enqueue-options.js';
import type { JobView } from './job-view.js';

/** What the methods of Jobs take and answer, where that is more than a word. */

/** A job that was claimed by hand: whoever has the token may settle it. */
export interface ClaimedJob {
  id: string;
  /** Empty when the payload is no envelope; `data` is then the payload. */
  name: string;
  data: unknown;
  payload: Buffer;
  attempts: number;
  token: string;
}

/** One of many jobs to enqueue. */
export interface EnqueueEntry {
  name: string;
  data?: unknown;
  opts?: EnqueueOptions;
}

/** One page of a list. */
export interface Page {
  jobs: JobView[];
  /** Jobs in this state. */
  total: number;
  /** Where the next page begins; undefined on the last. */
  next: number | undefined;
}

/** Options of enqueueAndWait. */
export interface WaitingOptions extends EnqueueOptions {
  /** Time to wait for the end; `Infinity` is no limit. Default 30 s. */
  timeoutMs?: number;
  /** Time the handler may take: what `enqueue` calls `timeoutMs`. */
  handlerTimeoutMs?: number;
}

const WAIT_MS = 30_000;

/** @throws EchoArgumentError */
export function waitMs(timeoutMs: number | undefined = WAIT_MS): number {
  if (timeoutMs !== Number.POSITIVE_INFINITY) assertInteger(timeoutMs, 'timeoutMs', 1);
  return timeoutMs;
}

/** The options each method knows. */
export const KNOWN = {
  entry: new Set(['name', 'data', 'opts']),
  claim: new Set(['leaseMs', 'count']),
  complete: new Set(['result', 'keepMs']),
  retry: new Set(['maxAttempts', 'delayMs', 'error']),
  release: new Set(['delayMs']),
  extend: new Set(['leaseMs']),
  promote: new Set(['limit']),
  reap: new Set(['limit', 'maxStalls']),
  reprocess: new Set(['fresh']),
  reschedule: new Set(['delayMs', 'runAt']),
  trim: new Set(['keepCount']),
  list: new Set(['offset', 'limit']),
  obliterate: new Set(['force']),
  tree: new Set(['tree']),
  wait: new Set(['timeoutMs']),
} as const;
