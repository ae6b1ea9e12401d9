import type { Arg } from '../reply.js';
import { transition } from '../transition.js';
import { type ClaimedRow, tokenOf } from './claim.js';
import type { EnqueueItem } from './enqueue.js';

export interface DispatchCall {
  leaseMs: number;
  /** Undefined on a wire without epochs. */
  epoch: string | undefined;
  /** The consuming process, which is hungry. */
  process: string;
  /** It can take more than this job, and stays hungry. */
  stays: boolean;
  /** Without a delay; of the fields only `priority`, `max_stalls` and `awaited`. */
  item: EnqueueItem;
}

export const dispatch = transition<DispatchCall, ClaimedRow | undefined>({
  name: 'dispatch',
  keys: ['active', 'pending', 'base'],
  args: 'lease_ms, epoch, process, stays, id, payload, [field, value ...]',
  answers: '1 the job is active, with token 1; 0 nothing was done',
  resend: false,
  encode({ leaseMs, epoch, process, stays, item }) {
    const args: Arg[] = [leaseMs, epoch ?? '', process, stays ? '1' : '0', item.id, item.payload];
    for (const text of item.fields) args.push(text);
    return args;
  },
  decode(reply, { epoch, item: { id, payload } }) {
    if (reply !== 1) return undefined;
    return {
      id,
      payload: Buffer.from(payload), // a copy: the codec may have given bytes that whoever enqueued them writes to again
      attempts: 1,
      token: tokenOf(1, epoch),
      uncharged: 0,
    };
  },
});
