import type { Outcome } from '../../kernel/outcome.js';
import { transition } from '../transition.js';
import { outcomes } from './codes.js';

export interface RewriteItem {
  id: string;
  /** The payload that was read: another one by now is left as it is. */
  read: Buffer;
  payload: string | Buffer;
}

export const rewrite = transition<readonly RewriteItem[], Outcome[]>({
  name: 'rewrite',
  keys: ['pending', 'base'],
  args: 'per job: id, payload that was read, payload',
  answers: 'code per job; -1 when its payload is another one by now, -2 when it is active or done',
  resend: true,
  encode: (items) => items.flatMap(({ id, read, payload }) => [id, read, payload]),
  decode: outcomes,
});
