import { expect, it } from '@jest/globals';
import { counted, fields, gone, job } from '../changes.js';
import { type Family, familyChanges, familyKeys, give, owing, waiting } from '../family.js';
import { type Hand, id } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

describeTransition('remove', (table) => {
  const removal = {
    how: 'gone',
    text: 'removed',
    call: [0, C],
    answer: [1],
    changes: { [job(C)]: gone },
    counts: { removed: 1 },
  } as const;

  fansIn(table, {
    ...removal,
    what: 'a removal from the morgue',
    child: (queue, ties) => queue.dead(C, ties),
    places: [['dead', 0], undefined],
  });

  fansIn(table, {
    ...removal,
    what: 'a removal before its turn',
    child: (queue, ties) => queue.pending(C, ties),
    places: [['pending', 0], undefined],
    policies: ['fail'],
  });

  table.it('owes word of it to a parent in another queue', {
    given: (queue) => queue.scheduled(C, tiesTo('hold', 'r')),
    call: [0, C],
    answer: [1],
    changes: {
      schedule: gone,
      [job(C)]: gone,
      outbox: owing({ to: 'r', parent: P, child: C, how: 'gone', policy: 'hold', text: 'removed' }),
      'metrics:removed': counted(1),
    },
    hears: [['beat', 'relay']],
  });

  table.it('tells those who wait for a job that it is gone', {
    given: (queue) => queue.pending(C, { awaited: 1 }),
    call: [0, C],
    answer: [1],
    changes: { pending: gone, [job(C)]: gone, 'metrics:removed': counted(1) },
    hears: [['settled', C]],
  });

  table.it('tells nobody of a kept row, which was counted when it was completed', {
    given: (queue) => queue.done(C, { ...tiesTo('fail', 'r'), awaited: 1 }),
    call: [0, C],
    answer: [1],
    changes: { [job(C)]: gone },
  });

  const states = ['waiting', 'pending', 'scheduled', 'dead'] as const;
  const set = { waiting: 'waiting', pending: 'pending', scheduled: 'schedule', dead: 'dead' } as const;
  const some: Family = { children: [C, S], processed: { [C]: 'r' } };
  const all: Family = { children: [C, S], processed: { [C]: 'r' }, unsuccessful: { [S]: 'boom' } };
  const parent =
    (state: (typeof states)[number] | 'active', family: Family, more = {}) =>
    async (queue: Hand) => {
      await queue[state](P, { ...(state === 'dead' ? { died_of: 'self' } : {}), ...more });
      await give(queue, P, family);
    };

  for (const state of states) {
    table.it(`leaves a ${state} parent with outstanding children`, {
      given: parent(state, some),
      call: [0, P],
      answer: [-2],
    });

    table.it(`takes a ${state} parent whose children have settled, with all it has recorded`, {
      given: parent(state, all, state === 'waiting' ? { removing: 1 } : {}),
      call: [0, P],
      answer: [1],
      changes: {
        [set[state]]: gone,
        [job(P)]: gone,
        ...familyChanges('q', P, all, gone),
        'metrics:removed': counted(1),
      },
    });

    table.it(`marks a ${state} parent whose tree is to go: its children go first`, {
      given: parent(state, some),
      call: [1, P],
      answer: [3],
      changes: { [job(P)]: fields({ removing: '1' }) },
    });

    for (const more of [{}, { removing: 1 }]) {
      table.it(
        `says of a ${state} parent (${JSON.stringify(more)}) that its children go first, however often a first call is sent`,
        {
          given: parent(state, some, more),
          call: [2, P, P],
          answer: [3, 3],
          changes: { [job(P)]: fields({ removing: '1' }) },
        },
      );
    }

    table.it(`takes a marked ${state} parent when it is named again, also with children outstanding`, {
      given: parent(state, some, { removing: 1 }),
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

  table.it('does not take a marked parent with outstanding children without its tree', {
    given: parent('waiting', some, { removing: 1 }),
    call: [0, P],
    answer: [-2],
  });

  table.it('removes a job without children at once, with its tree as well', {
    given: async (queue) => {
      await queue.pending(C, tiesTo('fail'));
      await queue.dead(S);
    },
    call: [2, C, S],
    answer: [1, 1],
    changes: { pending: gone, dead: gone, [job(C)]: gone, [job(S)]: gone, 'metrics:removed': counted(2) },
  });

  table.it('lets a running job of a tree end as any job: its parent, if that stays, will hear of it', {
    given: async (queue) => {
      await queue.active(C, tiesTo('fail', 'r'));
      await parent('active', some)(queue);
    },
    call: [1, C, P],
    answer: [2, 2],
  });

  table.it('removes a parent that is a child itself, and its own parent hears of it', {
    given: async (queue) => {
      await queue.dead(P, { parent: id(20), died_of: 'self', parent_policy: 'hold' });
      await give(queue, P, all);
      await waiting(queue, id(20), { children: [P, S] });
    },
    call: [0, P],
    answer: [1],
    changes: {
      dead: gone,
      [job(P)]: gone,
      ...familyChanges('q', P, all, gone),
      ...familyChanges('q', id(20), { children: [P, S] }, { children: [P, S], unsuccessful: { [P]: 'removed' } }),
      'metrics:removed': counted(1),
    },
  });

  table.refusesTypes([0, C], ['waiting', 'hungry', 'outbox'], () => table.queue.pending(C));

  it('removes a tree leaves first; what runs ends normally, and nobody dies of it', async () => {
    const { queue } = table;
    const G = id(20);
    await waiting(queue, G, { children: [P, S] });
    await waiting(queue, P, { children: [C] }, { parent: G });
    await queue.pending(C, { parent: P });
    await queue.active(S, { parent: G });
    expect(await queue.run('remove', [1, G])).toEqual([3]);
    expect(await queue.run('remove', [1, P])).toEqual([3]);
    expect(await queue.run('remove', [1, C])).toEqual([1]);
    expect(await queue.run('remove', [1, P])).toEqual([1]);
    expect(await queue.run('remove', [1, S])).toEqual([2]);
    const kept = familyKeys('q', G, { children: [P, S], unsuccessful: { [P]: 'removed' } });
    expect(await queue.dump()).toMatchObject({ waiting: { zset: [[G, 0]] }, ...kept });
    expect(await queue.run('remove', [1, G])).toEqual([1]);
    expect(await queue.run('complete', [0, S, 1, 0, 'late'])).toEqual([1]);
    expect(await queue.dump()).toEqual({
      'metrics:enqueued': counted(4),
      'metrics:removed': counted(3),
      'metrics:completed': counted(1),
    });
  });
});
