import { gone, zset } from './changes.js';
import { FAR, id, PAST } from './hand.js';
import { schedule } from './schedules.js';
import { describeTransition } from './state-table.js';

describeTransition('schedule_remove', (table) => {
  table.it('removes schedules, due, waiting or paused, and says which there were; jobs they have landed stay', {
    given: async (queue) => {
      await schedule(queue, 'due', PAST, { last_job: id(1) });
      await schedule(queue, 'waiting', FAR);
      await schedule(queue, 'paused', 'paused');
      await schedule(queue, 'other', FAR);
      await queue.pending(id(1));
    },
    call: ['due', 'none', 'waiting', 'paused', 'due'],
    answer: [1, 0, 1, 1, 0],
    changes: {
      schedules: zset(['other', FAR]),
      'schedule:due': gone,
      'schedule:waiting': gone,
      'schedule:paused': gone,
    },
  });

  table.it('removes what is left of one that somebody has half deleted', {
    given: async (queue) => {
      await schedule(queue, 'row', FAR);
      await queue.client.zrem(queue.keys.schedules, 'row');
      await queue.client.zadd(queue.keys.schedules, FAR, 'member');
    },
    call: ['row', 'member'],
    answer: [1, 1],
    changes: { schedules: gone, 'schedule:row': gone },
  });

  const given = () => schedule(table.queue, 'k', FAR);
  table.refuses('refuses to remove none', given, [[]]);
  table.refusesTypes(['k'], ['schedules'], given);
});
