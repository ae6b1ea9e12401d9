import type { Outcome } from '../../kernel/outcome.js';
import { transition } from '../transition.js';
import { outcomes } from './codes.js';

export interface RescheduleItem {
  id: string;
  delay: string;
}

export const reschedule = transition<readonly RescheduleItem[], Outcome[]>({
  name: 'reschedule',
  keys: ['schedule', 'pending', 'base'],
  args: 'per job: id, delay',
  answers: 'code per job; -2 when it does not wait for a time',
  resend: false, // a delay counted from a second arrival would be another time
  encode: (items) => items.flatMap(({ id, delay }) => [id, delay]),
  decode: outcomes,
});
