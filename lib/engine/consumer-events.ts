import type { Codec } from '../kernel/codec.js';
import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Executor } from '../wire/executor.js';
import { get } from '../wire/transitions/index.js';
import type { Job } from './job.js';
import { viewOf } from './job-view.js';

/** Where a failed job went. */
export type Where = 'scheduled' | 'pending' | 'dead';

/** A job in the morgue, and why. */
export interface DeadJob {
  readonly queue: string;
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  /** Claims so far. */
  readonly attempts: number;
  /** Claims that were charged. */
  readonly attempt: number;
  /**
   * What the row keeps: of an error its stack. Of a job that was asked to stop and then failed it is what its handler
   * threw, and the row says `cancelled`.
   */
  readonly reason: string;
}

export interface ConsumerEvents {
  /** The server has taken the completion. */
  completed: [job: Job, result: unknown];
  /** An attempt failed; `outcome` says where the job went. */
  failed: [job: Job, error: unknown, outcome: Where];
  /**
   * A job died: a handler here used up its attempts, discarded it, or failed when it was asked to stop; or its lease
   * lapsed too often, or it died of its child, which the one process that leads the queue tells. Of a job that was
   * asked to stop and then given back only the bus tells; of deaths by hand (`jobs.retry`, `jobs.reap`) the caller
   * knows.
   */
  dead: [job: DeadJob];
  /** Nobody here handles jobs of this name: it was put back for a while, uncharged. */
  unhandled: [job: Job];
  /** Somebody else has the job, or will have: what this run does no longer counts. */
  'lease-lost': [job: Job, why: string];
  /** The server, or the way to it, is in trouble; the consumer goes on by itself. */
  error: [error: EchoError];
}

/** Of a job that died here. */
export function deadHere({ queue, id, name, data, attempts, attempt }: Job, reason: string): DeadJob {
  return { queue, id, name, data, attempts, attempt, reason };
}

/** Of jobs that were found to be dead. One that was trimmed meanwhile is not among them. */
export async function foundDead(
  { executor, codec }: { readonly executor: Executor; readonly codec: Codec },
  keys: QueueKeys,
  ids: readonly string[],
): Promise<DeadJob[]> {
  const rows = await executor.run(get, keys, ids);
  return ids.flatMap((sought, i) => {
    const row = rows[i];
    if (row === undefined) return [];
    const { id, name, data, attempts, uncharged, lastError = '' } = viewOf(sought, row, codec);
    return [{ queue: keys.queue, id, name, data, attempts, attempt: attempts - uncharged, reason: lastError }];
  });
}
