import { counted, fields, job } from '../changes.js';
import { give, moved, owing } from '../family.js';
import { FAR } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

const BURIED = { state: 'dead', last_error: 'cancelled', errors: '1', 'error:1': 'cancelled' };

describeTransition('release', (table) => {
  fansIn(table, {
    what: 'a release of what was asked to stop',
    how: 'dead',
    text: 'cancelled',
    child: (queue, ties) => queue.active(C, { cancel: 1, ...ties }),
    call: [C, 1, ''],
    answer: [1],
    places: [
      ['active', FAR],
      ['dead', 0],
    ],
    changes: { [job(C)]: fields(BURIED) },
    counts: { failed: 1 },
    policies: ['fail', 'continue'],
  });

  table.it('owes the death of what was asked to stop to a parent in another queue', {
    given: (queue) => queue.active(C, { cancel: 1, ...tiesTo('hold', 'r') }),
    call: [C, 1, ''],
    answer: [1],
    changes: {
      ...moved({ [C]: ['active', FAR] }, { [C]: ['dead', 0] }),
      [job(C)]: fields(BURIED),
      outbox: owing({ to: 'r', parent: P, child: C, how: 'dead', policy: 'hold', text: 'cancelled' }),
      'metrics:failed': counted(1),
    },
    hears: [['beat', 'relay']],
  });

  table.it('tells nobody of a child that is given back', {
    given: (queue) => queue.active(C, { ...tiesTo('fail', 'r'), awaited: 1 }),
    call: [C, 1, ''],
    answer: [1],
    changes: {
      ...moved({ [C]: ['active', FAR] }, { [C]: ['pending', 0] }),
      [job(C)]: fields({ state: 'pending', uncharged: '1' }),
    },
  });

  table.it('gives a parent back to be claimed, not to wait', {
    given: async (queue) => {
      await queue.active(P);
      await give(queue, P, { children: [C, S] });
    },
    call: [P, 1, ''],
    answer: [1],
    changes: {
      ...moved({ [P]: ['active', FAR] }, { [P]: ['pending', 0] }),
      [job(P)]: fields({ state: 'pending', uncharged: '1' }),
    },
  });

  table.it('says of a parent that was asked to stop that it died itself', {
    given: async (queue) => {
      await queue.active(P, { cancel: 1, awaited: 1 });
      await give(queue, P, { children: [C, S] });
    },
    call: [P, 1, ''],
    answer: [1],
    changes: {
      ...moved({ [P]: ['active', FAR] }, { [P]: ['dead', 0] }),
      [job(P)]: fields({ ...BURIED, died_of: 'self' }),
      'metrics:failed': counted(1),
    },
    hears: [['settled', P]],
  });

  table.refusesTypes([C, 1, ''], ['waiting', 'outbox'], () => table.queue.active(C));
});
