import type { Outcome } from '../../kernel/outcome.js';
import type { Arg } from '../reply.js';
import { transition } from '../transition.js';
import { type Claimed, outcomes } from './codes.js';

export const wait = transition<readonly Claimed[], Outcome[]>({
  name: 'wait',
  keys: ['active', 'pending', 'base'],
  args: 'per job: id, token',
  answers: 'code per job',
  resend: true,
  encode(items) {
    const args: Arg[] = [];
    for (const { id, token } of items) args.push(id, token);
    return args;
  },
  decode: outcomes,
});
