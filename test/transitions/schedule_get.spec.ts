import { FAR } from './hand.js';
import { flat, NEVER, rowOf, SCHEDULE, schedule } from './schedules.js';
import { inMs } from './server-time.js';
import { describeTransition } from './state-table.js';

describeTransition('schedule_get', (table) => {
  table.it('answers where the schedule stands, and its row', {
    given: (queue) => schedule(queue, 'k', FAR),
    call: ['k'],
    answer: [inMs(0), String(FAR), flat(SCHEDULE)],
  });

  table.it('answers that a paused one stands nowhere', {
    given: (queue) => schedule(queue, 'k', 'paused'),
    call: ['k'],
    answer: [inMs(0), String(NEVER), flat({ ...SCHEDULE, paused: 1 })],
  });

  table.it('answers the time where there is none', {
    given: (queue) => schedule(queue, 'k', FAR),
    call: ['none'],
    answer: [inMs(0), '-1', []],
  });

  table.it('answers an empty row where somebody has put a key of another type', {
    given: async (queue) => {
      await queue.client.zadd(queue.keys.schedules, FAR, 'k');
      await queue.client.set(rowOf(queue, 'k'), 'x');
    },
    call: ['k'],
    answer: [inMs(0), String(FAR), []],
    reachable: false,
  });

  table.refusesTypes(['k'], ['schedules']);
});
