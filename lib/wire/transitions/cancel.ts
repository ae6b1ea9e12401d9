import { type CancelOutcome, outcomeOf } from '../../kernel/outcome.js';
import { array, integer } from '../reply.js';
import { transition } from '../transition.js';

export const cancel = transition<readonly string[], CancelOutcome[]>({
  name: 'cancel',
  keys: ['pending', 'base'],
  args: 'tree(0/1), per job: id',
  answers: 'per job 1 removed, 2 asked to stop, 0 gone, -2 dead or done',
  resend: true,
  encode: (ids) => [0, ...ids],
  decode: (reply) =>
    array(reply).map((answer) => {
      const code = integer(answer);
      if (code === 1) return 'removed';
      return code === 2 ? 'stopping' : (outcomeOf(code) as CancelOutcome);
    }),
});
