import { expect, it } from '@jest/globals';
import { fields, gone, job, zset } from '../changes.js';
import { type Family, familyChanges, give, owing, waiting } from '../family.js';
import { type Hand, id } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

const G = id(20);
const REVIVED = { state: 'pending', last_error: undefined };
const ALIVE = { last_error: undefined, died_of: undefined };

describeTransition('reprocess', (table) => {
  fansIn(table, {
    what: 'a revival',
    how: 'back',
    text: '',
    child: (queue, ties) => queue.dead(C, ties),
    call: [0, C],
    answer: [1],
    places: [
      ['dead', 0],
      ['pending', 0],
    ],
    changes: { [job(C)]: fields(REVIVED) },
    counts: {},
    wakes: true,
  });

  table.it('owes word of it to a parent in another queue, and tells nobody who waits', {
    given: (queue) => queue.dead(C, { ...tiesTo('fail', 'r'), awaited: 1 }),
    call: [0, C],
    answer: [1],
    changes: {
      dead: gone,
      pending: zset([C, 0]),
      [job(C)]: fields(REVIVED),
      outbox: owing({ to: 'r', parent: P, child: C, how: 'back', text: '' }),
    },
    hears: [['beat', 'relay']],
  });

  const deadOf = (cause: 'self' | 'children', family: Family, more = {}) => {
    return async (queue: Hand) => {
      await queue.dead(P, { died_of: cause, priority: 3, ...more });
      await give(queue, P, family);
    };
  };

  const two: Family = { children: [C, S, id(3)], failed: { [C]: 'boom', [S]: 'bang' } };
  const settled: Family = { children: [C, S, id(3)], unsuccessful: { [C]: 'boom', [S]: 'bang' } };
  table.it('sends a parent dead of its children on without them, to wait for the rest', {
    given: deadOf('children', two),
    call: [0, P],
    answer: [1],
    changes: {
      dead: gone,
      waiting: zset([P, 0]),
      [job(P)]: fields({ ...ALIVE, state: 'awaiting_children' }),
      ...familyChanges('q', P, two, settled),
    },
  });

  const last: Family = { ...two, processed: { [id(3)]: 'r' } };
  table.it('sends it to pending when there is no rest, at its own priority, and wakes somebody', {
    given: async (queue) => {
      await deadOf('children', last)(queue);
      await queue.hungry('p1');
    },
    call: [1, P],
    answer: [1],
    changes: {
      dead: gone,
      hungry: gone,
      pending: zset([P, 3]),
      [job(P)]: fields({ ...ALIVE, state: 'pending', uncharged: '1' }),
      ...familyChanges('q', P, last, { ...settled, processed: { [id(3)]: 'r' } }),
    },
    hears: [['w:p1', '']],
  });

  table.it('takes the mark of an unfinished removal off a parent, which then goes on', {
    given: deadOf('children', { children: [C, S], failed: { [C]: 'boom' } }, { removing: 1 }),
    call: [0, P],
    answer: [1],
    changes: {
      dead: gone,
      waiting: zset([P, 0]),
      [job(P)]: fields({ ...ALIVE, state: 'awaiting_children', removing: undefined }),
      ...familyChanges(
        'q',
        P,
        { children: [C, S], failed: { [C]: 'boom' } },
        { children: [C, S], unsuccessful: { [C]: 'boom' } },
      ),
    },
  });

  table.it('sends a parent that died of itself to be claimed, also while children are outstanding', {
    given: deadOf('self', { children: [C, S], unsuccessful: { [C]: 'boom' } }),
    call: [0, P],
    answer: [1],
    changes: {
      dead: gone,
      pending: zset([P, 3]),
      [job(P)]: fields({ ...ALIVE, state: 'pending' }),
    },
  });

  table.it('brings back all that died of a job, upwards', {
    given: async (queue) => {
      await queue.dead(C, { parent: P });
      await deadOf('children', { children: [C], failed: { [C]: 'boom' } }, { parent: G, parent_queue: 'q' })(queue);
      await queue.dead(G, { died_of: 'children', parent: id(30), parent_queue: 'r' });
      await give(queue, G, { children: [P, S], failed: { [P]: 'boom' } });
    },
    call: [0, C],
    answer: [1],
    changes: {
      dead: gone,
      pending: zset([C, 0]),
      waiting: zset([P, 0], [G, 0]),
      [job(C)]: fields(REVIVED),
      [job(P)]: fields({ ...ALIVE, state: 'awaiting_children' }),
      [job(G)]: fields({ ...ALIVE, state: 'awaiting_children' }),
      ...familyChanges('q', P, { children: [C], failed: { [C]: 'boom' } }, { children: [C] }),
      ...familyChanges('q', G, { children: [P, S], failed: { [P]: 'boom' } }, { children: [P, S] }),
      outbox: owing({ to: 'r', parent: id(30), child: G, how: 'back', text: '' }),
    },
    hears: [['beat', 'relay']],
  });

  table.it('brings back what died of a parent that goes on without its children', {
    given: async (queue) => {
      await deadOf('children', last, { parent: G })(queue);
      await queue.dead(G, { died_of: 'children' });
      await give(queue, G, { children: [P], failed: { [P]: 'boom' } });
    },
    call: [0, P],
    answer: [1],
    changes: {
      dead: gone,
      pending: zset([P, 3]),
      waiting: zset([G, 0]),
      [job(P)]: fields({ ...ALIVE, state: 'pending' }),
      [job(G)]: fields({ ...ALIVE, state: 'awaiting_children' }),
      ...familyChanges('q', P, last, { ...settled, processed: { [id(3)]: 'r' } }),
      ...familyChanges('q', G, { children: [P], failed: { [P]: 'boom' } }, { children: [P] }),
    },
  });

  const both = async (queue: Hand) => {
    await queue.dead(C, { parent: P });
    await deadOf('children', { children: [C], failed: { [C]: 'boom' } })(queue);
  };
  table.it('revives a child and with it its parent, which is then no longer dead', {
    given: both,
    call: [0, C, P],
    answer: [1, -2],
    changes: {
      dead: gone,
      pending: zset([C, 0]),
      waiting: zset([P, 0]),
      [job(C)]: fields(REVIVED),
      [job(P)]: fields({ ...ALIVE, state: 'awaiting_children' }),
      ...familyChanges('q', P, { children: [C], failed: { [C]: 'boom' } }, { children: [C] }),
    },
  });

  table.it('revives a parent without its child, and then the child, for which it no longer waits', {
    given: both,
    call: [0, P, C],
    answer: [1, 1],
    changes: {
      dead: gone,
      pending: zset([C, 0], [P, 3]),
      [job(C)]: fields(REVIVED),
      [job(P)]: fields({ ...ALIVE, state: 'pending' }),
      ...familyChanges(
        'q',
        P,
        { children: [C], failed: { [C]: 'boom' } },
        { children: [C], unsuccessful: { [C]: 'boom' } },
      ),
    },
  });

  table.refusesTypes([0, C], ['waiting', 'outbox'], () => table.queue.dead(C));

  it('names another failed child also when that is in another queue, or the record is large and sparse', async () => {
    const { queue } = table;
    // Where what is left stands among empty buckets depends on the ids, and on the server's run.
    for (let round = 1; round <= 20; round++) {
      const far = Array.from({ length: 1_000 }, (_, n) => id(1_000 * round + n));
      const failed = Object.fromEntries([C, ...far].map((child) => [child, 'boom']));
      await table.server.flush();
      await queue.dead(C, { parent: P });
      await queue.dead(P, { died_of: 'children', last_error: `child q|${C}: boom` });
      await give(queue, P, { children: [C, ...far.map((child) => `r|${child}`)], failed });
      await queue.client.hdel(`${queue.keys.row(P)}:failed`, ...far.slice(120));
      expect(await queue.run('reprocess', [0, C])).toEqual([1]);
      const [state, error] = await queue.client.hmget(queue.keys.row(P), 'state', 'last_error');
      expect({ state, error }).toEqual({ state: 'dead', error: expect.stringMatching(/^child r\|JOB\w{11}: boom$/) });
    }
  });

  it('lets a parent go through death, revival, death and a late success, and releases it once', async () => {
    const { queue } = table;
    await waiting(queue, P, { children: [C] });
    await queue.active(C, { parent: P });
    const state = async () => [
      await queue.client.hget(queue.keys.row(P), 'state'),
      await queue.client.get(`${queue.keys.row(P)}:dependencies`),
    ];
    expect(await queue.run('retry', [0, C, 1, 0, 0, 'boom'])).toEqual([Buffer.from('dead')]);
    expect(await state()).toEqual(['dead', '1']);
    expect(await queue.run('reprocess', [0, C])).toEqual([1]);
    expect(await state()).toEqual(['awaiting_children', '1']);
    await queue.run('claim', [30_000, 1]);
    expect(await queue.run('retry', [0, C, 2, 0, 0, 'bang'])).toEqual([Buffer.from('dead')]);
    expect(await state()).toEqual(['dead', '1']);
    expect(await queue.run('reprocess', [0, P])).toEqual([1]);
    expect(await state()).toEqual(['pending', '0']);
    expect(await queue.run('reprocess', [0, C])).toEqual([1]);
    await queue.run('claim', [30_000, 1]);
    expect(await queue.run('complete', [0, C, 3, 0, 'late'])).toEqual([1]);
    expect(await state()).toEqual(['pending', '0']);
    expect(await queue.client.hgetall(`${queue.keys.row(P)}:processed`)).toEqual({ [C]: 'late' });
    expect(await queue.client.exists(`${queue.keys.row(P)}:unsuccessful`)).toBe(0);
  });
});
