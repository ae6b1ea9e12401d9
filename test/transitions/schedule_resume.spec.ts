import { fields, zset } from './changes.js';
import { FAR, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { schedule, slotIn } from './schedules.js';
import { describeTransition } from './state-table.js';

describeTransition('schedule_resume', (table) => {
  const paused = () => schedule(table.queue, 'k', 'paused', { last_slot: PAST });

  table.it('gives a paused schedule its next slot, and announces it', {
    given: async (queue) => {
      await paused();
      await schedule(queue, 'other', FAR);
    },
    call: ['k', 'r', FAR - 1],
    answer: 1,
    changes: { schedules: zset(['k', FAR - 1], ['other', FAR]), 'schedule:k': fields({ paused: undefined }) },
    hears: [['beat', slotIn(FAR - 1)]],
  });

  table.it('announces the slot of the only schedule', {
    given: paused,
    call: ['k', 'r', PAST + 1],
    answer: 1,
    changes: { schedules: zset(['k', PAST + 1]), 'schedule:k': fields({ paused: undefined }) },
    hears: [['beat', 'slot:0']],
  });

  table.it('announces no later one', {
    given: async (queue) => {
      await paused();
      await schedule(queue, 'other', PAST);
    },
    call: ['k', 'r', FAR],
    answer: 1,
    changes: { schedules: zset(['other', PAST], ['k', FAR]), 'schedule:k': fields({ paused: undefined }) },
  });

  table.it('leaves one alone that was declared anew since its times were read', {
    given: paused,
    call: ['k', 'r0', FAR],
    answer: -1,
  });

  table.it('answers that it is not paused', {
    given: (queue) => schedule(queue, 'k', FAR),
    call: ['k', 'r', FAR - 1],
    answer: -2,
  });

  table.it('answers that there is none', { given: paused, call: ['none', 'r', FAR], answer: 0 });

  table.refuses('refuses next slots that are not canonical milliseconds', paused, [
    [],
    ['k', 'r'],
    ...each(['k', 'r', '5'], 2, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
  ]);
  table.refusesTypes(['k', 'r', FAR], ['schedules', 'schedule:k'], paused);
});
