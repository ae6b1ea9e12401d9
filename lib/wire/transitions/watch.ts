import type { JobState } from '../../kernel/state.js';
import { array, ascii } from '../reply.js';
import { transition } from '../transition.js';

export const watch = transition<readonly string[], (JobState | undefined)[]>({
  name: 'watch',
  keys: ['pending', 'base'],
  args: 'per job: id',
  answers: "state per job, '' when it is gone",
  resend: true,
  encode: (ids) => [...ids],
  decode: (reply) => array(reply).map((state) => (ascii(state) || undefined) as JobState | undefined),
});
