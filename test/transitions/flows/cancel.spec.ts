import { expect, it } from '@jest/globals';
import { counted, fields, gone, job } from '../changes.js';
import { type Family, familyChanges, give, owing, waiting } from '../family.js';
import { type Hand, id } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

describeTransition('cancel', (table) => {
  fansIn(table, {
    what: 'a cancellation',
    how: 'gone',
    text: 'cancelled',
    child: (queue, ties) => queue.pending(C, ties),
    call: [0, C],
    answer: [1],
    places: [['pending', 0], undefined],
    changes: { [job(C)]: gone },
    counts: { removed: 1 },
    policies: ['fail', 'hold'],
  });

  table.it('owes word of it to a parent in another queue, and tells those who wait', {
    given: (queue) => queue.scheduled(C, { ...tiesTo('fail', 'r'), awaited: 1 }),
    call: [0, C],
    answer: [1],
    changes: {
      schedule: gone,
      [job(C)]: gone,
      outbox: owing({ to: 'r', parent: P, child: C, how: 'gone', text: 'cancelled' }),
      'metrics:removed': counted(1),
    },
    hears: [
      ['settled', C],
      ['beat', 'relay'],
    ],
  });

  table.it('tells the parent of a running child nothing yet: its holder ends it', {
    given: async (queue) => {
      await queue.active(C, tiesTo('fail', 'r'));
      await queue.active(S, { ...tiesTo('fail'), awaited: 1 });
    },
    call: [0, C, S],
    answer: [2, 2],
    changes: { [job(C)]: fields({ cancel: '1' }), [job(S)]: fields({ cancel: '1' }) },
    hears: [
      ['beat', `cancel:${C}`],
      ['beat', `cancel:${S}`],
    ],
  });

  table.it('leaves the ties of a running child of a cancelled tree: its parent, if that stays, will hear of it', {
    given: (queue) => queue.active(C, tiesTo('continue', 'r')),
    call: [1, C],
    answer: [2],
    changes: { [job(C)]: fields({ cancel: '1' }) },
    hears: [['beat', `cancel:${C}`]],
  });

  const some: Family = { children: [C, S], unsuccessful: { [C]: 'boom' } };
  const parent =
    (state: 'waiting' | 'pending' | 'scheduled' | 'dead', more = {}) =>
    async (queue: Hand) => {
      await queue[state](P, { ...(state === 'dead' ? { died_of: 'self' } : {}), ...more });
      await give(queue, P, some);
    };
  const set = { waiting: 'waiting', pending: 'pending', scheduled: 'schedule' } as const;

  table.it('does not cancel a parent that waits without its tree', {
    given: parent('waiting'),
    call: [0, P],
    answer: [-2],
  });

  table.it('does not cancel a dead parent, with or without its tree', {
    given: parent('dead'),
    call: [1, P],
    answer: [-2],
  });

  for (const state of ['pending', 'scheduled'] as const) {
    table.it(`takes a ${state} parent alone, and leaves its children to themselves`, {
      given: parent(state),
      call: [0, P],
      answer: [1],
      changes: {
        [set[state]]: gone,
        [job(P)]: gone,
        ...familyChanges('q', P, some, gone),
        'metrics:removed': counted(1),
      },
    });
  }

  for (const state of ['waiting', 'pending', 'scheduled'] as const) {
    table.it(`marks a ${state} parent whose tree is cancelled: its children go first`, {
      given: parent(state),
      call: [1, P],
      answer: [3],
      changes: { [job(P)]: fields({ removing: '1' }) },
    });

    for (const more of [{}, { removing: 1 }]) {
      table.it(
        `says of a ${state} parent (${JSON.stringify(more)}) that its children go first, however often a first call is sent`,
        {
          given: parent(state, more),
          call: [2, P, P],
          answer: [3, 3],
          changes: { [job(P)]: fields({ removing: '1' }) },
        },
      );
    }

    table.it(`takes a marked ${state} parent when it is named again`, {
      given: parent(state, { removing: 1 }),
      call: [1, P],
      answer: [1],
      changes: {
        [set[state]]: gone,
        [job(P)]: gone,
        ...familyChanges('q', P, some, gone),
        'metrics:removed': counted(1),
      },
    });
  }

  table.it('asks a running parent to stop, and marks nothing', {
    given: async (queue) => {
      await queue.active(P);
      await give(queue, P, some);
    },
    call: [1, P],
    answer: [2],
    changes: { [job(P)]: fields({ cancel: '1' }) },
    hears: [['beat', `cancel:${P}`]],
  });

  table.refusesTypes([0, C], ['waiting', 'dead', 'hungry', 'outbox'], () => table.queue.pending(C));

  it('cancels a tree leaves first; the running child is stopped, and the parent of the tree hears of its root', async () => {
    const { queue } = table;
    const G = id(20);
    await waiting(queue, G, { children: [P] });
    await waiting(queue, P, { children: [C, S] }, { parent: G, parent_policy: 'ignore' });
    await queue.pending(C, { parent: P });
    await queue.active(S, { parent: P });
    expect(await queue.run('cancel', [1, P])).toEqual([3]);
    expect(await queue.run('cancel', [1, C, S])).toEqual([1, 2]);
    expect(await queue.run('release', [S, 1, ''])).toEqual([1]);
    expect(await queue.client.hgetall(`${queue.keys.row(P)}:unsuccessful`)).toEqual({
      [C]: 'cancelled',
      [S]: 'cancelled',
    });
    expect(await queue.client.hget(queue.keys.row(P), 'state')).toBe('awaiting_children');
    expect(await queue.run('cancel', [1, P])).toEqual([1]);
    expect(await queue.client.hgetall(`${queue.keys.row(G)}:unsuccessful`)).toEqual({ [P]: 'cancelled' });
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual([G]);
  });
});
