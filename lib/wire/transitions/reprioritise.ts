import type { Outcome } from '../../kernel/outcome.js';
import { transition } from '../transition.js';
import { outcomes } from './codes.js';

export interface ReprioritiseItem {
  id: string;
  priority: number;
}

export const reprioritise = transition<readonly ReprioritiseItem[], Outcome[]>({
  name: 'reprioritise',
  keys: ['pending', 'base'],
  args: 'per job: id, priority',
  answers: 'code per job; -2 when it is done',
  resend: true,
  encode: (items) => items.flatMap(({ id, priority }) => [id, priority]),
  decode: outcomes,
});
