import { integer } from '../reply.js';
import { transition } from '../transition.js';

export const pass = transition<{ process: string }, boolean>({
  name: 'pass',
  keys: ['pending', 'base'],
  args: 'process',
  answers: '1 when another process was woken',
  resend: false,
  encode: ({ process }) => [process],
  decode: (reply) => integer(reply) === 1,
});
