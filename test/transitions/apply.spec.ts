import { expect, it } from '@jest/globals';
import { packed } from '../../lib/wire/packing.js';
import { counted, fields, gone, job, zset } from './changes.js';
import { familyChanges, familyKeys, give, moved, owing, waiting } from './family.js';
import { C, type How, P, type Policy, S } from './flows/arrivals.js';
import { fansIn } from './flows/fan-in.js';
import { type Hand, id } from './hand.js';
import { each, NOT_NUMBERS } from './malformed.js';
import { inMs } from './server-time.js';
import { describeTransition } from './state-table.js';
import { fresh, landing, node, nodesOf } from './tree.js';

const [A, B, D] = [id(3), id(4), id(5)];
const WAITS = { state: 'awaiting_children', flow: '1' };
const relayed = (position: string, source = 'r') => ({ hash: { [source]: position } });
const settle = (entry: string, child: string, how: How = 'done', text = 'r', policy: Policy = 'fail') => {
  return [entry, 'settle', P, child, how, policy, text];
};

describeTransition('apply', (table) => {
  for (const how of ['done', 'dead', 'gone', 'back'] as const) {
    fansIn(table, {
      what: `word from another queue that a child is ${how}`,
      how,
      text: 'word',
      from: 'r',
      call: (policy) => ['r', '0-0', ...settle('5-1', C, how, 'word', policy)],
      answer: '5-1',
      places: [undefined, undefined],
      changes: { relayed: relayed('5-1') },
      counts: {},
    });
  }

  // Exactly once, in order.

  const children = [`r|${C}`, `r|${S}`, `r|${A}`];
  const heard = (position: string, given: (queue: Hand) => Promise<unknown> = async () => undefined) => {
    return async (queue: Hand) => {
      await queue.client.hset(queue.keys.relayed, 'r', position);
      await given(queue);
    };
  };
  const parent = (queue: Hand) => waiting(queue, P, { children });

  table.it('says where it is when it is asked, and writes nothing', { call: ['r', '0-0'], answer: '0-0' });
  table.it('says where it is with one source, whatever it has heard from others', {
    given: heard('5-1', (queue) => queue.client.hset(queue.keys.relayed, 's', '9-9')),
    call: ['r', '0-0'],
    answer: '5-1',
  });

  table.it('applies several entries of one call in their order', {
    given: parent,
    call: ['r', '0-0', ...settle('5-1', C), ...settle('5-2', S, 'dead', 'boom', 'ignore'), ...settle('6-0', A)],
    answer: '6-0',
    changes: {
      relayed: relayed('6-0'),
      ...moved({ [P]: ['waiting', 0] }, { [P]: ['pending', 0] }),
      [job(P)]: fields({ state: 'pending' }),
      ...familyChanges(
        'q',
        P,
        { children },
        { children, processed: { [A]: 'r', [C]: 'r' }, unsuccessful: { [S]: 'boom' } },
      ),
    },
  });

  table.it('applies nothing a second time, and keeps its position', {
    given: heard('5-2', parent),
    call: ['r', '0-0', ...settle('5-1', C), ...settle('5-2', S)],
    answer: '5-2',
    changes: {},
  });

  table.it('skips what it has applied of a call, and applies the rest', {
    given: heard('5-1', parent),
    call: ['r', '0-0', ...settle('5-1', C), ...settle('5-2', S)],
    answer: '5-2',
    changes: {
      relayed: relayed('5-2'),
      ...familyChanges('q', P, { children }, { children, processed: { [S]: 'r' } }),
    },
  });

  for (const [last, older, newer] of [
    ['9-1', '8-9', '10-0'],
    ['10-2', '10-1', '10-10'],
    ['1790000000000-5', '1790000000000-4', '1790000000001-0'],
  ] as const) {
    table.it(`takes ${older} as older than ${last}, and ${newer} as newer`, {
      given: heard(last, parent),
      call: ['r', older, ...settle(older, C), ...settle(newer, S)],
      answer: newer,
      changes: {
        relayed: relayed(newer),
        ...familyChanges('q', P, { children }, { children, processed: { [S]: 'r' } }),
      },
    });
  }

  table.it('applies nothing when entries before these are missing, and says from where on', {
    given: heard('5-1', parent),
    call: ['r', '5-2', ...settle('5-3', C)],
    answer: '5-1',
  });

  table.it('has lost all of it after a flush', { call: ['r', '5-2', ...settle('5-3', C)], answer: '0-0' });

  table.it('applies what follows on its position', {
    given: heard('5-1', parent),
    call: ['r', '5-1', ...settle('5-3', C)],
    answer: '5-3',
    changes: {
      relayed: relayed('5-3'),
      ...familyChanges('q', P, { children }, { children, processed: { [C]: 'r' } }),
    },
  });

  table.it('starts anew where somebody has written a word as its position', {
    given: heard('abc', parent),
    call: ['r', '0-0', ...settle('5-3', C)],
    answer: '5-3',
    changes: {
      relayed: relayed('5-3'),
      ...familyChanges('q', P, { children }, { children, processed: { [C]: 'r' } }),
    },
  });

  table.it('keeps the positions that an obliterated queue has left, from now on for good', {
    given: heard('5-1', (queue) => queue.client.pexpire(queue.keys.relayed, 600_000)),
    call: ['s', '0-0', ...settle('1-1', C)],
    answer: '1-1',
    changes: { relayed: { hash: { r: '5-1', s: '1-1' } } },
  });

  table.it('passes over word of a parent that is gone', {
    call: ['r', '0-0', ...settle('5-1', C)],
    answer: '5-1',
    changes: { relayed: relayed('5-1') },
  });

  table.it('takes a child for one of the source, not of its namesake in another queue', {
    given: (queue) => waiting(queue, P, { children: [C] }),
    call: ['r', '0-0', ...settle('5-1', C)],
    answer: '5-1',
    changes: { relayed: relayed('5-1') },
  });

  table.it('owes what becomes of a parent on to its own parent elsewhere', {
    given: (queue) => waiting(queue, P, { children }, { parent: id(20), parent_queue: 'r', awaited: 1 }),
    call: ['r', '0-0', ...settle('5-1', C, 'dead', 'boom')],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1'),
      ...moved({ [P]: ['waiting', 0] }, { [P]: ['dead', 0] }),
      [job(P)]: fields({
        state: 'dead',
        died_of: 'children',
        last_error: `child r|${C}: boom`,
        errors: '0',
        'error:0': `child r|${C}: boom`,
      }),
      ...familyChanges('q', P, { children }, { children, failed: { [C]: 'boom' } }),
      outbox: owing({ to: 'r', parent: id(20), child: P, how: 'dead', text: `child r|${C}: boom` }),
      'metrics:failed': counted(1),
    },
    hears: [
      ['settled', P],
      ['beat', `died:${P}`],
      ['beat', 'relay'],
    ],
  });

  table.it('applies what a queue owes to itself', {
    given: (queue) => waiting(queue, P, { children: [C, S] }),
    call: ['q', '0-0', ...settle('5-1', C)],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1', 'q'),
      ...familyChanges('q', P, { children: [C, S] }, { children: [C, S], processed: { [C]: 'r' } }),
    },
  });

  // Results of several children.

  const results = (entry: string, ...list: string[]) => [entry, 'results', P, packed(list)];
  table.it('records results of several children that came in one entry, and releases their parent once', {
    given: parent,
    call: ['r', '0-0', ...results('5-1', C, 'one', S, ''), ...results('5-2', A, 'three')],
    answer: '5-2',
    changes: {
      relayed: relayed('5-2'),
      ...moved({ [P]: ['waiting', 0] }, { [P]: ['pending', 0] }),
      [job(P)]: fields({ state: 'pending' }),
      ...familyChanges('q', P, { children }, { children, processed: { [C]: 'one', [S]: '', [A]: 'three' } }),
    },
  });

  table.it('records of them what is not known yet, each once', {
    given: (queue) => waiting(queue, P, { children, processed: { [S]: 'first' } }),
    call: ['r', '0-0', ...results('5-1', C, 'one', C, 'again', S, 'second', id(9), 'a stranger')],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1'),
      ...familyChanges(
        'q',
        P,
        { children, processed: { [S]: 'first' } },
        { children, processed: { [C]: 'one', [S]: 'first' } },
      ),
    },
  });

  table.it('takes results in their place among other entries', {
    given: parent,
    call: ['r', '0-0', ...settle('5-1', C, 'dead', 'boom', 'ignore'), ...results('5-2', C, 'late', S, 'two')],
    answer: '5-2',
    changes: {
      relayed: relayed('5-2'),
      ...familyChanges('q', P, { children }, { children, processed: { [C]: 'late', [S]: 'two' } }),
    },
  });

  table.it('applies results once', {
    given: heard('5-1', parent),
    call: ['r', '0-0', ...results('5-1', C, 'one', S, 'two')],
    answer: '5-1',
  });

  // Landings.

  const from = { queue: 'r', id: P };
  const land = (entry: string, ...nodes: Parameters<typeof nodesOf>[1]) => [entry, 'land', nodesOf(from, nodes)];
  const ties = { parent: P, parent_queue: 'r' };

  table.it('lands what it is owed, wakes a process, and tells of the earliest time', {
    given: (queue) => queue.hungry('p1'),
    call: ['r', '0-0', ...land('5-1', node(A, { priority: 2 }), node(B, { delay: '700', policy: 'hold' }))],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1'),
      pending: zset([A, 2]),
      schedule: zset([B, inMs(700)]),
      hungry: gone,
      ...fresh(A, { ...ties, priority: '2' }),
      ...fresh(B, { ...ties, state: 'scheduled', parent_policy: 'hold' }),
      'metrics:enqueued': counted(2),
    },
    hears: [
      ['beat', '700'],
      ['w:p1', ''],
    ],
  });

  table.it('lands a subtree as far as it stays in the queue, and owes the rest', {
    call: ['r', '0-0', ...land('5-1', node(A, {}, [node(B), node(D, { queue: 'r' }), node(S, { queue: 's' })]))],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1'),
      waiting: zset([A, 0]),
      pending: zset([B, 0]),
      ...fresh(A, { ...ties, ...WAITS }),
      ...fresh(B, { parent: A }),
      ...familyKeys('q', A, { children: [B, `r|${D}`, `s|${S}`] }),
      outbox: landing(
        ['r', nodesOf({ queue: 'q', id: A }, [node(D, { queue: 'r' })])],
        ['s', nodesOf({ queue: 'q', id: A }, [node(S, { queue: 's' })])],
      ),
      'metrics:enqueued': counted(2),
    },
    hears: [['beat', 'relay']],
  });

  table.it('does not land twice what it has landed, also where that has run and is gone', {
    given: heard('5-1'),
    call: ['r', '0-0', ...land('5-1', node(A))],
    answer: '5-1',
  });

  table.it('tells the parent of a child whose id is taken that it is gone, and leaves its subtree', {
    given: (queue) => queue.dead(A),
    call: ['r', '0-0', ...land('5-1', node(A, { policy: 'ignore' }, [node(B), node(D, { queue: 's' })]), node(C))],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1'),
      pending: zset([C, 0]),
      ...fresh(C, ties),
      outbox: owing({ to: 'r', parent: P, child: A, how: 'gone', policy: 'ignore', text: `the id ${A} is taken` }),
      'metrics:enqueued': counted(2),
    },
    hears: [['beat', 'relay']],
  });

  const taken = `the id ${B} is taken`;
  table.it('fells a parent that lands when the id of its own child is taken, and lands the siblings', {
    given: (queue) => queue.pending(B),
    call: ['r', '0-0', ...land('5-1', node(A, {}, [node(B), node(D)]))],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1'),
      dead: zset([A, 0]),
      pending: zset([B, 0], [D, 0]),
      ...fresh(A, {
        ...ties,
        flow: '1',
        state: 'dead',
        died_of: 'children',
        last_error: `child q|${B}: ${taken}`,
        errors: '0',
        'error:0': `child q|${B}: ${taken}`,
      }),
      ...fresh(D, { parent: A }),
      ...familyKeys('q', A, { children: [B, D], failed: { [B]: taken } }),
      outbox: owing({ to: 'r', parent: P, child: A, how: 'dead', text: `child q|${B}: ${taken}` }),
      'metrics:enqueued': counted(3),
      'metrics:failed': counted(1),
    },
    hears: [
      ['beat', `died:${A}`],
      ['beat', 'relay'],
    ],
  });

  for (const policy of ['ignore', 'continue', 'hold']) {
    table.it(`releases a parent that lands when its only child, under ${policy}, cannot`, {
      given: (queue) => queue.pending(B),
      call: ['r', '0-0', ...land('5-1', node(A, {}, [node(B, { policy })]))],
      answer: '5-1',
      changes: {
        relayed: relayed('5-1'),
        pending: zset([A, 0], [B, 0]),
        ...fresh(A, { ...ties, flow: '1' }),
        ...familyKeys('q', A, { children: [B], unsuccessful: { [B]: taken } }),
        'metrics:enqueued': counted(2),
      },
    });
  }

  table.it('settles at its parent, in the step, a child that the queue owed itself and whose id is taken', {
    given: async (queue) => {
      await queue.pending(A);
      await waiting(queue, P, { children: [A, C] });
    },
    call: ['q', '0-0', '5-1', 'land', nodesOf({ queue: 'q', id: P }, [node(A, { policy: 'ignore' }), node(C)])],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1', 'q'),
      pending: zset([C, 0], [A, 0]),
      ...fresh(C, { parent: P }),
      ...familyChanges(
        'q',
        P,
        { children: [A, C] },
        { children: [A, C], unsuccessful: { [A]: `the id ${A} is taken` } },
      ),
      'metrics:enqueued': counted(3),
    },
  });

  table.it('lands a child, and takes the word that follows on it, in one call', {
    given: async (queue) => {
      await queue.dead(P, { died_of: 'children' });
      await give(queue, P, { children: [`r|${C}`, `r|${S}`], failed: { [C]: 'boom', [S]: 'bang' } });
    },
    call: [
      'r',
      '0-0',
      ...settle('5-1', C, 'back', ''),
      ...land('5-2', node(A)),
      ...settle('5-3', S, 'gone', 'removed'),
    ],
    answer: '5-3',
    changes: {
      relayed: relayed('5-3'),
      dead: gone,
      waiting: zset([P, 0]),
      pending: zset([A, 0]),
      [job(P)]: fields({ state: 'awaiting_children', died_of: undefined, last_error: undefined }),
      ...familyChanges(
        'q',
        P,
        { children: [`r|${C}`, `r|${S}`], failed: { [C]: 'boom', [S]: 'bang' } },
        { children: [`r|${C}`, `r|${S}`], unsuccessful: { [S]: 'removed' } },
      ),
      ...fresh(A, ties),
      'metrics:enqueued': counted(2),
    },
  });

  table.it('lands more than one node under an id only once', {
    call: ['r', '0-0', ...land('5-1', node(A), node(A))],
    answer: '5-1',
    changes: {
      relayed: relayed('5-1'),
      pending: zset([A, 0]),
      ...fresh(A, ties),
      outbox: owing({ to: 'r', parent: P, child: A, how: 'gone', text: `the id ${A} is taken` }),
      'metrics:enqueued': counted(1),
    },
    hears: [['beat', 'relay']],
  });

  // Refusals: nothing of a call is applied.

  const given = async () => {
    await waiting(table.queue, P, { children });
    await table.queue.client.hset(table.queue.keys.relayed, 'r', '5-0');
  };
  const good = settle('5-1', C);
  const positions = [...NOT_NUMBERS, '5', '5-', '-5', '5-x', 'x-5', '5-1-1', ' 5-1', '5-1 ', '+5-1', '5.0-1'];
  table.refuses('refuses positions that are none', given, [
    ...positions.map((position) => ['r', position, ...good]),
    ...positions.map((position) => ['r', '0-0', ...good, ...settle(position, S)]),
  ]);
  table.refuses('refuses calls that do not add up', given, [
    [],
    ['r'],
    ...good.map((_, n) => ['r', '0-0', ...good.slice(0, n)]).slice(1),
    ['r', '0-0', '5-1', 'land'],
    ['r', '0-0', '5-1', 'LAND', 'x'],
    ['r', '0-0', '5-1', 'repair', P, C, 'done', 'fail', 'r'],
    ['r', '0-0', ...good, 'more'],
  ]);
  table.refuses('refuses ends that it does not know', given, [
    ...['', 'DONE', 'completed', 'failed', '1'].map((how) => ['r', '0-0', ...good, ...settle('5-2', S, how as How)]),
  ]);
  const tokens = ['0', '1', A, 'p', '', '0', '0'];
  const listed = (...nodes: (string | Buffer)[]) => ['r', '0-0', ...good, '5-2', 'land', packed(nodes)];
  table.refuses('refuses landings that are no lists of nodes', given, [
    ...['', 'x', Buffer.from([0xc1]), Buffer.from([0xdd, 0, 0, 0, 9]), Buffer.from([0x05])].map((nodes) => {
      return ['r', '0-0', ...good, '5-2', 'land', nodes];
    }),
    listed(),
    listed('0'),
    ...[0, 1, 5, 6].flatMap((place) => each(tokens, place, ['x', '2', '1001']).map((wrong) => listed(...wrong))),
    listed(...tokens, 'more'),
    listed(...tokens.slice(0, 6)),
    listed('0', '1', A, 'p', 'soon', '0', '0'),
    listed('0', '1', A, 'p', '', '1', 'state', 'dead', '0'),
    listed('0', '1', A, 'p', '', '0', '9007199254740991'),
    listed('0', '1', A, 'p', '', '0', '1', '0', '0', '1', `q|${B}`, '1', 'no{queue}', 'nodes'),
    listed('1', '0', A, '0'),
    listed('2', '0', A, 'p', '0'),
    listed('1', '1', 'state', 'dead', A, 'p', '0'),
    // numbers and lists in the place of texts
    ['r', '0-0', ...good, '5-2', 'land', Buffer.from([0x92, 0xa1, 0x31, 0x05])],
    ['r', '0-0', ...good, '5-2', 'land', Buffer.from([0x92, 0xa1, 0x31, 0x90])],
  ]);

  table.refuses('refuses results that are no list of children and texts', given, [
    ...['', 'x', Buffer.from([0xc1]), Buffer.from([0x05]), Buffer.from([0x92, 0xa1, 0x31, 0x05])].map((list) => {
      return ['r', '0-0', ...good, '5-2', 'results', P, list];
    }),
    ['r', '0-0', ...good, ...results('5-2', S)],
    ['r', '0-0', ...good, '5-2', 'results', P],
  ]);

  table.it('does not look into a landing that it has applied', {
    given: heard('5-2', parent),
    call: ['r', '0-0', '5-2', 'land', 'no list', ...settle('5-3', C)],
    answer: '5-3',
    changes: {
      relayed: relayed('5-3'),
      ...familyChanges('q', P, { children }, { children, processed: { [C]: 'r' } }),
    },
  });

  const keys = ['relayed', 'pending', 'waiting', 'dead', 'schedule', 'hungry', 'outbox'];
  table.refusesTypes(['r', '0-0', ...good], [...keys, 'metrics:enqueued', 'metrics:failed']);

  it('is the same whoever relays, and however the entries are cut into calls', async () => {
    const { queue } = table;
    const entries = [
      settle('5-1', C, 'dead', 'boom'),
      settle('5-2', S),
      settle('5-3', C, 'back', ''),
      land('5-4', node(B)),
      settle('5-5', C, 'done', 'late'),
      settle('6-0', A, 'gone', 'removed', 'continue'),
    ];
    const whole = async (cuts: readonly (readonly [from: number, to: number])[]) => {
      await table.server.flush();
      await waiting(queue, P, { children });
      for (const [first, end] of cuts) await queue.run('apply', ['r', '0-0', ...entries.slice(first, end).flat()]);
      return queue.dump();
    };
    const once = await whole([[0, 6]]);
    expect(once).toMatchObject({ relayed: relayed('6-0'), pending: zset([B, 0], [P, 0]) });
    expect(await whole([0, 1, 2, 3, 4, 5].map((n) => [n, n + 1] as const))).toEqual(once);
    expect(
      await whole([
        [0, 3],
        [0, 3],
        [1, 5],
        [3, 6],
        [0, 6],
      ]),
    ).toEqual(once);
  });
});
