import type { EchoError } from '../kernel/errors.js';
import type { Job } from './job.js';
import type { JobView } from './job-view.js';

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

/** Of a job that was found to be dead. */
export function foundDead(queue: string, view: JobView): DeadJob {
  const { id, name, data, attempts, uncharged, lastError = '' } = view;
  return { queue, id, name, data, attempts, attempt: attempts - uncharged, reason: lastError };
}
