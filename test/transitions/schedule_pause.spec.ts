import { fields, zset } from './changes.js';
import { FAR, PAST } from './hand.js';
import { NEVER, schedule } from './schedules.js';
import { describeTransition } from './state-table.js';

describeTransition('schedule_pause', (table) => {
  table.it('takes the next slot from a schedule, due or not', {
    given: async (queue) => {
      await schedule(queue, 'k', PAST, { last_slot: PAST - 1 });
      await schedule(queue, 'other', FAR);
    },
    call: ['k'],
    answer: 1,
    changes: { schedules: zset(['other', FAR], ['k', NEVER]), 'schedule:k': fields({ paused: '1' }) },
  });

  table.it('answers that it was paused', { given: (queue) => schedule(queue, 'k', 'paused'), call: ['k'], answer: -2 });

  table.it('answers that there is none', { given: (queue) => schedule(queue, 'k', FAR), call: ['none'], answer: 0 });

  table.refusesTypes(['k'], ['schedules', 'schedule:k'], () => schedule(table.queue, 'k', FAR));
});
