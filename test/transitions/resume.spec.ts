import { gone, zset } from './changes.js';
import { id } from './hand.js';
import { describeTransition } from './state-table.js';

describeTransition('resume', (table) => {
  table.it('resumes a queue, and wakes one hungry process when something is claimable', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.paused();
      await queue.hungry('crashed', 'p1', 'p2');
    },
    listening: ['p1', 'p2'],
    call: [],
    answer: 1,
    changes: { paused: gone, hungry: zset(['p2', 3]) },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody when nothing is claimable', {
    given: async (queue) => {
      await queue.paused();
      await queue.scheduled(id(1));
      await queue.hungry('p1');
    },
    call: [],
    answer: 1,
    changes: { paused: gone },
  });

  table.it('answers 0 on a queue that is not paused, and wakes nobody', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.hungry('p1');
    },
    call: [],
    answer: 0,
  });

  table.refusesTypes([], ['pending', 'hungry'], () => table.queue.paused());
});
