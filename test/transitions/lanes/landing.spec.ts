import { counted, fields, gone, job, zset } from '../changes.js';
import { familyKeys } from '../family.js';
import { FAR, type Hand, id, PAST } from '../hand.js';
import { type Lanes, laneChanges, laned, SEP } from '../laned.js';
import { schedule } from '../schedules.js';
import { inMs } from '../server-time.js';
import { describeTransition } from '../state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];
const LANDED = { state: 'pending', attempts: '0', payload: 'p' };
const WOKEN: [string, unknown][] = [['w:p1', '']];
const laneOf = (jobId: string, lane: string, ...more: string[]) => [
  jobId,
  'p',
  '',
  1 + more.length / 2,
  'lane',
  lane,
  ...more,
];

describeTransition('enqueue', (table) => {
  // The second to come enters a tenth of a turn behind.
  const both: Lanes = { lanes: { '': { waits: { [B]: 0 } }, x: { waits: { [A]: 0 }, at: 100 } } };
  table.it('begins lanes with the first job of one; those that wait already are one of them', {
    given: (queue) => queue.pending(B),
    call: laneOf(A, 'x'),
    answer: [1],
    changes: {
      ...laneChanges(undefined, both),
      [job(A)]: fields({ ...LANDED, lane: 'x' }),
      'metrics:enqueued': counted(2),
    },
  });

  table.it('lands jobs in their lanes, each at its priority, and wakes one process', {
    given: async (queue) => {
      await laned(queue, { floor: 700, lanes: {}, total: '0' });
      await queue.hungry('p1', 'p2');
    },
    call: [...laneOf(A, 'x', 'priority', '5'), ...laneOf(B, `g${SEP}y`), C, 'p', '', 0, ...laneOf(D, 'x')],
    answer: [1, 1, 1, 1],
    changes: {
      ...laneChanges(
        { floor: 700, lanes: {}, total: '0' },
        {
          floor: 700,
          lanes: {
            x: { waits: { [A]: 5, [D]: 0 } },
            [`g${SEP}y`]: { waits: { [B]: 0 } },
            '': { waits: { [C]: 0 }, at: 800 },
          },
          groups: { g: { at: 800 } },
        },
      ),
      [job(A)]: fields({ ...LANDED, lane: 'x', priority: '5' }),
      [job(B)]: fields({ ...LANDED, lane: `g${SEP}y` }),
      [job(C)]: fields(LANDED),
      [job(D)]: fields({ ...LANDED, lane: 'x' }),
      ...{ 'metrics:enqueued': counted(4), hungry: zset(['p2', 2]) },
    },
    hears: WOKEN,
  });

  table.it('wakes nobody for a job of a lane that is held', {
    given: async (queue) => {
      await laned(queue, { lanes: { x: { state: { until: FAR } } } });
      await queue.hungry('p1');
    },
    call: laneOf(A, 'x'),
    answer: [1],
    changes: {
      ...laneChanges(
        { lanes: { x: { state: { until: FAR } } } },
        { lanes: { x: { waits: { [A]: 0 }, state: { until: FAR }, parked: FAR } } },
      ),
      ...{ [job(A)]: fields({ ...LANDED, lane: 'x' }), 'metrics:enqueued': counted(1) },
    },
    hears: [['beat', { asymmetricMatch: (said: unknown) => /^park:\d+$/.test(String(said)) }]],
  });

  const waits = { [B]: 0 };
  const full = (state: Record<string, string>): Lanes => ({ lanes: { x: { waits, state } } });
  table.it('refuses what a lane is too full for, and lands the others of the call', {
    given: (queue) => laned(queue, full({ max_waiting: '2' })),
    call: [...laneOf(A, 'x'), ...laneOf(C, 'x'), ...laneOf(D, 'y')],
    answer: [1, -3, 1],
    changes: {
      ...laneChanges(full({ max_waiting: '2' }), {
        lanes: { x: { waits: { [A]: 0, [B]: 0 }, state: { max_waiting: '2' } }, y: { waits: { [D]: 0 }, at: 100 } },
      }),
      ...{
        [job(A)]: fields({ ...LANDED, lane: 'x' }),
        [job(D)]: fields({ ...LANDED, lane: 'y' }),
        'metrics:enqueued': counted(3),
      },
    },
  });

  for (const [what, given] of [
    ['what stands for all', { ...full({}), defaults: { max_waiting: '1' } }],
    ['its own setting', { ...full({ max_waiting: '1' }), defaults: { max_waiting: '5' } }],
  ] as const) {
    table.it(`refuses by ${what}, and does not take the key of what it refuses`, {
      given: (queue) => laned(queue, given),
      call: laneOf(A, 'x', 'dedup', 'u:k'),
      answer: [-3],
      changes: { dedups: { string: '1' } },
    });
  }

  table.it('counts no job that waits for its time', {
    given: (queue) => laned(queue, full({ max_waiting: '1' })),
    call: [A, 'p', '5000', 1, 'lane', 'x'],
    answer: [1],
    changes: {
      ...{ schedule: zset([A, inMs(5000)]), [job(A)]: fields({ ...LANDED, state: 'scheduled', lane: 'x' }) },
      'metrics:enqueued': counted(2),
    },
    hears: [['beat', '5000']],
  });

  table.refuses(
    'refuses names that no lane can have',
    async () => undefined,
    [
      '',
      SEP,
      `${SEP}x`,
      `g${SEP}`,
      `a${SEP}b${SEP}c`,
      'x'.repeat(201),
      `g${SEP}${'x'.repeat(201)}`,
      `${'x'.repeat(201)}${SEP}x`,
    ].map((name) => laneOf(A, name)),
  );
  for (const given of [(queue: Hand) => queue.pending(B), (queue: Hand) => laned(queue, both)]) {
    table.refusesTypes(
      laneOf(C, 'x'),
      ['pending', 'hungry', 'lanes', 'lanes:parked', 'lanes:waiting', 'lanes:active'],
      given,
    );
  }
});

describeTransition('land', (table) => {
  table.it('lands the jobs of a tree in their lanes; a parent that waits stands in none', {
    given: (queue) => queue.hungry('p1'),
    call: ['', '', A, 'p', '', 1, 'lane', 'x', 1, 1, 2, 'lane', 'y', 'parent', A, B, 'p', 0, 0, 0],
    answer: 1,
    changes: {
      ...laneChanges(undefined, { lanes: { y: { waits: { [B]: 0 } } } }),
      ...{
        waiting: zset([A, 0]),
        hungry: gone,
        'metrics:enqueued': counted(2),
        ...familyKeys('q', A, { children: [B] }),
      },
      [job(A)]: fields({ ...LANDED, state: 'awaiting_children', lane: 'x', flow: '1' }),
      [job(B)]: fields({ ...LANDED, lane: 'y', parent: A }),
    },
    hears: WOKEN,
  });
  table.refusesTypes(
    ['', '', A, 'p', '', 1, 'lane', 'x', 0],
    ['lanes', 'lanes:parked', 'lanes:waiting', 'lanes:active'],
  );
});

describeTransition('complete', (table) => {
  const running: Lanes = { lanes: { y: { runs: [B], tag: 0, state: { cap: 1 } } } };
  table.it('brings a parent whose last child has ended into its lane', {
    given: async (queue) => {
      await laned(queue, running, { [B]: { parent: A } });
      await queue.waiting(A, { flow: 1, lane: 'x' });
      await queue.client.sadd(`${queue.keys.row(A)}:children`, `q|${B}`);
      await queue.client.set(`${queue.keys.row(A)}:dependencies`, 1);
      await queue.hungry('p1');
    },
    call: [0, B, 1, 0, 'r'],
    answer: [1],
    changes: {
      ...laneChanges(running, { lanes: { x: { waits: { [A]: 0 } }, y: { tag: 0, state: { active: 0, cap: 1 } } } }),
      ...{ active: gone, waiting: gone, hungry: gone, [job(B)]: gone, 'metrics:completed': counted(1) },
      [job(A)]: fields({ state: 'pending' }),
      ...familyKeys('q', A, { children: [B], processed: { [B]: 'r' } }),
    },
    hears: WOKEN,
  });
});

describeTransition('schedule_fire', (table) => {
  table.it('lands the job of a slot in the lane of its schedule', {
    given: async (queue) => {
      await schedule(queue, 's', PAST, { lane: 'x' });
      await queue.hungry('p1');
    },
    call: ['s', 'r', PAST, FAR, 0, A, 'p'],
    answer: expectAnswer(),
    changes: {
      ...laneChanges(undefined, { lanes: { x: { waits: { [A]: 0 } } } }),
      ...{ schedules: zset(['s', FAR]), hungry: gone, 'metrics:enqueued': counted(1) },
      [job(A)]: fields({ ...LANDED, lane: 'x' }),
      'schedule:s': fields({ last_slot: String(PAST), last_job: A }),
    },
    hears: WOKEN,
  });

  table.it('lands it without one where the schedule names what no lane can be called', {
    given: (queue) => schedule(queue, 's', PAST, { lane: `g${SEP}` }),
    call: ['s', 'r', PAST, FAR, 0, A, 'p'],
    answer: expectAnswer(),
    changes: {
      ...{
        pending: zset([A, 0]),
        schedules: zset(['s', FAR]),
        'metrics:enqueued': counted(1),
        [job(A)]: fields(LANDED),
      },
      'schedule:s': fields({ last_slot: String(PAST), last_job: A }),
    },
  });
  table.refusesTypes(['s', 'r', PAST, FAR, 0, A, 'p'], ['lanes', 'lanes:active'], () =>
    schedule(table.queue, 's', PAST, { lane: 'x' }),
  );
});

function expectAnswer(): unknown {
  return { asymmetricMatch: (answer: unknown) => Array.isArray(answer) && answer[0] === 1 && Number(answer[1]) > 0 };
}
