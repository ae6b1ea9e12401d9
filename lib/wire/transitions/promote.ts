import { array, fromZero, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface Promoted {
  moved: number;
  /** The next run-at on the server's clock, milliseconds since 1970; undefined when nothing waits. */
  nextRunAt: number | undefined;
  /** Milliseconds from the server's now until then, with a fraction. */
  nextInMs: number | undefined;
}

export const promote = transition<{ limit: number }, Promoted>({
  name: 'promote',
  keys: ['schedule', 'pending', 'base'],
  args: 'limit',
  answers: 'moved, next run-at or -1, microseconds until then or -1',
  resend: true,
  encode: ({ limit }) => [limit],
  decode(reply) {
    const [moved, nextRunAt, nextInUs] = array(reply).map(integer) as [number, number, number];
    return { moved, nextRunAt: fromZero(nextRunAt), nextInMs: fromZero(nextInUs / 1000) };
  },
});
