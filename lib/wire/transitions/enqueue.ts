import { type Arg, array, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface EnqueueItem {
  id: string;
  payload: string | Buffer;
  /** '' = now, '250' = milliseconds from now, '@1790000000000' = at. */
  delay: string;
  /** Flat names and values. */
  fields: readonly string[];
}

const NO_FIELDS = '0';

export const enqueue = transition<readonly EnqueueItem[], boolean[]>({
  name: 'enqueue',
  keys: ['pending', 'schedule', 'base'],
  args: 'per job: id, payload, delay, nfields, field, value ...',
  answers: 'per job 1 landed, 0 the id exists',
  resend: true, // an id that has landed lands once
  encode(items) {
    const args: Arg[] = [];
    for (const { id, payload, delay, fields } of items) {
      if (fields.length === 0) args.push(id, payload, delay, NO_FIELDS);
      else args.push(id, payload, delay, String(fields.length / 2), ...fields);
    }
    return args;
  },
  decode: (reply) => array(reply).map((answer) => integer(answer) === 1),
});
