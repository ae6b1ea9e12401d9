import type { Arg } from '../../lib/wire/reply.js';
import type { ScriptName } from '../../lib/wire/transition.js';
import { FAR, type Hand, id, PAST } from './hand.js';

/** A call of each transition that has something to do, in a queue where it has. */
export interface Sample {
  given(queue: Hand): Promise<unknown>;
  call: readonly Arg[];
  /** When the server's memory is full: let through, refused because it adds to what is stored, or only reads. */
  whenFull: 'runs' | 'refused' | 'reads';
}

const [A, B, C, D, E] = [id(1), id(2), id(3), id(4), id(5)];

/** A job in every place, some leases and delays over, one job asked to stop, one hungry process. */
async function everything(queue: Hand): Promise<void> {
  await queue.pending(A, { priority: 2 });
  await queue.active(B, {}, PAST);
  await queue.active(C, { cancel: 1 }, PAST);
  await queue.scheduled(D, {}, PAST);
  await queue.dead(E);
  await queue.lapsed(id(6));
  await queue.hungry('p1', 'p2');
}

const pausedToo = async (queue: Hand) => {
  await everything(queue);
  await queue.paused();
};

const keptToo = async (queue: Hand) => {
  await everything(queue);
  await queue.done(id(8));
};

const leased = (expiry: number) => async (queue: Hand) => {
  await queue.client.zadd('{emq}:nodes', expiry, 5);
  await queue.client.hset('{emq}:nodes:owner', 5, 'p1');
};

const runs = (call: readonly Arg[], given = everything): Sample => ({ given, call, whenFull: 'runs' });
const refused = (call: readonly Arg[]): Sample => ({ given: everything, call, whenFull: 'refused' });
const reads = (call: readonly Arg[]): Sample => ({ given: everything, call, whenFull: 'reads' });

/** A transition without an entry does not compile. */
export const SAMPLES: Record<ScriptName, readonly Sample[]> = {
  enqueue: [refused([id(7), 'p', '', 0]), refused([id(7), 'p', '500', 0])],
  claim: [
    runs([30_000]),
    runs([30_000, 2, 'f00d.x1', 'p1']),
    runs([30_000, 5, 'f00d.x1', 'p3']),
    runs([30_000, 5, 'f00d.x1', 'p3'], pausedToo),
  ],
  complete: [
    runs([0, B, 1, 0, 'r']),
    runs([1, B, 1, 600_000, 'r', id(6), 1, 600_000, 'r']),
    runs([0, id(6), 1, 600_000, 'r']),
  ],
  retry: [
    runs([0, B, 1, 5000, 3, 'e', id(6), 1, 0, 3, 'e']),
    runs([1, id(6), 1, 5000, 1, 'e', C, 1, 5000, 3, 'e']),
    runs([0, B, 1, 0, 3, 'e']),
  ],
  release: [runs([B, 1, '', C, 1, '']), runs([id(6), 1, '5000', B, 1, '5000'])],
  extend: [runs([30_000, B, 1, C, 1])],
  promote: [runs([1000])],
  reap: [runs([1000, 2, '', 1]), runs([1000, 0, '', 0])],
  reprocess: [runs([1, E])],
  remove: [runs([0, A, D, E])],
  cancel: [runs([0, A, B, D])],
  reschedule: [runs([D, '5000']), runs([D, ''])],
  trim: [runs([0, 1000])],
  pause: [refused([])],
  resume: [runs([], pausedToo)],
  lead: [runs(['p1', 10_000])],
  resign: [runs(['p1'])],
  pass: [runs(['p1'])],
  obliterate: [runs([1, 1000])],
  sweep: [runs([A, id(8)], keptToo)],
  counts: [reads([])],
  get: [reads([A, B])],
  list: [reads([0, 10, 100_000])],
  node: [
    runs(['p1', 30_000, 5, '']),
    runs(['p1', 30_000, 5, 5], leased(FAR)),
    runs(['p2', 30_000, 5, ''], leased(PAST)),
  ],
  node_return: [reads(['p1', 5, PAST])],
  brand: [runs(['echomq:6.0.0'])],
};
