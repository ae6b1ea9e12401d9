import type { Outcome } from '../../kernel/outcome.js';
import type { Arg } from '../reply.js';
import { transition } from '../transition.js';
import { type Claimed, outcomes } from './codes.js';

export interface ProgressItem extends Claimed {
  value: string | Buffer;
}

export const progress = transition<readonly ProgressItem[], Outcome[]>({
  name: 'progress',
  keys: ['active', 'base'],
  args: 'per job: id, token, value',
  answers: 'code per job',
  resend: false, // a later value may have overtaken it
  encode(items) {
    const args: Arg[] = [];
    for (const { id, token, value } of items) args.push(id, token, value);
    return args;
  },
  decode: outcomes,
});
