import { array, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface Counts {
  pending: number;
  active: number;
  scheduled: number;
  dead: number;
  /** Flow parents held for their children. */
  awaitingChildren: number;
  paused: boolean;
  /** Totals since the queue exists: failed are deaths, retried are retries that did not bury, stalled counted lapses. */
  metrics: {
    enqueued: number;
    completed: number;
    removed: number;
    failed: number;
    retried: number;
    stalled: number;
  };
}

export const counts = transition<void, Counts>({
  name: 'counts',
  keys: ['pending', 'base'],
  args: '',
  answers: 'pending, active, scheduled, dead, awaiting_children, paused, then the metrics',
  resend: true,
  encode: () => [],
  decode(reply) {
    const n = array(reply).map(integer);
    return {
      pending: n[0]!,
      active: n[1]!,
      scheduled: n[2]!,
      dead: n[3]!,
      awaitingChildren: n[4]!,
      paused: n[5] === 1,
      metrics: { enqueued: n[6]!, completed: n[7]!, removed: n[8]!, failed: n[9]!, retried: n[10]!, stalled: n[11]! },
    };
  },
});
