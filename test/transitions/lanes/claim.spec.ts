import { fields, gone, job, zset } from '../changes.js';
import { FAR, id, PAST } from '../hand.js';
import { type Lanes, laneChanges, laned, SEP } from '../laned.js';
import { aboutMs, exactlyIn, inMs, nowUs } from '../server-time.js';
import { describeTransition } from '../state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];
const CLAIMED = { state: 'active', attempts: '1', lease_epoch: '-' };
const lease = inMs(30_000);

describeTransition('claim', (table) => {
  const two: Lanes = { lanes: { '': { waits: { [A]: 0 } }, x: { waits: { [C]: 0, [B]: 4 } } } };

  table.it('serves the lanes in turn, the jobs without one being one of them, and each lane by its scores', {
    given: (queue) => laned(queue, two),
    call: [30_000, 5],
    answer: [A, 'p', 1, C, 'p', 1, B, 'p', 1],
    changes: {
      ...laneChanges(two, {
        floor: 1000,
        total: '0',
        lanes: { '': { runs: [A], tag: 1000 }, x: { runs: [B, C], tag: 2000 } },
      }),
      active: zset([A, lease], [B, lease], [C, lease]),
      ...{ [job(A)]: fields(CLAIMED), [job(B)]: fields(CLAIMED), [job(C)]: fields(CLAIMED) },
    },
  });

  const uneven: Lanes = {
    floor: 500,
    lanes: {
      fast: { waits: { [A]: 0, [B]: 0 }, tag: 510, state: { weight: 4 } },
      late: { waits: { [C]: 0 }, tag: 800 },
    },
  };
  table.it('takes the lowest tag, raises the floor to it, and moves the tag on by its weight', {
    given: (queue) => laned(queue, uneven),
    call: [30_000],
    answer: [A, 'p', 1],
    changes: {
      ...laneChanges(uneven, {
        floor: 510,
        lanes: {
          fast: { waits: { [B]: 0 }, runs: [A], tag: 760, state: { weight: 4 } },
          late: { waits: { [C]: 0 }, tag: 800 },
        },
      }),
      active: zset([A, lease]),
      [job(A)]: fields(CLAIMED),
    },
  });

  const capped: Lanes = { lanes: { x: { waits: { [A]: 0, [B]: 0, [C]: 0 }, runs: [D], state: { cap: 2 } } } };
  table.it('takes a lane that has reached its cap out of the ring', {
    given: (queue) => laned(queue, capped),
    call: [30_000, 5, '', 'p1'],
    answer: [A, 'p', 1],
    changes: {
      ...laneChanges(capped, {
        lanes: { x: { waits: { [B]: 0, [C]: 0 }, runs: [A, D], state: { cap: 2 }, tag: 1000, out: true } },
      }),
      hungry: zset(['p1', nowUs()]),
      active: zset([A, lease], [D, FAR]),
      [job(A)]: fields(CLAIMED),
    },
  });

  const slow: Lanes = { lanes: { x: { waits: { [A]: 0, [B]: 0 }, state: { interval: 10_000 } } } };
  table.it('parks a lane after one claim for its rate, on the clock of the server, and announces when it comes back', {
    given: (queue) => laned(queue, slow),
    call: [30_000, 5],
    answer: [A, 'p', 1],
    changes: {
      ...laneChanges(slow, {
        lanes: {
          x: {
            waits: { [B]: 0 },
            runs: [A],
            tag: 1000,
            state: { interval: 10_000, tat: exactlyIn(10_000) },
            parked: exactlyIn(10_000),
          },
        },
      }),
      active: zset([A, lease]),
      [job(A)]: fields(CLAIMED),
    },
    hears: [['beat', aboutMs('park:', 10_000)]],
  });

  const bursts: Lanes = { lanes: { x: { waits: { [A]: 0, [B]: 0, [C]: 0 }, state: { interval: 10_000, burst: 2 } } } };
  table.it('lets as many of a lane as its burst begin at once', {
    given: (queue) => laned(queue, bursts),
    call: [30_000, 5],
    answer: [A, 'p', 1, B, 'p', 1],
    changes: {
      ...laneChanges(bursts, {
        lanes: {
          x: {
            waits: { [C]: 0 },
            runs: [A, B],
            tag: 2000,
            state: { interval: 10_000, burst: 2, tat: exactlyIn(20_000) },
            parked: exactlyIn(10_000),
            at: 0,
          },
        },
        floor: 1000,
      }),
      active: zset([A, lease], [B, lease]),
      ...{ [job(A)]: fields(CLAIMED), [job(B)]: fields(CLAIMED) },
    },
    hears: [['beat', aboutMs('park:', 10_000)]],
  });

  const due: Lanes = {
    floor: 700,
    lanes: { x: { waits: { [A]: 0 }, tag: 300, state: { interval: 10_000, tat: PAST }, parked: PAST } },
  };
  table.it('brings a parked lane back whose time has come, where virtual time stands now', {
    given: (queue) => laned(queue, due),
    call: [30_000],
    answer: [A, 'p', 1],
    changes: {
      ...laneChanges(due, {
        floor: 700,
        total: '0',
        lanes: { x: { runs: [A], tag: 1700, state: { interval: 10_000, tat: exactlyIn(10_000) } } },
      }),
      active: zset([A, lease]),
      [job(A)]: fields(CLAIMED),
    },
  });

  const grouped: Lanes = {
    lanes: { [`g${SEP}a`]: { waits: { [A]: 0 } }, [`g${SEP}b`]: { waits: { [B]: 0 } }, z: { waits: { [C]: 0 } } },
  };
  table.it('gives a group one turn, however many lanes it has', {
    given: (queue) => laned(queue, grouped),
    call: [30_000, 2],
    answer: [A, 'p', 1, C, 'p', 1],
    changes: {
      ...laneChanges(grouped, {
        lanes: {
          [`g${SEP}a`]: { runs: [A], tag: 1000 },
          [`g${SEP}b`]: { waits: { [B]: 0 } },
          z: { runs: [C], tag: 1000 },
        },
        groups: { g: { tag: 1000 } },
      }),
      active: zset([A, lease], [C, lease]),
      ...{ [job(A)]: fields(CLAIMED), [job(C)]: fields(CLAIMED) },
    },
  });

  const ghostly: Lanes = { lanes: { x: { waits: { [A]: 0, [B]: 0 }, state: { cap: 1 } } } };
  table.it('gives the cap back that a job without a row has taken, and wakes another for what remains', {
    given: async (queue) => {
      await laned(queue, ghostly);
      await queue.client.del(queue.keys.row(A));
      await queue.hungry('p1');
    },
    call: [30_000, 5],
    answer: [],
    ghosts: [A],
    changes: {
      ...laneChanges(ghostly, { lanes: { x: { waits: { [B]: 0 }, tag: 1000, state: { cap: 1, active: 0 } } } }),
      hungry: gone,
    },
    hears: [['w:p1', '']],
  });

  const resting: Lanes = {
    lanes: { x: { waits: { [A]: 0 }, state: { paused: 1 }, out: true }, y: { waits: { [B]: 0 } } },
  };
  table.it('passes over a lane that is paused', {
    given: (queue) => laned(queue, resting),
    call: [30_000, 5],
    answer: [B, 'p', 1],
    changes: {
      ...laneChanges(resting, {
        lanes: { x: { waits: { [A]: 0 }, state: { paused: 1 }, out: true }, y: { runs: [B], tag: 1000 } },
      }),
      active: zset([B, lease]),
      [job(B)]: fields(CLAIMED),
    },
  });

  table.refusesTypes([30_000, 5], ['lanes', 'lanes:parked', 'lanes:waiting', 'lanes:active'], () =>
    laned(table.queue, two),
  );
});
