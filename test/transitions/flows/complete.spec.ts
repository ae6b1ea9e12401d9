import { expect, it } from '@jest/globals';
import { counted, expiring, fields, gone, job, zset } from '../changes.js';
import { familyChanges, give, owing, STREAM_ID, waiting } from '../family.js';
import { FAR, id } from '../hand.js';
import { describeTransition } from '../state-table.js';
import { C, P, S } from './arrivals.js';
import { fansIn, tiesTo } from './fan-in.js';

/** A short list of short texts as the server packs it, and a dump shows it. */
function shown(...texts: string[]): string {
  const parts = texts.map((text) => Buffer.concat([Buffer.from([0xa0 + text.length]), Buffer.from(text)]));
  return `base64!${Buffer.concat([Buffer.from([0x90 + texts.length]), ...parts]).toString('base64')}`;
}

describeTransition('complete', (table) => {
  const done = { how: 'done', text: 'r', answer: [1], counts: { completed: 1 } } as const;

  fansIn(table, {
    ...done,
    what: 'a completion',
    child: (queue, ties) => queue.active(C, ties),
    call: [0, C, 1, 0, 'r'],
    places: [['active', FAR], undefined],
    changes: { [job(C)]: gone },
  });

  fansIn(table, {
    ...done,
    what: 'a kept completion by the holder of a lapsed lease',
    child: (queue, ties) => queue.lapsed(C, ties),
    call: [0, C, 1, 600_000, 'r'],
    places: [['pending', 0], undefined],
    changes: { [job(C)]: expiring({ state: 'done', result: 'r', lapsed: undefined }) },
    policies: ['fail'],
  });

  for (const policy of ['fail', 'hold'] as const) {
    table.it(`owes the result to a parent in another queue (${policy})`, {
      given: (queue) => queue.active(C, tiesTo(policy, 'r')),
      call: [0, C, 1, 0, 'r'],
      answer: [1],
      changes: {
        active: gone,
        [job(C)]: gone,
        outbox: owing({ to: 'r', parent: P, child: C, how: 'done', policy, text: 'r' }),
        'metrics:completed': counted(1),
      },
      hears: [['beat', 'relay']],
    });
  }

  const [E, F] = [id(21), id(22)];
  const elsewhere = (parent: string, target = 'r') => ({ parent, parent_queue: target });
  table.it('owes the results of all children of one parent elsewhere in one entry', {
    given: async (queue) => {
      for (const [child, ties] of [
        [C, elsewhere(P)],
        [S, elsewhere(P)],
        [E, elsewhere(P, 's')],
        [F, elsewhere(P)],
      ] as const) {
        await queue.active(child, ties);
      }
    },
    call: [0, C, 1, 0, 'c', S, 1, 0, '', E, 1, 0, 'e', F, 1, 0, 'f'],
    answer: [1, 1, 1, 1],
    changes: {
      active: gone,
      ...Object.fromEntries([C, S, E, F].map((child) => [job(child), gone])),
      outbox: {
        stream: [
          [STREAM_ID, { to: 'r', kind: 'results', parent: P, results: shown(C, 'c', S, '', F, 'f') }],
          ...owing({ to: 's', parent: P, child: E, how: 'done', text: 'e' }).stream,
        ],
      },
      'metrics:completed': counted(4),
    },
    hears: [['beat', 'relay']],
  });

  it('owes at most 100 results in one entry, and of several no more than 100,000 bytes', async () => {
    const { queue } = table;
    const owed = async (n: number, result: string) => {
      await table.server.flush();
      const children = Array.from({ length: n }, (_, k) => id(100 + k));
      for (const child of children) await queue.active(child, elsewhere(P));
      await queue.run('complete', [0, ...children.flatMap((child) => [child, 1, 0, result])]);
      const entries = await queue.client.xrange(queue.keys.outbox, '-', '+');
      return entries.map(([, [, , , kind]]) => kind);
    };
    expect(await owed(201, 'r')).toEqual(['results', 'results', 'settle']);
    expect(await owed(5, 'r'.repeat(40_000))).toEqual(['results', 'results', 'settle']);
    expect(await owed(2, 'r'.repeat(100_001))).toEqual(['settle', 'settle']);
  });

  table.it('takes a parent with all it has recorded of its children', {
    given: async (queue) => {
      await queue.active(P);
      await give(queue, P, { children: [C, S], processed: { [C]: 'r' }, unsuccessful: { [S]: 'boom' } });
    },
    call: [0, P, 1, 0, 'r'],
    answer: [1],
    changes: {
      active: gone,
      [job(P)]: gone,
      ...familyChanges('q', P, { children: [C, S], processed: { [C]: 'r' }, unsuccessful: { [S]: 'boom' } }, gone),
      'metrics:completed': counted(1),
    },
  });

  table.it('keeps of a parent its row alone', {
    given: async (queue) => {
      await queue.active(P);
      await give(queue, P, { children: [C], processed: { [C]: 'r' } });
    },
    call: [0, P, 1, 600_000, 'rp'],
    answer: [1],
    changes: {
      active: gone,
      [job(P)]: expiring({ state: 'done', result: 'rp' }),
      ...familyChanges('q', P, { children: [C], processed: { [C]: 'r' } }, gone),
      'metrics:completed': counted(1),
    },
  });

  const G = id(20);
  table.it('counts a parent that is a child itself down at its own parent', {
    given: async (queue) => {
      await queue.active(P, { parent: G, priority: 3 });
      await give(queue, P, { children: [C], processed: { [C]: 'r' } });
      await waiting(queue, G, { children: [P] });
    },
    call: [0, P, 1, 0, 'rp'],
    answer: [1],
    changes: {
      active: gone,
      waiting: gone,
      pending: zset([G, 0]),
      [job(P)]: gone,
      ...familyChanges('q', P, { children: [C], processed: { [C]: 'r' } }, gone),
      [job(G)]: fields({ state: 'pending' }),
      ...familyChanges('q', G, { children: [P] }, { children: [P], processed: { [P]: 'rp' } }),
      'metrics:completed': counted(1),
    },
  });

  table.it('releases a parent once, by the last of a batch, and counts a doubled completion once', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C, S] });
      await queue.active(C, { parent: P });
      await queue.active(S, { parent: P });
    },
    call: [0, C, 1, 0, 'c', C, 1, 0, 'again', S, 1, 0, 's', S, 2, 0, 'stale'],
    answer: [1, 0, 1, 0],
    changes: {
      active: gone,
      waiting: gone,
      pending: zset([P, 0]),
      [job(C)]: gone,
      [job(S)]: gone,
      [job(P)]: fields({ state: 'pending' }),
      ...familyChanges('q', P, { children: [C, S] }, { children: [C, S], processed: { [C]: 'c', [S]: 's' } }),
      'metrics:completed': counted(2),
    },
  });

  table.it('records nothing for whoever is not the holder', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C] });
      await queue.active(C, { parent: P });
    },
    call: [0, C, 2, 0, 'r'],
    answer: [-1],
  });

  table.it('answers a repeat on a kept child, and counts nothing down', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C, S] });
      await queue.done(C, { parent: P });
    },
    call: [0, C, 1, 0, 'again'],
    answer: [1],
  });

  table.it('completes parent and child in one call, whatever comes first', {
    given: async (queue) => {
      await queue.active(P);
      await give(queue, P, { children: [C, S] });
      await queue.active(C, { parent: P });
      await queue.active(S, { parent: P });
    },
    call: [0, C, 1, 0, 'c', P, 1, 0, 'p', S, 1, 0, 's'],
    answer: [1, 1, 1],
    changes: {
      active: gone,
      [job(C)]: gone,
      [job(S)]: gone,
      [job(P)]: gone,
      ...familyChanges('q', P, { children: [C, S] }, gone),
      'metrics:completed': counted(3),
    },
  });

  table.it('tells those who wait for a job, and keeps its result for a minute', {
    given: (queue) => queue.active(C, { awaited: 1 }),
    call: [0, C, 1, 0, 'r'],
    answer: [1],
    changes: {
      active: gone,
      [job(C)]: expiring({ state: 'done', result: 'r' }),
      'metrics:completed': counted(1),
    },
    hears: [['settled', C]],
  });

  table.it('does not wake anybody for a parent released into a paused queue', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C] });
      await queue.active(C, { parent: P });
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [0, C, 1, 0, 'r'],
    answer: [1],
    changes: {
      active: gone,
      waiting: gone,
      pending: zset([P, 0]),
      [job(C)]: gone,
      [job(P)]: fields({ state: 'pending' }),
      ...familyChanges('q', P, { children: [C] }, { children: [C], processed: { [C]: 'r' } }),
      'metrics:completed': counted(1),
    },
  });

  table.it('does not wake anybody for a parent released behind others', {
    given: async (queue) => {
      await waiting(queue, P, { children: [C] });
      await queue.active(C, { parent: P });
      await queue.pending(id(30));
      await queue.hungry('p1');
    },
    call: [0, C, 1, 0, 'r'],
    answer: [1],
    changes: {
      active: gone,
      waiting: gone,
      pending: zset([P, 0], [id(30), 0]),
      [job(C)]: gone,
      [job(P)]: fields({ state: 'pending' }),
      ...familyChanges('q', P, { children: [C] }, { children: [C], processed: { [C]: 'r' } }),
      'metrics:completed': counted(1),
    },
  });

  // Touched only by a job that somebody wants to hear of.
  const tied = async () => {
    await table.queue.active(C, { parent: P });
  };
  table.refusesTypes([0, C, 1, 0, 'r'], ['pending', 'waiting', 'dead', 'hungry', 'outbox'], tied);

  table.it('does not look at what a job without ties leaves alone', {
    given: async (queue) => {
      await queue.active(C);
      await queue.client.set(queue.keys.outbox, 'x');
    },
    call: [0, C, 1, 0, 'r'],
    answer: [1],
    changes: { active: gone, [job(C)]: gone, 'metrics:completed': counted(1) },
  });

  table.it('records a completion that revives a parent as one completion', {
    given: async (queue) => {
      await queue.dead(P, { died_of: 'children' });
      await give(queue, P, { children: [C], failed: { [C]: 'boom' } });
      await queue.active(C, { parent: P });
    },
    call: [1, C, 1, 0, 'r'],
    answer: [1],
    changes: {
      active: gone,
      dead: gone,
      pending: zset([P, 0]),
      [job(C)]: gone,
      [job(P)]: fields({ state: 'pending', died_of: undefined, last_error: undefined }),
      ...familyChanges('q', P, { children: [C], failed: { [C]: 'boom' } }, { children: [C], processed: { [C]: 'r' } }),
      'metrics:completed': counted(1),
      'stream:completions': {
        stream: [[expect.any(String), expect.objectContaining({ id: C, outcome: 'completed' })]],
      },
    },
  });
});
