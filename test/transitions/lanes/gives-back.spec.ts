import { counted, fields, gone, job, zset } from '../changes.js';
import { waiting } from '../family.js';
import { FAR, PAST } from '../hand.js';
import { type Lanes, laneChanges, laned } from '../laned.js';
import { aboutMs, exactlyIn } from '../server-time.js';
import { describeTransition } from '../state-table.js';
import { A, again, B, BURIED, C, free, freed, full, WOKEN } from './full-lane.js';

describeTransition('release', (table) => {
  const BACK = { state: 'pending', uncharged: '1' };
  table.it('puts a job back into its lane', {
    given: (queue) => laned(queue, full),
    call: [A, 1, ''],
    answer: [1],
    changes: { ...laneChanges(full, again), active: gone, [job(A)]: fields(BACK) },
  });

  table.it('holds the lane for a time when its holder asks for it, and says when it comes back', {
    given: (queue) => laned(queue, full),
    call: [A, 1, 'lane:5000'],
    answer: [1],
    changes: {
      ...laneChanges(full, {
        floor: 500,
        lanes: {
          x: {
            ...{ waits: { [A]: 0, [B]: 0 }, tag: 1500, parked: exactlyIn(5000) },
            state: { ...free, until: exactlyIn(5000) },
          },
        },
      }),
      ...{ active: gone, [job(A)]: fields(BACK) },
    },
    hears: [['beat', aboutMs('park:', 5000)]],
  });

  const holding: Lanes = {
    lanes: { x: { waits: { [B]: 0 }, runs: [A], tag: 0, state: { until: FAR }, parked: FAR } },
  };
  table.it('does not make a hold shorter', {
    given: (queue) => laned(queue, holding),
    call: [A, 1, 'lane:5000'],
    answer: [1],
    changes: {
      ...laneChanges(holding, {
        lanes: { x: { waits: { [A]: 0, [B]: 0 }, tag: 0, state: { until: FAR, active: 0 }, parked: FAR } },
      }),
      ...{ active: gone, [job(A)]: fields(BACK) },
    },
  });

  table.it('holds the whole queue, and the lanes stay where they are', {
    given: (queue) => laned(queue, full),
    call: [A, 1, 'queue:5000'],
    answer: [1],
    changes: {
      ...laneChanges(full, { ...again, held: exactlyIn(5000) }),
      ...{ active: gone, [job(A)]: fields(BACK), limits: { hash: { until: exactlyIn(5000) } } },
    },
    hears: [['beat', aboutMs('park:', 5000)]],
  });

  for (const hold of ['lane:5000', 'queue:5000']) {
    table.it(`holds the queue for a job without a lane (${hold})`, {
      given: (queue) => queue.active(A),
      call: [A, 1, hold],
      answer: [1],
      changes: {
        ...{ active: gone, pending: zset([A, 0]), [job(A)]: fields(BACK) },
        ...{ limits: { hash: { until: exactlyIn(5000) } }, 'lanes:parked': zset(['\u001f', exactlyIn(5000)]) },
      },
      hears: [['beat', aboutMs('park:', 5000)]],
    });
  }

  table.it('holds nothing for what was asked to stop', {
    given: (queue) => queue.active(A, { cancel: 1 }),
    call: [A, 1, 'queue:5000'],
    answer: [1],
    changes: {
      ...{ active: gone, dead: zset([A, 0]), 'metrics:failed': counted(1) },
      [job(A)]: fields({ state: 'dead', last_error: 'cancelled', errors: '1', 'error:1': 'cancelled' }),
    },
  });

  table.refuses(
    'refuses holds that are malformed',
    (queue) => queue.active(A),
    [
      'lane:',
      'queue:',
      'lane:-1',
      'lane:1.5',
      'queue:x',
      'other:5',
      'lane:05',
      'queue:9007199254740992',
      'lane:5 ',
    ].map((hold) => [A, 1, hold]),
  );
  table.refusesTypes([A, 1, 'queue:5000'], ['limits', 'lanes:parked'], () => table.queue.active(A));
});

describeTransition('reap', (table) => {
  const late = { [A]: { deadline: PAST, priority: 4 } };
  table.it('gives the cap of a lapsed lease back, and its job to its lane', {
    given: async (queue) => {
      await laned(queue, full, late);
      await queue.client.hdel(queue.keys.row(A), 'deadline');
      await queue.hungry('p1');
    },
    call: [1000, 2, '', 0],
    answer: [1, 0, -1, -1],
    changes: {
      ...laneChanges(full, { floor: 500, lanes: { x: { waits: { [B]: 0, [A]: 4 }, tag: 1500, state: free } } }),
      ...{ active: gone, hungry: gone, 'metrics:stalled': counted(1) },
      [job(A)]: fields({ state: 'pending', stalls: '1', lapsed: '1' }),
    },
    hears: WOKEN,
  });

  table.it('gives the cap back of a job that is buried, and of one whose row was deleted by hand', {
    given: async (queue) => {
      const both: Lanes = { lanes: { x: { waits: { [B]: 0 }, runs: [A, C], state: { cap: 2 }, out: true } } };
      await laned(queue, both, { [A]: { deadline: PAST }, [C]: { deadline: PAST } });
      await queue.client.hdel(queue.keys.row(A), 'deadline');
      await queue.client.del(queue.keys.row(C));
    },
    call: [1000, 0, '', 0],
    answer: [0, 1, -1, -1, A],
    ghosts: [C],
    changes: {
      ...{ 'lanestate:x': { hash: { active: '0', cap: '2' } }, lanes: zset(['x', 0]), 'lanes:active': gone },
      ...{ active: gone, dead: zset([A, 0]), 'metrics:failed': counted(1), 'metrics:stalled': counted(1) },
      [job(A)]: fields({
        ...BURIED,
        last_error: 'lease lapsed 1 times',
        'error:1': 'lease lapsed 1 times',
        stalls: '1',
      }),
    },
  });
});

describeTransition('wait', (table) => {
  const parent = (queue: Parameters<typeof laned>[0], outstanding: boolean) => {
    const processed = outstanding ? {} : { [C]: 'r' };
    return waiting(queue, A, { children: [C], processed }).then(() => queue.client.del(queue.keys.waiting));
  };
  table.it('holds no cap for a parent that waits for its children', {
    given: async (queue) => {
      await parent(queue, true);
      await queue.client.del(queue.keys.row(A), `${queue.keys.base}metrics:enqueued`);
      await laned(queue, full, { [A]: { flow: 1 } });
    },
    call: [A, 1],
    answer: [1],
    changes: {
      ...laneChanges(full, freed),
      ...{ active: gone, waiting: zset([A, 0]) },
      [job(A)]: fields({ state: 'awaiting_children', uncharged: '1' }),
    },
  });

  table.it('puts a parent whose children have ended back into its lane', {
    given: async (queue) => {
      await parent(queue, false);
      await queue.client.del(queue.keys.row(A), `${queue.keys.base}metrics:enqueued`);
      await laned(queue, full, { [A]: { flow: 1 } });
    },
    call: [A, 1],
    answer: [1],
    changes: { ...laneChanges(full, again), active: gone, [job(A)]: fields({ state: 'pending', uncharged: '1' }) },
  });
});
