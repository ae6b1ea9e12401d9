import { expect } from '@jest/globals';
import { counted, fields, gone, job, zset } from '../changes.js';
import { familyChanges, give, moved, owing, waiting } from '../family.js';
import { FAR, id } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

const BURIED = { state: 'dead', last_error: 'boom', errors: '1', 'error:1': 'boom' };

describeTransition('retry', (table) => {
  fansIn(table, {
    what: 'a death',
    how: 'dead',
    text: 'boom',
    child: (queue, ties) => queue.active(C, ties),
    call: [0, C, 1, 0, 1, 'boom'],
    answer: ['dead'],
    places: [
      ['active', FAR],
      ['dead', 0],
    ],
    changes: { [job(C)]: fields(BURIED) },
    counts: { failed: 1 },
  });

  for (const policy of ['fail', 'ignore', 'continue', 'hold'] as const) {
    table.it(`owes a death to a parent in another queue (${policy})`, {
      given: (queue) => queue.active(C, tiesTo(policy, 'r')),
      call: [0, C, 1, 0, 0, 'boom'],
      answer: ['dead'],
      changes: {
        ...moved({ [C]: ['active', FAR] }, { [C]: ['dead', 0] }),
        [job(C)]: fields(BURIED),
        outbox: owing({ to: 'r', parent: P, child: C, how: 'dead', policy, text: 'boom' }),
        'metrics:failed': counted(1),
      },
      hears: [['beat', 'relay']],
    });
  }

  table.it('tells nobody of a child that is tried again', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C, S] });
      await queue.active(C, { parent: P, awaited: 1 });
      await queue.active(S, { parent: P });
    },
    call: [0, C, 1, 0, 3, 'boom', S, 1, 0, 3, 'boom'],
    answer: ['pending', 'pending'],
    changes: {
      ...moved({ [C]: ['active', FAR], [S]: ['active', FAR] }, { [C]: ['pending', 0], [S]: ['pending', 0] }),
      [job(C)]: fields({ ...BURIED, state: 'pending' }),
      [job(S)]: fields({ ...BURIED, state: 'pending' }),
      'metrics:retried': counted(2),
    },
  });

  table.it('sends a parent that was released to be tried again, not to wait again', {
    given: async (queue) => {
      await queue.active(P);
      await give(queue, P, { children: [C, S], unsuccessful: { [C]: 'boom' } });
    },
    call: [0, P, 1, 0, 3, 'boom'],
    answer: ['pending'],
    changes: {
      ...moved({ [P]: ['active', FAR] }, { [P]: ['pending', 0] }),
      [job(P)]: fields({ ...BURIED, state: 'pending' }),
      'metrics:retried': counted(1),
    },
  });

  table.it('says of a parent that died itself that it did, and leaves what it has recorded', {
    given: async (queue) => {
      await queue.active(P);
      await give(queue, P, { children: [C, S], processed: { [C]: 'r' } });
    },
    call: [0, P, 1, 0, 0, 'boom'],
    answer: ['dead'],
    changes: {
      ...moved({ [P]: ['active', FAR] }, { [P]: ['dead', 0] }),
      [job(P)]: fields({ ...BURIED, died_of: 'self' }),
      'metrics:failed': counted(1),
    },
  });

  table.it('tells those who wait for a job of its death, and not of a retry', {
    given: async (queue) => {
      await queue.active(C, { awaited: 1 });
      await queue.active(S, { awaited: 1 });
    },
    call: [0, C, 1, 0, 0, 'boom', S, 1, 5_000, 3, 'boom'],
    answer: ['dead', 'scheduled'],
    changes: {
      active: gone,
      dead: zset([C, 0]),
      schedule: zset([S, expect.any(Number)]),
      [job(C)]: fields(BURIED),
      [job(S)]: fields({ ...BURIED, state: 'scheduled' }),
      'metrics:failed': counted(1),
      'metrics:retried': counted(1),
    },
    hears: [
      ['settled', C],
      ['beat', '5000'],
    ],
  });

  const told = `child q|${C}: boom`;
  const FALLEN = { state: 'dead', died_of: 'children', last_error: told, errors: '0', 'error:0': told };
  for (const record of [1, 1000]) {
    const entry = (jobId: string, attempts: string, error: string) => [
      expect.any(String),
      expect.objectContaining({ id: jobId, outcome: 'dead', attempts, error }),
    ];
    table.it(`records the parent's death behind the child's (${record})`, {
      given: async (queue) => {
        await waiting(queue, P, { children: [C] });
        await queue.active(C, { parent: P });
      },
      call: [record, C, 1, 0, 0, 'boom'],
      answer: ['dead'],
      changes: {
        ...moved({ [C]: ['active', FAR], [P]: ['waiting', 0] }, { [C]: ['dead', 0], [P]: ['dead', 0] }),
        [job(C)]: fields(BURIED),
        [job(P)]: fields(FALLEN),
        ...familyChanges('q', P, { children: [C] }, { children: [C], failed: { [C]: 'boom' } }),
        'metrics:failed': counted(2),
        'stream:completions': { stream: [entry(C, '1', 'boom'), entry(P, '0', told)] },
      },
      hears: [['beat', `died:${P}`]],
    });
  }

  table.it('fells a parent once when two of its children die in one call, and names the first', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C, S], unsuccessful: {} });
      await queue.active(C, { parent: P });
      await queue.active(S, { parent: P });
    },
    call: [0, C, 1, 0, 0, 'boom', S, 1, 0, 0, 'bang'],
    answer: ['dead', 'dead'],
    changes: {
      ...moved(
        { [C]: ['active', FAR], [S]: ['active', FAR], [P]: ['waiting', 0] },
        { [C]: ['dead', 0], [S]: ['dead', 0], [P]: ['dead', 0] },
      ),
      [job(C)]: fields(BURIED),
      [job(S)]: fields({ ...BURIED, last_error: 'bang', 'error:1': 'bang' }),
      [job(P)]: fields(FALLEN),
      ...familyChanges('q', P, { children: [C, S] }, { children: [C, S], failed: { [C]: 'boom', [S]: 'bang' } }),
      'metrics:failed': counted(3),
    },
    hears: [['beat', `died:${P}`]],
  });

  table.it('wakes somebody for a released parent and a job put back together', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C] });
      await queue.active(C, { parent: P, parent_policy: 'continue' });
      await queue.active(id(5));
      await queue.hungry('p1');
    },
    call: [0, C, 1, 0, 0, 'boom', id(5), 1, 0, 3, 'boom'],
    answer: ['dead', 'pending'],
    changes: {
      active: gone,
      waiting: gone,
      hungry: gone,
      dead: zset([C, 0]),
      pending: zset([id(5), 0], [P, 0]),
      [job(C)]: fields(BURIED),
      [job(id(5))]: fields({ ...BURIED, state: 'pending' }),
      [job(P)]: fields({ state: 'pending' }),
      ...familyChanges('q', P, { children: [C] }, { children: [C], unsuccessful: { [C]: 'boom' } }),
      'metrics:failed': counted(1),
      'metrics:retried': counted(1),
    },
    hears: [['w:p1', '']],
  });

  table.refusesTypes([0, C, 1, 0, 3, 'e'], ['waiting', 'outbox'], () => table.queue.active(C));
});
