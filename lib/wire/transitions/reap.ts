import { array, ascii, fromZero, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface ReapCall {
  limit: number;
  maxStalls: number;
  epoch: string;
  record: number;
}

export interface Reaped {
  requeued: number;
  died: number;
  deadIds: string[];
  /** The next lease deadline on the server's clock, milliseconds since 1970; undefined when nothing is active. */
  nextDeadline: number | undefined;
  /** Milliseconds from the server's now until then. */
  nextInMs: number | undefined;
}

export const reap = transition<ReapCall, Reaped>({
  name: 'reap',
  keys: ['active', 'pending', 'dead', 'base'],
  args: 'limit, max_stalls, epoch, record',
  answers: 'requeued, died, next deadline or -1, ms until then or -1, then the ids of those that died',
  resend: true,
  encode: ({ limit, maxStalls, epoch, record }) => [limit, maxStalls, epoch, record],
  decode(reply) {
    const [requeued, died, nextDeadline, nextInMs, ...deadIds] = array(reply);
    return {
      requeued: integer(requeued),
      died: integer(died),
      deadIds: deadIds.map(ascii),
      nextDeadline: fromZero(integer(nextDeadline)),
      nextInMs: fromZero(integer(nextInMs)),
    };
  },
});
