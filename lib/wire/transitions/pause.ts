import { integer } from '../reply.js';
import { transition } from '../transition.js';

export const pause = transition<void, boolean>({
  name: 'pause',
  keys: ['paused', 'base'],
  args: '',
  answers: '1 changed, 0 not',
  resend: true,
  encode: () => [],
  decode: (reply) => integer(reply) === 1,
});

export const resume = transition<void, boolean>({
  name: 'resume',
  keys: ['paused', 'base'],
  args: '',
  answers: '1 changed, 0 not',
  resend: true,
  encode: () => [],
  decode: (reply) => integer(reply) === 1,
});
