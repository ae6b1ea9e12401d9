import { array, integer } from '../reply.js';
import { transition } from '../transition.js';

export const scheduleRemove = transition<readonly string[], boolean[]>({
  name: 'schedule_remove',
  keys: ['schedules', 'base'],
  args: 'per schedule: key',
  answers: 'per schedule 1 removed, 0 gone',
  resend: true,
  encode: (keys) => [...keys],
  decode: (reply) => array(reply).map((answer) => integer(answer) === 1),
});
