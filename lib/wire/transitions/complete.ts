import type { Outcome } from '../../kernel/outcome.js';
import type { Arg } from '../reply.js';
import { transition } from '../transition.js';
import { type Claimed, outcomes } from './codes.js';

export interface CompleteItem extends Claimed {
  /** Milliseconds the row is kept with its result; 0 deletes it. */
  keepMs: number;
  result: string | Buffer;
}

export interface CompleteCall {
  /** 0 off, 1 recorded and never trimmed, n about n entries kept. */
  record: number;
  items: readonly CompleteItem[];
}

export const complete = transition<CompleteCall, Outcome[]>({
  name: 'complete',
  keys: ['active', 'base'],
  args: 'record, then per job: id, token, keep_ms, result',
  answers: 'code per job',
  resend: true,
  encode({ record, items }) {
    const args: Arg[] = [record];
    for (const { id, token, keepMs, result } of items) args.push(id, token, keepMs, result);
    return args;
  },
  decode: outcomes,
});
