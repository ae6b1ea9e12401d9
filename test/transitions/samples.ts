import type { Arg } from '../../lib/wire/reply.js';
import type { ScriptName } from '../../lib/wire/transition.js';
import { give, waiting } from './family.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { schedule } from './schedules.js';
import { more, node, nodesOf, tree } from './tree.js';

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

const [P, Q, R, S, T] = [id(20), id(21), id(22), id(23), id(24)];

/**
 * Children in every place, some of a parent in another queue: A, a sibling that is dead, of P, which waits; C, asked to stop, of a
 * parent elsewhere; E of Q, which is dead of it; R runs, and its child has settled; S and T are marked for removal.
 */
async function families(queue: Hand): Promise<void> {
  const elsewhere = { parent: P, parent_queue: 'r' };
  await queue.pending(A, { parent: P, parent_policy: 'ignore' });
  await queue.active(B, { parent: P, awaited: 1 }, PAST);
  await queue.active(C, { cancel: 1, ...elsewhere }, PAST);
  await queue.scheduled(D, elsewhere);
  await queue.dead(E, { parent: Q });
  await queue.lapsed(id(6), { parent: P, parent_policy: 'continue' });
  await waiting(queue, P, { children: [A, B, id(6), `r|${id(7)}`] }, elsewhere);
  await queue.dead(Q, { died_of: 'children', parent: P, parent_queue: 'r' });
  await give(queue, Q, { children: [E, `r|${B}`], failed: { [E]: 'boom' } });
  await queue.active(R);
  await give(queue, R, { children: [id(9)], processed: { [id(9)]: 'r' } });
  await waiting(queue, S, { children: [id(9)] }, { removing: 1 });
  await queue.pending(T, { removing: 1 });
  await give(queue, T, { children: [id(9)] });
  await queue.hungry('p1', 'p2');
}

/** One that is due, one that is not, and one paused. */
const schedules = async (queue: Hand) => {
  await everything(queue);
  await schedule(queue, 'due', PAST);
  await schedule(queue, 'later', FAR, { last_slot: PAST, last_job: A, priority: 3 });
  await schedule(queue, 'paused', 'paused');
};

/**
 * Lanes that wait, run, are parked and are due; one at its cap, one of a group, one that is idle; keys that deduplicate, limits, and
 * somebody who listens.
 */
const lanes = async (queue: Hand) => {
  await everything(queue);
  const at = (name: string) => queue.keys.base + name;
  const fill = [A, D, id(6)].map((jobId) => queue.client.hset(queue.keys.row(jobId), 'dedup', `k${jobId}`));
  await Promise.all([...fill, ...[A, D, id(6)].map((jobId) => queue.client.set(at(`dedup:k${jobId}`), jobId))]);
  await queue.client.set(at('dedups'), 1);
  await queue.client.set(at('heard'), 1, 'PX', 600_000);
  await queue.client.hset(at('limits'), { concurrency: 100, interval: 1, burst: 1000 });
  await queue.run('lane', ['all', '', 'max_waiting', 50]);
  await queue.run('lane', ['lane', 'capped', 'cap', 1]);
  await queue.run('lane', ['lane', 'slow', 'interval', 1e9]);
  const laned = ['x', 'x', 'capped', 'capped', 'g\x1fone', 'slow', 'slow', 'idle'].flatMap((lane, n) => {
    return [id(40 + n), 'p', '', 2, 'lane', lane, 'dedup', `u:l${n}`];
  });
  await queue.run('enqueue', laned);
  await queue.run('claim', [2e12, 7, '', '']);
  await queue.run('complete', [0, id(47), 1, 0, '']);
  for (const jobId of [D, E]) await queue.client.hset(queue.keys.row(jobId), 'lane', 'g\x1fone');
  await queue.client.zadd(at('lanes:parked'), PAST, 'slow');
  await queue.client.hset(at('lanestate:slow'), 'tat', PAST);
};

/** And the processes that ran their jobs were killed; one of them had asked for more children, and waits. */
const lapsedLanes = async (queue: Hand) => {
  await lanes(queue);
  await queue.client.zadd(queue.keys.active, 'XX', ...LANED.flatMap((jobId) => [PAST, jobId]));
  await give(queue, LANED[1]!, { children: [id(9)], processed: { [id(9)]: 'r' } });
  await give(queue, LANED[2]!, { children: [id(9)] });
  await schedule(queue, 'due', PAST, { lane: 'new' });
};

const hungrier = async (queue: Hand) => {
  await lanes(queue);
  await queue.hungry('p9');
};

const ghostly = async (queue: Hand) => {
  await schedules(queue);
  await queue.client.zadd(queue.keys.schedules, PAST, 'ghost');
};

const leased = (expiry: number) => async (queue: Hand) => {
  await queue.client.zadd('{emq}:nodes', expiry, 5);
  await queue.client.hset('{emq}:nodes:owner', 5, 'p1');
};

const LANED = [40, 42, 44, 45].map(id);
const LANES = [40, 41, 42, 43, 44, 45, 46].map(id);

const nothing = async () => undefined;

const runs = (call: readonly Arg[], given = everything): Sample => ({ given, call, whenFull: 'runs' });
const refused = (call: readonly Arg[], given = everything): Sample => ({ given, call, whenFull: 'refused' });
const reads = (call: readonly Arg[]): Sample => ({ given: everything, call, whenFull: 'reads' });

/** A transition without an entry does not compile. */
export const SAMPLES: Record<ScriptName, readonly Sample[]> = {
  enqueue: [
    refused([id(7), 'p', '', 0]),
    refused([id(7), 'p', '500', 0]),
    refused([id(7), 'p', '', 1, 'lane', 'new']),
    refused([id(7), 'p', '', 1, 'dedup', 'u:new']),
    refused([id(7), 'p', '', 1, 'lane', 'g\x1ftwo'], lanes),
  ],
  claim: [
    runs([30_000]),
    runs([30_000, 2, 'f00d.x1', 'p1']),
    runs([30_000, 5, 'f00d.x1', 'p3']),
    runs([30_000, 100, 'f00d.x1', 'p3']),
    runs([30_000, 100, 'f00d.x1', 'p3'], nothing),
    runs([30_000, 5, 'f00d.x1', 'p3'], pausedToo),
    runs([30_000, 5, 'f00d.x1', 'p3'], lanes),
    runs([30_000, 100, '', 'p3'], lanes),
  ],
  dispatch: [
    refused([30_000, 'f00d.x1', 'p1', 0, id(7), 'p'], async (queue) => {
      await queue.active(B, {}, PAST);
      await queue.hungry('p1', 'p2');
    }),
  ],
  complete: [
    runs([0, B, 1, 0, 'r']),
    runs([1, B, 1, 600_000, 'r', id(6), 1, 600_000, 'r']),
    runs([0, id(6), 1, 600_000, 'r']),
    runs([1, B, 1, 0, 'r', C, 1, 0, 'r', id(6), 1, 0, 'r', R, 1, 0, 'r'], families),
    runs([0, B, 1, 0, 'r', id(6), 1, 0, 'r', ...LANED.flatMap((jobId) => [jobId, 1, 0, 'r'])], lanes),
  ],
  retry: [
    runs([0, B, 1, 5000, 3, 'e', id(6), 1, 0, 3, 'e']),
    runs([1, id(6), 1, 5000, 1, 'e', C, 1, 5000, 3, 'e']),
    runs([0, B, 1, 0, 3, 'e']),
    runs([1, B, 1, 0, 1, 'e', C, 1, 0, 3, 'e', R, 1, 0, 1, 'e'], families),
    runs([0, id(6), 1, 0, 1, 'e'], families),
    runs([0, ...LANED.flatMap((jobId, n) => [jobId, 1, n % 2 ? 0 : 5000, 3, 'e'])], lanes),
  ],
  release: [
    runs([B, 1, '', C, 1, '']),
    runs([id(6), 1, '5000', B, 1, '5000']),
    runs([C, 1, ''], families),
    runs(
      LANED.flatMap((jobId, n) => [jobId, 1, ['', 'lane:60000', 'queue:60000'][n % 3]!]),
      lanes,
    ),
  ],
  extend: [runs([30_000, B, 1, C, 1])],
  progress: [refused([B, 1, '50'])],
  lane: [
    runs(['lane', 'x', 'weight', 5]),
    runs(['all', '', 'cap', 5]),
    runs([], lanes),
    runs(['lane', 'x', 'cap', 5], lanes),
    runs(['group', 'g', 'weight', 5, 'paused', 1], lanes),
  ],
  lane_list: [reads([0, 10])],
  limit: [runs(['concurrency', 5]), runs(['concurrency', '', 'interval', '', 'burst', ''], lanes)],
  promote: [runs([1000]), runs([1000], lanes)],
  reap: [
    runs([1000, 2, '', 1]),
    runs([1000, 0, '', 0]),
    runs([1000, 0, '', 1], families),
    runs([1000, 2, '', 0], lapsedLanes),
    runs([1000, 0, '', 0], lapsedLanes),
  ],
  reprocess: [runs([1, E]), runs([0, E], lanes), runs([0, E], families), runs([1, Q], families)],
  reprioritise: [runs([A, 5, B, 0, D, -3])],
  rewrite: [refused([A, 'p', 'another payload'])],
  remove: [
    runs(['pending', A, D]),
    runs(['scheduled', D, E], families),
    runs([0, A, D, E]),
    runs([0, A, D, E], families),
    runs([1, P], families),
    runs([1, S, T, E, R], families),
  ],
  cancel: [
    runs([0, A, B, D]),
    runs([0, A, B, D], families),
    runs([1, P], families),
    runs([1, S, T, D, C], families),
    runs([0, A, D, ...LANES], lanes),
  ],
  reschedule: [runs([D, '5000']), runs([D, '']), runs([D, ''], lanes)],
  trim: [runs([0, 1000]), runs([0, 1], families), runs([0, 1000], families)],
  pause: [refused([])],
  resume: [
    runs([], pausedToo),
    runs([], async (queue) => {
      await lanes(queue);
      await queue.paused();
    }),
  ],
  lead: [runs(['p1', 10_000]), runs(['p1', 10_000], lanes), runs(['p1', 10_000], schedules)],
  resign: [runs(['p1'])],
  pass: [runs(['p1']), runs(['p9'], hungrier)],
  obliterate: [
    runs([1, 1000]),
    runs([1, 1000], lanes),
    runs([1, 7], lanes),
    runs([1, 1000], families),
    runs([1, 1000], schedules),
  ],
  land: [
    refused(tree(node(id(30), {}, [node(id(31)), node(id(32), { queue: 'r' })]))),
    refused(tree(node(id(30))), families),
    refused(['', '', id(30), 'p', '', 1, 'lane', 'new', 0]),
    refused(more(R, 1, [node(id(31))]), families),
    refused(more(R, 1, [node(id(31), { queue: 'r' })]), families),
  ],
  wait: [runs([R, 1], families), runs([C, 1], families), runs([LANED[1]!, 1, LANED[2]!, 1], lapsedLanes)],
  apply: [
    runs(
      ['r', '0-0', '5-1', 'settle', P, id(7), 'done', 'fail', 'r', '5-2', 'settle', P, A, 'dead', 'fail', 'e'],
      families,
    ),
    runs(['r', '0-0', '5-1', 'settle', P, id(7), 'dead', 'fail', 'e'], families),
    runs(
      ['r', '0-0', '5-1', 'settle', Q, B, 'done', 'fail', 'r', '5-2', 'settle', T, A, 'gone', 'fail', 'e'],
      families,
    ),
    // What came before would wait for ever behind a landing that is refused.
    runs([
      'r',
      '0-0',
      '5-1',
      'land',
      nodesOf({ queue: 'r', id: P }, [node(id(31)), node(A), node(id(33), { queue: 's' })]),
    ]),
  ],
  watch: [runs([A, B]), runs([D, P], families)],
  schedule_put: [
    refused(['new', 'r2', 's', '{}', 'p', FAR, '', 0]),
    refused(['later', 'r2', 's2', '{}', 'p', FAR, '', 0], schedules),
    refused(['later', 'r2', 's', '{}', 'p2', FAR, '', 1, 'priority', 3], schedules),
  ],
  schedule_fire: [
    refused(['due', 'r', PAST, FAR, 0, id(30), 'p'], schedules),
    refused(['due', 'r', PAST, FAR, 0, '', ''], schedules),
    refused(['later', 'r', '', FAR, 0, id(30), 'p'], schedules),
    refused(['due', 'r', PAST, FAR, 0, id(30), 'p'], lapsedLanes),
    runs(['ghost', 'r', PAST, FAR, 0, '', ''], ghostly),
  ],
  schedule_get: [reads(['later'])],
  schedule_list: [reads([0, 10, 100_000, 0])],
  schedule_pause: [runs(['due'], schedules)],
  schedule_resume: [runs(['paused', 'r', FAR], schedules)],
  schedule_remove: [runs(['due', 'paused', 'none'], schedules)],
  sweep: [runs([A, id(8)], keptToo)],
  counts: [reads([])],
  health: [reads([])],
  get: [reads([A, B])],
  list: [reads([0, 10, 100_000])],
  members: [reads(['pending', 0, 10])],
  morgue: [reads(['', 10, 100_000])],
  completions: [reads(['0-0', 10, 100_000])],
  node: [
    runs(['p1', 30_000, 5, '']),
    runs(['p1', 30_000, 5, 5], leased(FAR)),
    runs(['p2', 30_000, 5, ''], leased(PAST)),
  ],
  node_return: [reads(['p1', 5, PAST])],
  brand: [runs(['echomq:6.0.0'])],
};
