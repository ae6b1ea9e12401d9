import type { QueueKeys } from '../kernel/keyspace.js';
import type { Executor } from './executor.js';
import { array, fromZero, integer } from './reply.js';

/** What one queue wants of a process, in milliseconds from the server's now; undefined when there is nothing. */
export interface Standing {
  leads: boolean;
  nextRunInMs: number | undefined;
  nextDeadlineInMs: number | undefined;
  /** Until a lane that its rate holds back may give a job, or the queue that its own does. */
  nextParkedInMs: number | undefined;
  claimable: boolean;
  /** Effects owed to other queues may wait in the outbox. */
  owes: boolean;
  /** Until a repeating schedule fires. */
  nextSlotInMs: number | undefined;
}

/** Queues one `lead` call can look after. */
export const QUEUES_PER_BEAT = 100;
const NUMBERS_PER_QUEUE = 7;
/** It may stand behind a long answer on a slow link; a call that the client library has lost is made anew. */
const ANSWER_MS = 30_000;

/** One beat for queues of one slot (any queues, when the server is no cluster). @throws EchoError, after 30 s EchoTimeoutError */
export async function lead(
  executor: Executor,
  queues: readonly QueueKeys[],
  call: { process: string; ttlMs: number },
): Promise<Standing[]> {
  const keys = queues.map((queue) => queue.leader).concat(queues[0]!.base);
  const options = { resend: false, timeoutMs: ANSWER_MS };
  const reply = await executor.script('lead', keys, [call.process, call.ttlMs], options);
  const n = array(reply).map(integer);
  return queues.map((_, i) => {
    const at = i * NUMBERS_PER_QUEUE;
    return {
      leads: n[at] === 1,
      nextRunInMs: fromZero(n[at + 1]!),
      nextDeadlineInMs: fromZero(n[at + 2]!),
      nextParkedInMs: fromZero(n[at + 3]!),
      claimable: n[at + 4] === 1,
      owes: n[at + 5] === 1,
      nextSlotInMs: fromZero(n[at + 6]!),
    };
  });
}

/** Gives back what this process leads, and its place among the hungry. */
export async function resign(executor: Executor, queues: readonly QueueKeys[], process: string): Promise<void> {
  const keys = queues.map((queue) => queue.leader).concat(queues[0]!.base);
  await executor.script('resign', keys, [process], { resend: false, timeoutMs: 1000 });
}
