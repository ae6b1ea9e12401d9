import { integer } from '../reply.js';
import { transition } from '../transition.js';

export const trim = transition<{ keepCount: number; limit: number }, number>({
  name: 'trim',
  keys: ['dead', 'base'],
  args: 'keep_count, limit',
  answers: 'removed; lowest ids first',
  resend: true,
  encode: ({ keepCount, limit }) => [keepCount, limit],
  decode: integer,
});
