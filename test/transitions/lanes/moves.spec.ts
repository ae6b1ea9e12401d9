import { counted, fields, gone, job, zset } from '../changes.js';
import { FAR, type Hand, id, PAST } from '../hand.js';
import { type Lanes, laneChanges, laned, SEP } from '../laned.js';
import { describeTransition } from '../state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];
/** Lane x waits behind the lane of the jobs without one; A is to come to it. */
const before: Lanes = {
  floor: 500,
  lanes: { '': { waits: { [B]: 0 }, tag: 600 }, x: { waits: { [C]: 0 }, tag: 700 } },
};
const after: Lanes = {
  floor: 500,
  lanes: { '': { waits: { [B]: 0 }, tag: 600 }, x: { waits: { [A]: -1, [C]: 0 }, tag: 700 } },
};
const ROW = { lane: 'x', priority: -1 };
const entered = laneChanges(before, after);
const WOKEN: [string, unknown][] = [['w:p1', '']];

/** Nobody waits, and one process is hungry: whoever comes now is to be served. */
const quiet = (put: (queue: Hand, fields: Record<string, string>) => Promise<void>) => async (queue: Hand) => {
  await laned(queue, { lanes: {}, total: '0' });
  await put(queue, { lane: 'new' });
  await queue.hungry('p1');
};
const first = laneChanges({ lanes: {}, total: '0' }, { lanes: { new: { waits: { [A]: 0 } } } });

describeTransition('promote', (table) => {
  table.it('brings a job into its lane, at its own priority', {
    given: async (queue) => {
      await laned(queue, before);
      await queue.scheduled(A, ROW, PAST);
    },
    call: [1000],
    answer: [1, -1, -1],
    changes: { ...entered, schedule: gone, [job(A)]: fields({ state: 'pending' }) },
  });

  table.it('brings it where virtual time stands, and wakes a process', {
    given: quiet((queue, row) => queue.scheduled(A, row, PAST)),
    call: [1000],
    answer: [1, -1, -1],
    changes: { ...first, schedule: gone, hungry: gone, [job(A)]: fields({ state: 'pending' }) },
    hears: WOKEN,
  });

  const resting: Lanes = { lanes: { x: { state: { paused: 1 } } } };
  table.it('brings it into a lane that is paused, and wakes nobody', {
    given: async (queue) => {
      await laned(queue, resting);
      await queue.scheduled(A, { lane: 'x' }, PAST);
      await queue.hungry('p1');
    },
    call: [1000],
    answer: [1, -1, -1],
    changes: {
      ...laneChanges(resting, { lanes: { x: { waits: { [A]: 0 }, state: { paused: 1 }, out: true } } }),
      ...{ schedule: gone, [job(A)]: fields({ state: 'pending' }) },
    },
  });

  const inner = `g${SEP}x`;
  table.it('brings a group into the ring with the first job of its first lane', {
    given: async (queue) => {
      await laned(queue, { floor: 300, lanes: {}, total: '0' });
      await queue.scheduled(A, { lane: inner }, PAST);
    },
    call: [1000],
    answer: [1, -1, -1],
    changes: {
      ...laneChanges({ floor: 300, lanes: {}, total: '0' }, { floor: 300, lanes: { [inner]: { waits: { [A]: 0 } } } }),
      ...{ schedule: gone, [job(A)]: fields({ state: 'pending' }) },
    },
  });
});

describeTransition('reschedule', (table) => {
  table.it('brings a job into its lane whose time is now', {
    given: async (queue) => {
      await laned(queue, before);
      await queue.scheduled(A, ROW);
    },
    call: [A, ''],
    answer: [1],
    changes: { ...entered, schedule: gone, [job(A)]: fields({ state: 'pending' }) },
  });
});

describeTransition('reprocess', (table) => {
  table.it('brings a dead job back into its lane', {
    given: async (queue) => {
      await laned(queue, before);
      await queue.dead(A, ROW);
    },
    call: [0, A],
    answer: [1],
    changes: { ...entered, dead: gone, [job(A)]: fields({ state: 'pending', last_error: undefined }) },
  });

  table.it('wakes a process for it', {
    given: quiet((queue, row) => queue.dead(A, row)),
    call: [0, A],
    answer: [1],
    changes: { ...first, dead: gone, hungry: gone, [job(A)]: fields({ state: 'pending', last_error: undefined }) },
    hears: WOKEN,
  });
});

for (const name of ['remove', 'cancel'] as const) {
  describeTransition(name, (table) => {
    const two: Lanes = {
      floor: 500,
      lanes: {
        '': { waits: { [B]: 0 }, tag: 600 },
        x: { waits: { [A]: 0, [C]: 0 }, tag: 700 },
        y: { waits: { [D]: 0 } },
      },
    };
    table.it('takes jobs out of their lanes, and keeps nothing of a lane that is empty and owes nothing', {
      given: (queue) => laned(queue, two),
      call: [0, A, D, D],
      answer: [1, 1, 0],
      changes: {
        ...laneChanges(two, {
          floor: 500,
          lanes: { '': { waits: { [B]: 0 }, tag: 600 }, x: { waits: { [C]: 0 }, tag: 700 } },
        }),
        ...{ [job(A)]: gone, [job(D)]: gone, 'metrics:removed': counted(2) },
      },
    });

    const parked: Lanes = { lanes: { x: { waits: { [A]: 0 }, state: { until: FAR, cap: 5 }, parked: FAR } } };
    table.it('takes the last job out of a lane that is held', {
      given: (queue) => laned(queue, parked),
      call: [0, A],
      answer: [1],
      changes: {
        ...laneChanges(parked, { lanes: { x: { state: { until: FAR, cap: 5 } } } }),
        ...{ [job(A)]: gone, 'metrics:removed': counted(1) },
      },
    });
  });
}

describeTransition('trim', (table) => {
  table.it('leaves lanes alone', {
    given: async (queue) => {
      await laned(queue, before);
      await queue.dead(A, ROW);
    },
    call: [0, 10],
    answer: 1,
    changes: { dead: gone, [job(A)]: gone, 'metrics:removed': counted(1) },
  });
});

describeTransition('pass', (table) => {
  const passing = (lanes: Lanes) => async (queue: Hand) => {
    await laned(queue, lanes);
    await queue.hungry('p2', 'p1');
  };
  table.it('hands a wake-up on while a lane can give a job', {
    given: passing(before),
    call: ['p2'],
    answer: 1,
    changes: { hungry: gone },
    hears: WOKEN,
  });
  table.it('hands on nothing while all lanes are held, paused or full', {
    given: passing({
      lanes: {
        '': { waits: { [A]: 0 }, state: { paused: 1 }, out: true },
        x: { waits: { [B]: 0 }, state: { until: FAR }, parked: FAR },
        y: { waits: { [C]: 0 }, runs: [D], state: { cap: 1 }, out: true },
      },
    }),
    call: ['p2'],
    answer: 0,
    changes: { hungry: zset(['p1', 2]) },
  });
});

describeTransition('resume', (table) => {
  table.it('wakes a process when a lane can give a job', {
    given: async (queue) => {
      await laned(queue, { lanes: { x: { waits: { [A]: 0 } } } });
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [],
    answer: 1,
    changes: { paused: gone, hungry: gone },
    hears: WOKEN,
  });
  table.it('wakes nobody when none can', {
    given: async (queue) => {
      await laned(queue, { lanes: { x: { waits: { [A]: 0 }, state: { until: FAR }, parked: FAR } } });
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [],
    answer: 1,
    changes: { paused: gone },
  });
});
