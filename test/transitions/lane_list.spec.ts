import { FAR, type Hand, id } from './hand.js';
import { type Lanes, laned, SEP } from './laned.js';
import { NOT_NUMBERS } from './malformed.js';
import { msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];
const some: Lanes = {
  floor: 100,
  lanes: {
    '': { waits: { [A]: 0 }, tag: 100 },
    x: { waits: { [B]: 0, [id(6)]: 0 }, runs: [D], tag: 400 },
    held: { waits: { [C]: 0 }, state: { until: FAR }, parked: FAR },
    [`g${SEP}in`]: { waits: { [id(7)]: 0 } },
    idle: { state: { paused: 1 } },
  },
  groups: { g: { tag: 200 } },
};
const given = (queue: Hand) => laned(queue, some);
/** A hash table has no order. */
const state = (fields: Record<string, string>) => ({
  asymmetricMatch: (flat: unknown) => {
    const found = flat as string[];
    const pairs = found.flatMap((name, n) => (n % 2 === 0 ? [[name, found[n + 1]]] : []));
    return JSON.stringify(pairs.sort()) === JSON.stringify(Object.entries(fields).sort());
  },
});
const x = ['x', 2, '1', 0, state({ active: '1', tag: '400' })];
const held = ['held', 1, '0', msUntil(FAR), state({ until: String(FAR) })];
const inner = [`g${SEP}in`, 1, '0', 0, state({})];
const idle = ['idle', 0, '0', -1, state({ paused: '1' })];
const group = [`g${SEP}`, 0, '0', 0, state({ lanes: '1', tag: '200' })];

describeTransition('lane_list', (table) => {
  table.it('answers that no lane is known', { call: [0, 10], answer: [0] });
  table.it('shows those with most jobs waiting first, and says when each can give one', {
    given,
    call: [0, 10],
    answer: [5, x, held, inner, idle, group],
  });
  table.it('pages', { given, call: [1, 2], answer: [5, held, inner] });
  table.it('ends', { given, call: [5, 2], answer: [5] });
  for (const one of [x, held, inner, group]) {
    table.it(`shows ${JSON.stringify(one[0])} by its name`, {
      given,
      call: ['', '', String(one[0])],
      answer: [5, one],
    });
  }
  table.it('shows the jobs without a lane as one', {
    given,
    call: ['', '', ''],
    answer: [5, ['', 1, '0', 0, state({ tag: '100' })]],
  });
  table.it('says of the lanes of a group that is paused that time does not say when', {
    given: (queue) => laned(queue, { ...some, groups: { g: { tag: 200, state: { paused: 1 }, out: true } } }),
    call: ['', '', `g${SEP}in`],
    answer: [5, [`g${SEP}in`, 1, '0', -1, state({})]],
  });
  table.it('shows a lane that nobody knows', { given, call: ['', '', 'new'], answer: [5, ['new', 0, '0', -1, []]] });
  table.it('shows what holds for lanes without settings of their own', {
    given: (queue) => laned(queue, { ...some, defaults: { cap: '3' } }),
    call: ['', '', '', 'all'],
    answer: [5, ['', 1, '0', 0, state({ cap: '3' })]],
  });
  table.refuses('refuses pages that are malformed', given, [
    ...[[], [0], [0, 0], [0, 1001], [-1, 10]],
    ...NOT_NUMBERS.flatMap((text) => [
      [text, 10],
      [0, text],
    ]),
  ]);
  table.refusesTypes([0, 10], ['lanes', 'lanes:waiting', 'lanes:parked'], given);
});
