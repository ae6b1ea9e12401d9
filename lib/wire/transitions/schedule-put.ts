import { type Arg, array, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface SchedulePut {
  key: string;
  /** Drawn for this call: it tells one declaration from the next. */
  rev: string;
  /** When it runs, as text: the next slot moves only when this is another. */
  spec: string;
  /** What becomes of missed and overlapping slots, as text. */
  rules: string;
  payload: string | Buffer;
  /** Milliseconds since 1970. */
  nextSlot: number;
  /** Who declares it, as a word. */
  origin: string;
  /** Flat names and values, as enqueue takes them. */
  fields: readonly string[];
}

export interface SchedulePutAnswer {
  what: 'new' | 'changed' | 'unchanged';
  nextSlot: number;
}

const ANSWERS = ['unchanged', 'new', 'changed'] as const;

export const schedulePut = transition<SchedulePut, SchedulePutAnswer>({
  name: 'schedule_put',
  keys: ['schedules', 'base'],
  args: 'key, rev, spec, rules, payload, next slot, origin, nfields, field, value ...',
  answers: '1 new, 2 changed, 0 as it was; its next slot',
  resend: true, // the second sending finds it as it was
  encode({ key, rev, spec, rules, payload, nextSlot, origin, fields }) {
    const args: Arg[] = [key, rev, spec, rules, payload, nextSlot, origin, fields.length / 2];
    return args.concat(fields as Arg[]);
  },
  decode(reply) {
    const [what, nextSlot] = array(reply).map(integer) as [number, number];
    return { what: ANSWERS[what]!, nextSlot };
  },
});
