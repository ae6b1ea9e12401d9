import { array } from '../reply.js';
import { transition } from '../transition.js';
import { type Row, row } from './row.js';

export const get = transition<readonly string[], (Row | undefined)[]>({
  name: 'get',
  keys: ['pending', 'base'],
  args: 'per job: id',
  answers: 'per job the flat fields of its row',
  resend: true,
  encode: (ids) => [...ids],
  decode: (reply) => array(reply).map(row),
});
