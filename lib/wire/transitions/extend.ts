import { CODE, type ExtendOutcome, outcomeOf } from '../../kernel/outcome.js';
import { type Arg, array, integer } from '../reply.js';
import { transition } from '../transition.js';
import type { Claimed } from './codes.js';

export interface ExtendCall {
  leaseMs: number;
  items: readonly Claimed[];
}

export const extend = transition<ExtendCall, ExtendOutcome[]>({
  name: 'extend',
  keys: ['active', 'base'],
  args: 'lease_ms, then per job: id, token',
  answers: 'code per job; 2 = extended, but cancelled',
  resend: false, // a deadline counted from a later arrival would be longer than its holder believes
  encode({ leaseMs, items }) {
    const args: Arg[] = [leaseMs];
    for (const { id, token } of items) args.push(id, token);
    return args;
  },
  decode: (reply) =>
    array(reply).map((answer) => {
      const code = integer(answer);
      return code === CODE.alsoCancelled ? 'cancelled' : outcomeOf(code);
    }),
});
