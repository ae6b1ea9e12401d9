import { FAR, type Hand, id, PAST } from '../hand.js';
import { type Lanes, laned, SEP } from '../laned.js';
import { msUntil } from '../server-time.js';
import { describeTransition } from '../state-table.js';

const [A, B, C, D, E] = [id(1), id(2), id(3), id(4), id(5)];
const some: Lanes = {
  floor: 200,
  lanes: {
    '': { waits: { [A]: 0 }, tag: 200 },
    x: { waits: { [C]: 0, [B]: 7 }, tag: 300 },
    y: { waits: { [D]: 0 }, runs: [E], state: { cap: 1 }, out: true },
    z: { waits: { [id(6)]: 0 }, state: { until: FAR }, parked: FAR },
    [`g${SEP}in`]: { waits: { [id(7)]: 0 } },
  },
};
const given = (queue: Hand) => laned(queue, some);
const row = (jobId: string, score: number, lane?: string) => [
  jobId,
  String(score),
  [
    ...['state', 'pending', 'attempts', '0', 'payload', 'p'],
    ...(score === 0 ? [] : ['priority', String(score)]),
    ...(lane === undefined ? [] : ['lane', lane]),
  ],
];

/** `in`: a hash table has no order. */
const same = (expected: unknown[]) => ({
  asymmetricMatch: (found: unknown) => JSON.stringify(shaped(found as unknown[])) === JSON.stringify(shaped(expected)),
});
const shaped = ([total, ...jobs]: unknown[]) => [
  total,
  ...(jobs as [string, string, string[]][]).map(([jobId, score, flat]) => [jobId, score, [...flat].sort()]),
];

describeTransition('list', (table) => {
  const all = [
    ...[row(A, 0), row(C, 0, 'x'), row(B, 7, 'x'), row(id(6), 0, 'z'), row(D, 0, 'y'), row(id(7), 0, `g${SEP}in`)],
  ];
  table.it('shows the jobs without a lane, then those of the lanes, the fullest first', {
    given,
    call: [0, 10, 10_000],
    answer: same([6, ...all]),
  });
  for (const [offset, limit] of [
    [0, 2],
    [1, 1],
    [1, 3],
    [2, 2],
    [3, 2],
    [5, 5],
    [6, 5],
  ] as const) {
    table.it(`pages through them (${limit} from ${offset})`, {
      given,
      call: [offset, limit, 10_000],
      answer: same([6, ...all.slice(offset, offset + limit)]),
    });
  }
  for (const [lane, shown] of [
    ['', [1, row(A, 0)]],
    ['x', [2, row(C, 0, 'x'), row(B, 7, 'x')]],
    [`g${SEP}in`, [1, row(id(7), 0, `g${SEP}in`)]],
    ['new', [0]],
  ] as const) {
    table.it(`shows those of one lane, ${JSON.stringify(lane)}, alone`, {
      given,
      call: [0, 10, 1000, lane],
      answer: same([...shown]),
    });
  }
  table.refusesTypes([0, 10, 1000], ['lanes:waiting'], given);
});

describeTransition('counts', (table) => {
  table.it('counts what waits in lanes as pending', { given, call: [], answer: [6, 1, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0] });
});

describeTransition('lead', (table) => {
  const leads = (queue: Hand) => queue.client.set(queue.keys.leader, 'p1', 'PX', 60_000);
  table.it('says when the first lane that is parked comes back, and that something can be claimed', {
    given: async (queue) => {
      await given(queue);
      await leads(queue);
    },
    call: ['p1', 10_000],
    answer: [1, -1, msUntil(FAR), msUntil(FAR), 1, 0, -1],
  });
  table.it('says that nothing can be claimed while no lane can give a job', {
    given: async (queue) => {
      await laned(queue, { lanes: { x: { waits: { [A]: 0 }, state: { until: PAST }, parked: PAST } } });
      await leads(queue);
    },
    call: ['p1', 10_000],
    answer: [1, -1, -1, 0, 0, 0, -1],
  });
});
