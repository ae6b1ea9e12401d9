import type { JobState } from '../../kernel/state.js';
import { type Arg, array, ascii, type Reply } from '../reply.js';
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

/** What became of one job. */
export type EnqueueAnswer =
  | 'landed'
  /** Its lane is full: nothing landed. */
  | 'full'
  | {
      /** The job that is there: of this id, or the one that holds the deduplication key. */
      readonly id: string;
      /** `gone`: it has ended, and holds the key by time only. */
      readonly state: JobState | 'gone';
      /** It was given the payload. */
      readonly replaced: boolean;
    };

export const enqueue = transition<readonly EnqueueItem[], EnqueueAnswer[]>({
  name: 'enqueue',
  keys: ['pending', 'schedule', 'base'],
  args: 'per job: id, payload, delay, nfields, field, value ...',
  answers:
    'per job 1 landed, -3 the lane is full; of a duplicate `id state` of the job that is there, and ` replaced` behind it',
  resend: true, // an id that has landed lands once
  encode(items) {
    const args: Arg[] = [];
    for (const { id, payload, delay, fields } of items) {
      if (fields.length === 0) args.push(id, payload, delay, NO_FIELDS);
      else args.push(id, payload, delay, String(fields.length / 2), ...fields);
    }
    return args;
  },
  decode: (reply) => array(reply).map(answerOf),
});

function answerOf(reply: Reply): EnqueueAnswer {
  if (typeof reply === 'number') return reply === 1 ? 'landed' : 'full';
  const [id, state, replaced] = ascii(reply).split(' ');
  return { id: id!, state: state as JobState | 'gone', replaced: replaced !== undefined };
}
