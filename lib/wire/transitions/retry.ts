import { outcomeOf, type RetryOutcome } from '../../kernel/outcome.js';
import { type Arg, array, ascii } from '../reply.js';
import { transition } from '../transition.js';
import type { Claimed } from './codes.js';

export interface RetryItem extends Claimed {
  delayMs: number;
  /** The cap on charged attempts; 0 buries whatever they are. */
  maxAttempts: number;
  error: string;
}

export interface RetryCall {
  record: number;
  items: readonly RetryItem[];
}

export const retry = transition<RetryCall, RetryOutcome[]>({
  name: 'retry',
  keys: ['active', 'schedule', 'dead', 'base'],
  args: 'record, then per job: id, token, delay_ms, max_attempts, error',
  answers: "per job 'scheduled', 'pending', 'dead', or a code",
  resend: true,
  encode({ record, items }) {
    const args: Arg[] = [record];
    for (const item of items) args.push(item.id, item.token, item.delayMs, item.maxAttempts, item.error);
    return args;
  },
  decode: (reply) =>
    array(reply).map((answer) =>
      typeof answer === 'number' ? (outcomeOf(answer) as RetryOutcome) : (ascii(answer) as RetryOutcome),
    ),
});
