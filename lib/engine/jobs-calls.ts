import { assertInteger } from '../kernel/arguments.js';
import type { Queue } from '../kernel/queue.js';
import type { EnqueueOptions } from './enqueue-options.js';
import type { EnqueueResult } from './enqueuer.js';
import type { EntryFor } from './job-types.js';
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
  opts?: EnqueueOptions | undefined;
}

/** A job that runs when all jobs of a bulk have settled; in their queue, if it names none. It has no delay. */
export type BulkCallback<Of extends string | Queue = string> = EntryFor<Of> & { queue?: Of | undefined };

/** A bulk with a callback that has landed, or will under it. */
export interface BulkWithCallback {
  /** In the order of the items. `duplicate` when the callback was there already: then nothing was changed. */
  jobs: EnqueueResult[];
  callback: EnqueueResult;
}

/** One page of a list. */
export interface Page {
  jobs: JobView[];
  /** Jobs in this state. */
  total: number;
  /** Where the next page begins; undefined on the last. */
  next: number | undefined;
}

/** Which of many jobs are meant: by default all. */
export interface Matching {
  /** Those of this name. */
  name?: string | undefined;
  /** Those of which it answers true, among those of the name. Called once a job, and not awaited. */
  filter?: ((job: JobView) => boolean) | undefined;
  /** At most so many, 1 or more. Default no limit. */
  limit?: number | undefined;
}

/** Options of enqueueAndWait. */
export interface WaitingOptions extends EnqueueOptions {
  /** Time to wait for the end; `Infinity` is no limit. Default 30 s. */
  timeoutMs?: number | undefined;
  /** Time the handler may take: what `enqueue` calls `timeoutMs`. */
  handlerTimeoutMs?: number | undefined;
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
  bulk: new Set(['then']),
  callback: new Set(['name', 'data', 'opts', 'queue']),
  claim: new Set(['leaseMs', 'count']),
  complete: new Set(['result', 'keepMs']),
  retry: new Set(['maxAttempts', 'delayMs', 'error']),
  release: new Set(['delayMs']),
  extend: new Set(['leaseMs']),
  promote: new Set(['limit']),
  reap: new Set(['limit', 'maxStalls']),
  reprocess: new Set(['fresh']),
  reprocessMany: new Set(['name', 'filter', 'limit', 'fresh']),
  removeMany: new Set(['name', 'filter', 'limit']),
  drain: new Set(['scheduled']),
  reschedule: new Set(['delayMs', 'runAt']),
  trim: new Set(['keepCount']),
  list: new Set(['offset', 'limit', 'lane']),
  completions: new Set(['after', 'limit']),
  obliterate: new Set(['force']),
  tree: new Set(['tree']),
  wait: new Set(['timeoutMs']),
} as const;
