import { counted, fields, gone, job, zset } from '../changes.js';
import { FAR } from '../hand.js';
import { type Lanes, laneChanges, laned, SEP } from '../laned.js';
import { inMs } from '../server-time.js';
import { describeTransition } from '../state-table.js';
import { A, B, BURIED, free, freed, full, LAPSED, lapsed, lone, WOKEN, without } from './full-lane.js';

describeTransition('complete', (table) => {
  table.it('gives the cap back, so that the lane returns to the ring, and wakes a process', {
    given: async (queue) => {
      await laned(queue, full);
      await queue.hungry('p1');
    },
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: {
      ...laneChanges(full, freed),
      active: gone,
      hungry: gone,
      [job(A)]: gone,
      'metrics:completed': counted(1),
    },
    hears: WOKEN,
  });

  table.it('takes a lapsed job out of the lane in which it waits', {
    given: (queue) => laned(queue, lapsed, LAPSED),
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: { ...laneChanges(lapsed, without), [job(A)]: gone, 'metrics:completed': counted(1) },
  });

  table.it('keeps of an idle lane what it owes to those that wait', {
    given: (queue) => laned(queue, lone),
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: {
      ...laneChanges(lone, {
        floor: 500,
        lanes: { '': { waits: { [B]: 0 }, tag: 900 }, x: { tag: 1500, state: { active: 0 }, idle: true } },
      }),
      ...{ active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    },
  });

  const last: Lanes = { floor: 500, lanes: { x: { runs: [A], tag: 1500 } } };
  table.it('keeps nothing of the last lane: virtual time goes on to the end of its debt', {
    given: (queue) => laned(queue, last),
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: {
      ...laneChanges(last, { floor: 1500, lanes: {} }),
      ...{ active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    },
  });

  const owing: Lanes = { lanes: { x: { runs: [A], tag: 0, state: { tat: FAR } } }, defaults: { interval: '10000' } };
  table.it('keeps what a lane owes to its rate until then', {
    given: (queue) => laned(queue, owing),
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: {
      ...laneChanges(owing, { lanes: { x: { state: { tat: FAR }, fading: true } }, defaults: { interval: '10000' } }),
      ...{ active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    },
  });

  const inner = `g${SEP}x`;
  const group: Lanes = {
    floor: 200,
    lanes: { [inner]: { runs: [A], tag: 700 }, '': { waits: { [B]: 0 }, tag: 200 } },
    groups: { g: { tag: 900, state: { floor: '100' } } },
  };
  table.it('forgets the last lane of a group, and keeps of the group what it owes to the others', {
    given: (queue) => laned(queue, group),
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: {
      ...laneChanges(group, {
        floor: 200,
        lanes: { '': { waits: { [B]: 0 }, tag: 200 } },
        groups: { g: { tag: 900, state: { floor: '700', lanes: 0 }, idle: true } },
      }),
      ...{ active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    },
  });
});

describeTransition('retry', (table) => {
  table.it('puts a job back into its lane, at its own priority, and gives the cap back', {
    given: (queue) => laned(queue, full, { [A]: { priority: -2 } }),
    call: [0, A, 1, 0, 3, 'boom'],
    answer: ['pending'],
    changes: {
      ...laneChanges(full, { floor: 500, lanes: { x: { waits: { [A]: -2, [B]: 0 }, tag: 1500, state: free } } }),
      ...{ active: gone, [job(A)]: fields({ ...BURIED, state: 'pending' }), 'metrics:retried': counted(1) },
    },
  });

  table.it('holds no cap for a job that waits for its time', {
    given: (queue) => laned(queue, full),
    call: [0, A, 1, 5000, 3, 'boom'],
    answer: ['scheduled'],
    changes: {
      ...laneChanges(full, freed),
      ...{ active: gone, schedule: zset([A, inMs(5000)]), 'metrics:retried': counted(1) },
      [job(A)]: fields({ ...BURIED, state: 'scheduled' }),
    },
    hears: [['beat', '5000']],
  });

  table.it('buries a lapsed job out of its lane', {
    given: (queue) => laned(queue, lapsed, LAPSED),
    call: [0, A, 1, 0, 1, 'boom'],
    answer: ['dead'],
    changes: {
      ...laneChanges(lapsed, without),
      ...{ dead: zset([A, 0]), [job(A)]: fields({ ...BURIED, lapsed: undefined }), 'metrics:failed': counted(1) },
    },
  });
});
