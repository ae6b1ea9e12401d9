import { counted, fields, gone, job, zset } from '../changes.js';
import { type Family, familyChanges, give, owing } from '../family.js';
import { id } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

const G = id(20);

describeTransition('trim', (table) => {
  fansIn(table, {
    what: 'a trim',
    how: 'gone',
    text: 'trimmed',
    child: (queue, ties) => queue.dead(C, ties),
    call: [0, 1],
    answer: 1,
    places: [['dead', 0], undefined],
    changes: { [job(C)]: gone },
    counts: { removed: 1 },
    policies: ['fail', 'hold'],
  });

  table.it('owes word of it to a parent in another queue, and tells those who wait', {
    given: (queue) => queue.dead(C, { ...tiesTo('hold', 'r'), awaited: 1 }),
    call: [0, 1000],
    answer: 1,
    changes: {
      dead: gone,
      [job(C)]: gone,
      outbox: owing({ to: 'r', parent: P, child: C, how: 'gone', policy: 'hold', text: 'trimmed' }),
      'metrics:removed': counted(1),
    },
    hears: [
      ['settled', C],
      ['beat', 'relay'],
    ],
  });

  const fallen: Family = { children: [C, S], failed: { [C]: 'boom' } };

  table.it('takes a parent with all it has recorded of its children', {
    given: async (queue) => {
      await queue.dead(P, { died_of: 'children' });
      await give(queue, P, fallen);
    },
    call: [0, 1000],
    answer: 1,
    changes: { dead: gone, [job(P)]: gone, ...familyChanges('q', P, fallen, gone), 'metrics:removed': counted(1) },
  });

  table.it('takes child, parent and grandparent together, and revives none of them', {
    given: async (queue) => {
      await queue.dead(C, { parent: P });
      await queue.dead(P, { died_of: 'children', parent: G });
      await give(queue, P, fallen);
      await queue.dead(G, { died_of: 'children' });
      await give(queue, G, { children: [P], failed: { [P]: 'boom' } });
    },
    call: [0, 1000],
    answer: 3,
    changes: {
      dead: gone,
      [job(C)]: gone,
      [job(P)]: gone,
      [job(G)]: gone,
      ...familyChanges('q', P, fallen, gone),
      ...familyChanges('q', G, { children: [P], failed: { [P]: 'boom' } }, gone),
      'metrics:removed': counted(3),
    },
  });

  table.it('revives what the oldest of the dead held, all the way up', {
    given: async (queue) => {
      await queue.dead(C, { parent: P });
      await queue.dead(P, { died_of: 'children', parent: G });
      await give(queue, P, fallen);
      await queue.dead(G, { died_of: 'children' });
      await give(queue, G, { children: [P], failed: { [P]: 'boom' } });
    },
    call: [2, 1000],
    answer: 1,
    changes: {
      dead: gone,
      waiting: zset([P, 0], [G, 0]),
      [job(C)]: gone,
      [job(P)]: fields({ state: 'awaiting_children', died_of: undefined, last_error: undefined }),
      [job(G)]: fields({ state: 'awaiting_children', died_of: undefined, last_error: undefined }),
      ...familyChanges('q', P, fallen, { children: [C, S], unsuccessful: { [C]: 'trimmed' } }),
      ...familyChanges('q', G, { children: [P], failed: { [P]: 'boom' } }, { children: [P] }),
      'metrics:removed': counted(1),
    },
  });

  // Touched only by a job that somebody wants to hear of.
  const tied = () => table.queue.dead(C, tiesTo('fail'));
  table.refusesTypes([0, 1000], ['pending', 'waiting', 'hungry', 'outbox'], tied);

  table.it('does not look at what a job without ties leaves alone', {
    given: async (queue) => {
      await queue.dead(C);
      await queue.client.set(queue.keys.outbox, 'x');
    },
    call: [0, 1000],
    answer: 1,
    changes: { dead: gone, [job(C)]: gone, 'metrics:removed': counted(1) },
  });
});
