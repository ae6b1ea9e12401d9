import { expect, it } from '@jest/globals';
import { counted, gone, job } from '../changes.js';
import { type Family, familyChanges, give, owing, waiting } from '../family.js';
import { Hand, id } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { tiesTo } from './fan-in.js';

const PAUSED = { string: '1' };
const G = id(20);

describeTransition('obliterate', (table) => {
  const family: Family = { children: [C, S], processed: { [C]: 'r' }, failed: { [S]: 'boom' } };

  table.it('takes parents with all they have recorded, and tells no parent in the same queue', {
    given: async (queue) => {
      await queue.pending(C, { parent: P, awaited: 1 });
      await queue.dead(P, { died_of: 'children', parent: G });
      await give(queue, P, family);
      await waiting(queue, G, { children: [P] });
    },
    call: [0, 1000],
    answer: 3,
    changes: {
      pending: gone,
      dead: gone,
      waiting: gone,
      paused: PAUSED,
      [job(C)]: gone,
      [job(P)]: gone,
      [job(G)]: gone,
      ...familyChanges('q', P, family, gone),
      ...familyChanges('q', G, { children: [P] }, gone),
      'metrics:removed': counted(3),
    },
    hears: [['settled', C]],
  });

  table.it('owes word of every child to its parent in another queue', {
    given: async (queue) => {
      await queue.pending(C, tiesTo('fail', 'r'));
      await queue.dead(S, tiesTo('hold', 's'));
      await waiting(queue, P, { children: [id(3)] }, { parent: G, parent_queue: 'r' });
    },
    call: [0, 1000],
    answer: 3,
    changes: {
      pending: gone,
      dead: gone,
      waiting: gone,
      paused: PAUSED,
      [job(C)]: gone,
      [job(S)]: gone,
      [job(P)]: gone,
      ...familyChanges('q', P, { children: [id(3)] }, gone),
      outbox: owing(
        { to: 'r', parent: P, child: C, how: 'gone', text: 'removed' },
        { to: 's', parent: P, child: S, how: 'gone', policy: 'hold', text: 'removed' },
        { to: 'r', parent: G, child: P, how: 'gone', text: 'removed' },
      ),
      'metrics:removed': counted(3),
    },
    hears: [['beat', 'relay']],
  });

  table.it('takes a running child when forced, and its parent hears of it', {
    given: (queue) => queue.active(C, tiesTo('ignore', 'r')),
    call: [1, 1000],
    answer: 1,
    changes: {
      active: gone,
      paused: PAUSED,
      [job(C)]: gone,
      outbox: owing({ to: 'r', parent: P, child: C, how: 'gone', policy: 'ignore', text: 'removed' }),
      'metrics:removed': counted(1),
    },
    hears: [['beat', 'relay']],
  });

  table.refusesTypes([1, 1000], ['hungry', 'outbox'], () => table.queue.pending(C));

  it('leaves a parent elsewhere to its policy, once it has heard', async () => {
    const { queue } = table;
    const other = new Hand(queue.client, queue.executor, 'r');
    await waiting(other, P, { children: [`q|${C}`, `q|${S}`] });
    await queue.pending(C, tiesTo('ignore', 'r'));
    await queue.pending(S, tiesTo('hold', 'r'));
    await queue.run('obliterate', [0, 1000]);
    const entries = await queue.client.xrange(queue.keys.outbox, '-', '+');
    const effects = entries.flatMap(([entry, [, , , kind, ...rest]]) => [
      entry,
      kind!,
      ...rest.filter((_, n) => n % 2 === 1),
    ]);
    await other.run('apply', ['q', '0-0', ...effects]);
    expect(await other.client.hgetall(`${other.keys.row(P)}:unsuccessful`)).toEqual({ [C]: 'removed', [S]: 'removed' });
    expect(await other.client.zrange(other.keys.pending, 0, '-1')).toEqual([P]);
  });
});
