import type { Outcome } from '../../kernel/outcome.js';
import { transition } from '../transition.js';
import { outcomes } from './codes.js';

export const reprocess = transition<{ fresh: boolean; ids: readonly string[] }, Outcome[]>({
  name: 'reprocess',
  keys: ['dead', 'pending', 'base'],
  args: 'fresh(0/1), per job: id',
  answers: 'per job 1, 0 gone, -2 not dead',
  resend: true,
  encode: ({ fresh, ids }) => [fresh ? 1 : 0, ...ids],
  decode: outcomes,
});
