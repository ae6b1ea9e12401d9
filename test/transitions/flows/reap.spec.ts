import { expect, it } from '@jest/globals';
import { counted, fields, job } from '../changes.js';
import { familyChanges, give, moved, owing, waiting } from '../family.js';
import { PAST } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

const TEXT = 'lease lapsed 1 times';
const BURIED = { state: 'dead', stalls: '1', last_error: TEXT, errors: '1', 'error:1': TEXT };

describeTransition('reap', (table) => {
  fansIn(table, {
    what: 'a death by lapsed leases',
    how: 'dead',
    text: TEXT,
    child: (queue, ties) => queue.active(C, ties, PAST),
    call: [1000, 0, '', 0],
    answer: [0, 1, expect.any(Number), expect.any(Number), C],
    places: [
      ['active', PAST],
      ['dead', 0],
    ],
    changes: { [job(C)]: fields(BURIED) },
    counts: { failed: 1, stalled: 1 },
    policies: ['fail', 'continue'],
  });

  table.it('owes a death to a parent in another queue', {
    given: (queue) => queue.active(C, tiesTo('ignore', 'r'), PAST),
    call: [1000, 0, '', 0],
    answer: [0, 1, -1, -1, C],
    changes: {
      ...moved({ [C]: ['active', PAST] }, { [C]: ['dead', 0] }),
      [job(C)]: fields(BURIED),
      outbox: owing({ to: 'r', parent: P, child: C, how: 'dead', policy: 'ignore', text: TEXT }),
      'metrics:failed': counted(1),
      'metrics:stalled': counted(1),
    },
    hears: [['beat', 'relay']],
  });

  table.it('tells nobody of a child that may be settled still, nor of a parent', {
    given: async (queue) => {
      await queue.active(C, { ...tiesTo('fail', 'r'), awaited: 1 }, PAST);
      await queue.active(P, {}, PAST);
      await give(queue, P, { children: [S] });
    },
    call: [1000, 2, '', 0],
    answer: [2, 0, -1, -1],
    changes: {
      ...moved({ [C]: ['active', PAST], [P]: ['active', PAST] }, { [C]: ['pending', 0], [P]: ['pending', 0] }),
      [job(C)]: fields({ state: 'pending', stalls: '1', lapsed: '1' }),
      [job(P)]: fields({ state: 'pending', stalls: '1', lapsed: '1' }),
      'metrics:stalled': counted(2),
    },
  });

  table.it('says of a parent whose own leases lapsed that it died itself', {
    given: async (queue) => {
      await queue.active(P, {}, PAST);
      await give(queue, P, { children: [C, S], processed: { [C]: 'r' } });
    },
    call: [1000, 0, '', 0],
    answer: [0, 1, -1, -1, P],
    changes: {
      ...moved({ [P]: ['active', PAST] }, { [P]: ['dead', 0] }),
      [job(P)]: fields({ ...BURIED, died_of: 'self' }),
      'metrics:failed': counted(1),
      'metrics:stalled': counted(1),
    },
  });

  table.it('buries a parent and its running child together, each for its own lapse', {
    given: async (queue) => {
      await queue.active(C, { parent: P }, PAST);
      await queue.active(P, {}, PAST);
      await give(queue, P, { children: [C] });
    },
    call: [1000, 0, '', 0],
    answer: [0, 2, -1, -1, C, P],
    changes: {
      ...moved({ [C]: ['active', PAST], [P]: ['active', PAST] }, { [C]: ['dead', 0], [P]: ['dead', 0] }),
      [job(C)]: fields(BURIED),
      [job(P)]: fields({ ...BURIED, died_of: 'self' }),
      ...familyChanges('q', P, { children: [C] }, { children: [C], unsuccessful: { [C]: TEXT } }),
      'metrics:failed': counted(2),
      'metrics:stalled': counted(2),
    },
  });

  table.refusesTypes([1000, 2, '', 0], ['waiting', 'outbox']);

  it('leaves a lapsed child to its first holder, whose completion counts it down exactly once', async () => {
    const { queue } = table;
    await waiting(queue, P, { children: [C, S] });
    await queue.active(C, { parent: P }, PAST);
    await queue.run('reap', [1000, 2, '', 0]);
    expect(await queue.client.get(`${queue.keys.row(P)}:dependencies`)).toBe('2');
    expect(await queue.run('complete', [0, C, 1, 0, 'r'])).toEqual([1]);
    expect(await queue.run('complete', [0, C, 1, 0, 'r'])).toEqual([0]);
    expect(await queue.client.get(`${queue.keys.row(P)}:dependencies`)).toBe('1');
    expect(await queue.client.zrange(queue.keys.waiting, 0, '-1')).toEqual([P]);
  });

  it('counts a child that lapsed and was claimed anew once, by its second holder', async () => {
    const { queue } = table;
    await waiting(queue, P, { children: [C] });
    await queue.active(C, { parent: P }, PAST);
    await queue.run('reap', [1000, 2, '', 0]);
    await queue.run('claim', [30_000, 1]);
    expect(await queue.run('complete', [0, C, 1, 0, 'first'])).toEqual([-1]);
    expect(await queue.run('complete', [0, C, 2, 0, 'second'])).toEqual([1]);
    expect(await queue.client.hgetall(`${queue.keys.row(P)}:processed`)).toEqual({ [C]: 'second' });
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual([P]);
  });
});
