import { FAR, type Hand, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { flat, NEVER, SCHEDULE, schedule } from './schedules.js';
import { inMs, msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const some = async (queue: Hand) => {
  await schedule(queue, 'later', FAR + 1);
  await schedule(queue, 'paused', 'paused');
  await schedule(queue, 'b', PAST);
  await schedule(queue, 'a', PAST);
  await schedule(queue, 'soon', FAR);
};
const [A, B] = [
  ['a', String(PAST), flat(SCHEDULE)],
  ['b', String(PAST), flat(SCHEDULE)],
];
const SOON = ['soon', String(FAR), flat(SCHEDULE)];
const LATER = ['later', String(FAR + 1), flat(SCHEDULE)];
const PAUSED = ['paused', String(NEVER), flat({ ...SCHEDULE, paused: 1 })];

describeTransition('schedule_list', (table) => {
  table.it('answers nothing of a queue without schedules', { call: [0, 10, 1000, 0], answer: [inMs(0), 0, -1] });

  table.it('answers all, the next to fire first, paused ones last', {
    given: some,
    call: [0, 10, 1000, 0],
    answer: [inMs(0), 5, msUntil(FAR), A, B, SOON, LATER, PAUSED],
  });

  table.it('answers a page', { given: some, call: [1, 2, 1000, 0], answer: [inMs(0), 5, msUntil(FAR), B, SOON] });

  table.it('answers those that are due, and how long until one of the others is', {
    given: some,
    call: [0, 10, 1000, 1],
    answer: [inMs(0), 5, msUntil(FAR), A, B],
  });

  table.it('answers no more of those that are due than asked for', {
    given: some,
    call: [0, 1, 1000, 1],
    answer: [inMs(0), 5, msUntil(FAR), A],
  });

  table.it('ends a page early rather than carry more bytes, but answers one', {
    given: some,
    call: [0, 10, 1, 0],
    answer: [inMs(0), 5, msUntil(FAR), A],
  });

  table.it('knows of no next slot when all others are paused', {
    given: async (queue) => {
      await schedule(queue, 'a', PAST);
      await schedule(queue, 'paused', 'paused');
    },
    call: [0, 10, 1000, 1],
    answer: [inMs(0), 2, -1, A],
  });

  table.it('answers an empty row for what somebody has deleted', {
    given: async (queue) => void (await queue.client.zadd(queue.keys.schedules, PAST, 'ghost')),
    call: [0, 10, 1000, 1],
    answer: [inMs(0), 1, -1, ['ghost', String(PAST), []]],
    reachable: false,
  });

  table.refuses('refuses pages that make no sense', () => some(table.queue), [
    [],
    ['0', '10', '1000'],
    ...each(['0', '10', '1000', '0'], 0, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
    ...each(['0', '10', '1000', '0'], 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '1001']),
    ...each(['0', '10', '1000', '0'], 2, [...NOT_NUMBERS, ...TOO_LARGE, '0']),
    ...each(['0', '10', '1000', '0'], 3, ['', '2', 'due']),
  ]);
  table.refusesTypes([0, 10, 1000, 0], ['schedules']);
});
