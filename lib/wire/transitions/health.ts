import { array, ascii, fromZero } from '../reply.js';
import { transition } from '../transition.js';

/** How a queue stands, by the server's clock. */
export interface QueueStanding {
  /** Some process leads the queue. */
  led: boolean;
  paused: boolean;
  pending: number;
  /** The next job to be claimed; undefined when nothing is pending. */
  head: string | undefined;
  /** The earliest run-at and lease deadline, ms since 1970; undefined when there is none. */
  nextRunAt: number | undefined;
  nextDeadline: number | undefined;
  now: number;
}

export const health = transition<void, QueueStanding>({
  name: 'health',
  keys: ['pending', 'base'],
  args: '',
  answers:
    'leading process or empty, paused, pending, id whose turn is next or empty, next run-at or -1, next deadline or -1, now',
  resend: true,
  encode: () => [],
  decode(reply) {
    const [leader, paused, pending, head, nextRunAt, nextDeadline, now] = array(reply).map(ascii);
    return {
      led: leader !== '',
      paused: paused === '1',
      pending: Number(pending),
      head: head === '' ? undefined : head,
      nextRunAt: fromZero(Number(nextRunAt)),
      nextDeadline: fromZero(Number(nextDeadline)),
      now: Number(now),
    };
  },
});
