import { integer } from '../reply.js';
import { transition } from '../transition.js';

export const sweep = transition<readonly string[], number>({
  name: 'sweep',
  keys: ['pending', 'base'],
  args: 'per job: id',
  answers: 'kept rows removed; others are left alone',
  resend: true,
  encode: (ids) => [...ids],
  decode: integer,
});
