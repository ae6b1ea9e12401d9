import type { Outcome } from '../../kernel/outcome.js';
import { transition } from '../transition.js';
import { outcomes } from './codes.js';

export const remove = transition<readonly string[], Outcome[]>({
  name: 'remove',
  keys: ['pending', 'base'],
  args: 'tree(0/1), per job: id',
  answers: 'code per job; -2 for active',
  resend: true,
  encode: (ids) => [0, ...ids],
  decode: outcomes,
});
