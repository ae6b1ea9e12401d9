import type { Outcome } from '../../kernel/outcome.js';
import type { Arg } from '../reply.js';
import { transition } from '../transition.js';
import { type Claimed, outcomes } from './codes.js';

export interface ReleaseItem extends Claimed {
  /** '' = now, otherwise as for enqueue; `lane:250` and `queue:250` hold back the lane or the queue meanwhile. */
  delay: string;
}

export const release = transition<readonly ReleaseItem[], Outcome[]>({
  name: 'release',
  keys: ['active', 'pending', 'schedule', 'base'],
  args: 'per job: id, token, delay',
  answers: 'code per job',
  resend: true,
  encode(items) {
    const args: Arg[] = [];
    for (const { id, token, delay } of items) args.push(id, token, delay);
    return args;
  },
  decode: outcomes,
});
