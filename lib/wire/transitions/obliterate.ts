import { integer } from '../reply.js';
import { transition } from '../transition.js';

export const obliterate = transition<{ force: boolean; limit: number }, number>({
  name: 'obliterate',
  keys: ['pending', 'base'],
  args: 'force(0/1), limit',
  answers: 'jobs removed; -1 when there are more lanes or schedules; 0 when nothing is left',
  resend: true,
  encode: ({ force, limit }) => [force ? 1 : 0, limit],
  decode: integer,
});
