import { id } from './hand.js';
import { describeTransition } from './state-table.js';

describeTransition('pause', (table) => {
  table.it('pauses a queue, and tells every process', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.active(id(2));
    },
    call: [],
    answer: 1,
    changes: { paused: { string: '1' } },
    hears: [['beat', 'pause']],
  });

  table.it('pauses a queue that does not exist yet', {
    call: [],
    answer: 1,
    changes: { paused: { string: '1' } },
    hears: [['beat', 'pause']],
  });

  table.it('answers 0 on a paused queue, and says nothing', { given: (queue) => queue.paused(), call: [], answer: 0 });
});
