import { gone, zset } from './changes.js';
import { id } from './hand.js';
import { describeTransition } from './state-table.js';

describeTransition('pass', (table) => {
  table.it('wakes the next hungry process, not itself, when something is claimable', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.hungry('p1', 'crashed', 'p2', 'p3');
    },
    listening: ['p1', 'p2', 'p3'],
    call: ['p1'],
    answer: 1,
    changes: { hungry: zset(['p3', 4]) },
    hears: [['w:p2', '']],
  });

  table.it('only leaves the hungry when nothing is claimable', {
    given: (queue) => queue.hungry('p1', 'p2'),
    listening: ['p1', 'p2'],
    call: ['p1'],
    answer: 0,
    changes: { hungry: zset(['p2', 2]) },
  });

  table.it('only leaves the hungry when the queue is paused', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.paused();
      await queue.hungry('p1', 'p2');
    },
    listening: ['p1', 'p2'],
    call: ['p1'],
    answer: 0,
    changes: { hungry: zset(['p2', 2]) },
  });

  table.it('answers 0 when nobody is hungry, or nobody of them is alive', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.hungry('crashed');
    },
    call: ['p1'],
    answer: 0,
    changes: { hungry: gone },
  });

  table.it('answers 0 when only the process itself was hungry', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.hungry('p1');
    },
    call: ['p1'],
    answer: 0,
    changes: { hungry: gone },
  });

  table.refuses('refuses to pass for nobody', () => table.queue.hungry('p1'), [[]]);
  table.refusesTypes(['p1'], ['pending', 'hungry']);
});
