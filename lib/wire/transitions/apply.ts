import type { StreamId } from '../../kernel/stream-id.js';
import type { OwedEffect } from '../outbox.js';
import { type Arg, ascii } from '../reply.js';
import { transition } from '../transition.js';

export interface ApplyCall {
  /** The queue whose outbox the effects come from. */
  source: string;
  /** The last of them known to be applied. */
  previous: StreamId;
  effects: readonly OwedEffect[];
}

export const apply = transition<ApplyCall, StreamId>({
  name: 'apply',
  keys: ['relayed', 'base'],
  args: 'source, previous id, then per entry: id, kind, nodes | parent, child, how, policy, text | parent, results',
  answers: 'last id applied; below the previous id when something was lost in a failover, and nothing is applied',
  resend: true,
  encode({ source, previous, effects }) {
    const args: Arg[] = [source, previous];
    for (const { id, kind, values } of effects) args.push(id, kind, ...values);
    return args;
  },
  decode: ascii,
});
