import { array, integer, text } from '../reply.js';
import { transition } from '../transition.js';

/** What holds back a whole queue; undefined where nothing does. */
export interface LimitStanding {
  concurrency: number | undefined;
  /** Milliseconds between two jobs. */
  intervalMs: number | undefined;
  burst: number | undefined;
  /** For so long nothing is claimed; 0 when time holds nothing back. */
  heldForMs: number;
}

/** Changes the limits of a queue by flat settings and values, or with none only looks. */
export const limit = transition<readonly string[], LimitStanding>({
  name: 'limit',
  keys: ['limits', 'base'],
  args: "settings and values; '' takes one back",
  answers: "concurrency, interval, burst, each '' when there is none; ms the queue is held back now",
  resend: true, // it says what is to be
  encode: (settings) => [...settings],
  decode(reply) {
    const [concurrency, interval, burst, held] = array(reply);
    const number = (value: typeof concurrency) => (text(value) === '' ? undefined : Number(text(value)));
    return {
      ...{ concurrency: number(concurrency), intervalMs: number(interval), burst: number(burst) },
      heldForMs: integer(held),
    };
  },
});
