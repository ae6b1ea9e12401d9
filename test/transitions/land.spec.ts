import { expect, it } from '@jest/globals';
import type { Arg } from '../../lib/wire/reply.js';
import { counted, fields, gone, job, zset } from './changes.js';
import { familyChanges, familyKeys, give } from './family.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs } from './server-time.js';
import { ENDED, HOLDERS, STRANGERS } from './settled.js';
import { describeTransition } from './state-table.js';
import { fresh, landing, more, node, nodesOf, splitTree, tree, treeJob } from './tree.js';

const [R, A, B, C, D] = [id(50), id(1), id(2), id(3), id(4)];
const WAITS = { state: 'awaiting_children', flow: '1' };

describeTransition('land', (table) => {
  table.it('lands a root without children as an ordinary job', {
    given: (queue) => queue.hungry('p1'),
    call: tree(node(R, { priority: 5 })),
    answer: 1,
    changes: { ...fresh(R, { priority: '5' }), pending: zset([R, 5]), hungry: gone, 'metrics:enqueued': counted(1) },
    hears: [['w:p1', '']],
  });

  table.it('lands it for a later time, and says no priority where that is 0', {
    call: tree(node(R, { delay: '5000', priority: 0 })),
    answer: 1,
    changes: { ...fresh(R, { state: 'scheduled' }), schedule: zset([R, inMs(5000)]), 'metrics:enqueued': counted(1) },
    hears: [['beat', '5000']],
  });

  table.it('lands a parent that waits, and its children, each at its own priority; one process is woken', {
    given: (queue) => queue.hungry('p1', 'p2'),
    listening: ['p1', 'p2'],
    call: tree(node(R, { priority: 5 }, [node(A), node(B, { priority: -1, policy: 'ignore', payload: 'b' })])),
    answer: 1,
    changes: {
      waiting: zset([R, 0]),
      pending: zset([B, -1], [A, 0]),
      hungry: zset(['p2', 2]),
      ...fresh(R, { ...WAITS, priority: '5' }),
      ...fresh(A, { parent: R }),
      ...fresh(B, { parent: R, parent_policy: 'ignore', priority: '-1', payload: 'b' }),
      ...familyKeys('q', R, { children: [A, B] }),
      'metrics:enqueued': counted(3),
    },
    hears: [['w:p1', '']],
  });

  table.it('lands three levels, and children for later times; the earliest is announced once', {
    given: (queue) => queue.scheduled(id(60), {}, FAR),
    call: tree(
      node(R, {}, [
        node(A, {}, [node(B, { delay: '9000' }), node(C, { delay: `@${PAST}` })]),
        node(D, { delay: '5000' }),
      ]),
    ),
    answer: 1,
    changes: {
      waiting: zset([A, 0], [R, 0]),
      pending: zset([C, 0]),
      schedule: zset([D, inMs(5000)], [B, inMs(9000)], [id(60), FAR]),
      ...fresh(R, WAITS),
      ...fresh(A, { ...WAITS, parent: R }),
      ...fresh(B, { state: 'scheduled', parent: A }),
      ...fresh(C, { parent: A }),
      ...fresh(D, { state: 'scheduled', parent: R }),
      ...familyKeys('q', R, { children: [A, D] }),
      ...familyKeys('q', A, { children: [B, C] }),
      'metrics:enqueued': counted(6),
    },
    hears: [['beat', '5000']],
  });

  const far = node(B, { queue: 'r', policy: 'hold' }, [node(C, {}), node(D, { queue: 'r' })]);
  table.it('owes a child in another queue with its whole subtree, in the order of the queues', {
    call: tree(node(R, {}, [node(id(5), { queue: 's' }), node(A), far, node(id(6), { queue: 's' })])),
    answer: 1,
    changes: {
      waiting: zset([R, 0]),
      pending: zset([A, 0]),
      ...fresh(R, WAITS),
      ...fresh(A, { parent: R }),
      ...familyKeys('q', R, { children: [`s|${id(5)}`, A, `r|${B}`, `s|${id(6)}`] }),
      outbox: landing(
        ['s', nodesOf({ queue: 'q', id: R }, [node(id(5), { queue: 's' }), node(id(6), { queue: 's' })])],
        ['r', nodesOf({ queue: 'q', id: R }, [far])],
      ),
      'metrics:enqueued': counted(2),
    },
    hears: [['beat', 'relay']],
  });

  table.it('wakes nobody in a paused queue, nor behind other jobs', {
    given: async (queue) => {
      await queue.pending(id(60));
      await queue.hungry('p1');
    },
    call: tree(node(R, {}, [node(A)])),
    answer: 1,
    changes: {
      waiting: zset([R, 0]),
      pending: zset([A, 0], [id(60), 0]),
      ...fresh(R, WAITS),
      ...fresh(A, { parent: R }),
      ...familyKeys('q', R, { children: [A] }),
      'metrics:enqueued': counted(3),
    },
  });

  table.it('starts from nothing where a parent deleted by hand has left its records', {
    given: async (queue) => {
      const row = queue.keys.row(R);
      await queue.client.set(`${row}:children`, 'x');
      await queue.client.hset(`${row}:processed`, A, 'old');
      await queue.client.hset(`${row}:failed`, A, 'old');
    },
    call: tree(node(R, {}, [node(A)])),
    answer: 1,
    changes: {
      waiting: zset([R, 0]),
      pending: zset([A, 0]),
      ...fresh(R, WAITS),
      ...fresh(A, { parent: R }),
      [`${job(R)}:processed`]: gone,
      [`${job(R)}:failed`]: gone,
      ...familyKeys('q', R, { children: [A] }),
      'metrics:enqueued': counted(2),
    },
  });

  const there: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['pending', (queue) => queue.pending(R)],
    ['running', (queue) => queue.active(R)],
    ['dead', (queue) => queue.dead(R)],
    ['kept', (queue) => queue.done(R)],
  ];
  for (const [state, given] of there) {
    table.it(`changes nothing where the root is ${state} already`, {
      given,
      call: tree(node(R, {}, [node(A), node(B, { queue: 'r' })])),
      answer: 0,
    });
  }

  table.it('changes nothing where a key of another type stands in the place of the root', {
    given: (queue) => queue.client.set(queue.keys.row(R), 'x'),
    call: tree(node(R, {}, [node(A)])),
    answer: 0,
    reachable: false,
  });

  const refusal = (saying: string) => ({ code: 'EMQSTATE', message: expect.stringContaining(saying) });
  table.it('refuses the whole tree when an id is taken', {
    given: (queue) => queue.done(C),
    call: tree(node(R, {}, [node(A), node(B, {}, [node(C)])])),
    answer: refusal(`${C} is taken`),
  });

  table.it('refuses the whole tree when an id that it owes to its own queue is taken', {
    given: (queue) => queue.dead(C),
    call: ['', '', ...splitTree(treeJob(node(R, {}, [node(A), node(C)])), ({ id: child }) => child !== C)],
    answer: refusal(`${C} is taken`),
  });

  const minted = (n: number) => node(id(100 + n), { queue: 'r', fresh: true });
  const many = Array.from({ length: 60 }, (_, n) => minted(n));
  table.it('looks at the last of many ids that were minted for the call: they may have landed with it before', {
    given: async (queue) => {
      await queue.active(R);
      await give(queue, R, { children: many.map((child) => `r|${child.id}`) });
    },
    call: more(R, 1, many),
    answer: 1,
  });

  table.it('refuses the whole tree when one that was minted for it has landed, and its root has run', {
    given: (queue) => queue.dead(C),
    call: ['', '', ...splitTree(treeJob(node(R, {}, [node(A), node(C, { fresh: true })])), (child) => !child.fresh)],
    answer: refusal(`${C} is taken`),
  });

  table.it('refuses an id that stands twice', {
    call: tree(node(R, {}, [node(A), node(B, {}, [node(A)])])),
    answer: refusal(`twice in the tree: ${A}`),
  });

  table.it('refuses an id that stands twice, in two queues', {
    call: tree(node(R, {}, [node(A, { queue: 'r' }), node(A, { queue: 's' })])),
    answer: refusal(`twice in the tree: ${A}`),
  });

  table.it('refuses a root that is its own descendant', {
    call: tree(node(R, {}, [node(A, {}, [node(R)])])),
    answer: refusal('its own descendant'),
  });

  // More children of a parent that runs.

  for (const { held, epoch, token } of HOLDERS) {
    table.it(`gives children to a running job, for the holder of a claim made ${held}`, {
      given: (queue) => queue.active(R, { lease_epoch: epoch }),
      call: more(R, token, [node(A), node(B, { queue: 'r', policy: 'continue' })]),
      answer: 1,
      changes: {
        pending: zset([A, 0]),
        [job(R)]: fields({ flow: '1' }),
        ...fresh(A, { parent: R }),
        ...familyKeys('q', R, { children: [A, `r|${B}`] }),
        outbox: landing(['r', nodesOf({ queue: 'q', id: R }, [node(B, { queue: 'r', policy: 'continue' })])]),
        'metrics:enqueued': counted(2),
      },
      hears: [['beat', 'relay']],
    });

    table.it(`gives children to a job that lapsed and was requeued, for the holder of a claim made ${held}`, {
      given: (queue) => queue.lapsed(R, { lease_epoch: epoch }),
      call: more(R, token, [node(A)]),
      answer: 1,
      changes: {
        pending: zset([A, 0], [R, 0]),
        [job(R)]: fields({ flow: '1' }),
        ...fresh(A, { parent: R }),
        ...familyKeys('q', R, { children: [A] }),
        'metrics:enqueued': counted(2),
      },
    });
  }

  for (const { held, epoch, token } of STRANGERS) {
    table.it(`answers stale to ${held}`, {
      given: (queue) => queue.active(R, { lease_epoch: epoch }),
      call: more(R, token, [node(A)]),
      answer: -1,
    });
  }

  for (const [state, given] of ENDED) {
    table.it(`answers stale for a parent that ${state}`, {
      given: (queue) => given(queue, R),
      call: more(R, 1, [node(A)]),
      answer: -1,
    });
  }

  table.it('answers stale for a parent that waits', {
    given: async (queue) => {
      await queue.waiting(R, { attempts: 1, lease_epoch: '-' });
      await give(queue, R, { children: [B] });
    },
    call: more(R, 1, [node(A)]),
    answer: -1,
  });

  table.it('answers gone for a parent that is gone, or a key of another type', {
    given: (queue) => queue.client.set(queue.keys.row(R), 'x'),
    call: more(R, 1, [node(A)]),
    answer: 0,
    reachable: false,
  });

  const family = { children: [A, B], processed: { [A]: 'r' } };
  const parent = async (queue: Hand) => {
    await queue.active(R);
    await give(queue, R, family);
  };
  table.it('adds to the children a running parent has', {
    given: parent,
    call: more(R, 1, [node(C, {}, [node(D)])]),
    answer: 1,
    changes: {
      waiting: zset([C, 0]),
      pending: zset([D, 0]),
      ...fresh(C, { ...WAITS, parent: R }),
      ...fresh(D, { parent: C }),
      ...familyChanges('q', R, family, { ...family, children: [A, B, C] }),
      ...familyKeys('q', C, { children: [D] }),
      'metrics:enqueued': counted(3),
    },
  });

  table.it('lands the same children once, however often the call is sent', {
    given: async (queue) => {
      await queue.active(R);
      await queue.pending(A, { parent: R });
      await give(queue, R, { children: [A, `r|${B}`] });
    },
    call: more(R, 1, [node(A), node(B, { queue: 'r' })]),
    answer: 1,
  });

  table.it('owes children in another queue once, however often the call is sent', {
    given: async (queue) => {
      await queue.active(R);
      await give(queue, R, { children: [`r|${A}`, `r|${B}`], processed: { [A]: 'r' } });
    },
    call: more(R, 1, [node(A, { queue: 'r' }), node(B, { queue: 'r' })]),
    answer: 1,
  });

  table.it('refuses children of which the parent has some already', {
    given: parent,
    call: more(R, 1, [node(B), node(C)]),
    answer: refusal('children of this parent already'),
  });

  table.it('refuses children whose id is taken', {
    given: async (queue) => {
      await parent(queue);
      await queue.dead(C);
    },
    call: more(R, 1, [node(C)]),
    answer: refusal(`${C} is taken`),
  });

  table.it('refuses a parent as its own descendant', {
    given: parent,
    call: more(R, 1, [node(C, {}, [node(R)])]),
    answer: refusal('its own descendant'),
  });

  table.it('gives no children, and does not make a parent of the job', {
    given: (queue) => queue.active(R),
    call: [R, 1, 0],
    answer: 1,
  });

  for (const record of ['children', 'processed', 'unsuccessful', 'failed']) {
    table.it(`refuses a parent whose ${record} hold another type`, {
      given: async (queue) => {
        await queue.active(R);
        await queue.client.rpush(`${queue.keys.row(R)}:${record}`, 'x');
      },
      call: more(R, 1, [node(A)]),
      answer: { code: 'EMQTYPE', message: expect.stringContaining(`job:${R}:${record} holds a list`) },
      reachable: false,
    });
  }

  const given = () => table.queue.active(D);
  const plain = ['', '', R, 'p', '', '0', '0'];
  // One node with a delay, and so a node of its own; two that are alike; one that is owed.
  const single = [A, 'p', '5', '1', 'parent', R, '0'];
  const one = ['', '', R, 'p', '', '0', '1', '0', '1', '0', `q|${A}`, ...single, '0'];
  const alike = ['', '', R, 'p', '', '0', '2', '2', '1', 'parent', R, A, 'p', B, 'p', '0', '0', '0'];
  const owed = ['', '', R, 'p', '', '0', '1', '0', '0', '1', `r|${A}`, '1', 'r', 'nodes'];
  const ids = ['', 'JOB', 'job00000000001', 'JOB0000000001', 'JOB000000000001', 'JOB0000000000-', 'JOB0000000000\0'];
  table.refuses('refuses what is no minted id', given, [
    ...each(plain, 2, ids),
    ...each(one, 11, ids),
    ...[11, 13].flatMap((place) => each(alike, place, ids)),
  ]);
  table.refuses('refuses numbers that are not canonical', given, [
    ...each(
      plain,
      4,
      [...NOT_NUMBERS, ...TOO_LARGE, '-1', '@', '@-1', '@x'].filter((text) => text !== ''),
    ),
    ...[5, 6].flatMap((place) => each(plain, place, [...NOT_NUMBERS, ...TOO_LARGE, '-1', '9007199254740991'])),
    ...[6, 7, 8, 9, 14, 17, 18].flatMap((place) =>
      each(one, place, [...NOT_NUMBERS, ...TOO_LARGE, '-1', '9007199254740991']),
    ),
    ...[6, 7, 8, 15, 16, 17]
      .flatMap((place) => each(alike, place, [...NOT_NUMBERS, ...TOO_LARGE, '-1', '9007199254740991', '1', '1001']))
      .filter((call) => String(call) !== String(alike)),
    ...[6, 9, 11].flatMap((place) => each(owed, place, ['2', ...TOO_LARGE])),
  ]);
  table.refuses('refuses calls that do not add up, cut off anywhere', given, [
    ...[one, alike, owed].flatMap((call) => [...call.map((_, n) => call.slice(0, n)), [...call, 'more']]),
    [...plain, '0'],
    [D, '1'],
    [D, '1', '1', '0', '0', '1', `q|${A}`],
    [D, '1', '0', '0'],
  ]);
  table.refuses('refuses fields that a client may not set, and values that are no numbers', given, [
    ...['state', 'attempts', 'flow', 'awaited', 'cancel', 'removing', 'dedup', ''].map((name) => {
      return ['', '', R, 'p', '', '1', name, '1', '0'];
    }),
    ...each(alike, 9, ['state', 'flow', 'dedup', '']),
    ...each(['', '', R, 'p', '', '1', 'priority', '1', '0'], 7, [...NOT_NUMBERS, ...TOO_LARGE]),
    ...each(['', '', R, 'p', '', '1', 'max_stalls', '1', '0'], 7, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
    ['', '', R, 'p', '', '9', ...Array.from({ length: 9 }, () => ['parent', R]).flat(), '0'],
  ]);
  table.refuses('refuses members that are no children, and nodes that are no members', given, [
    ...each(one, 10, ['', A, `|${A}x`, 'q', `q${A}`, `q|${B}`, `r|${A}`]),
    ...each(owed, 10, ['', A, `|${A}x`, 'q', `q${A}`]),
    ['', '', R, 'p', '', '0', '1', '0', '2', '0', `q|${A}`, ...single, ...single, '0'],
  ]);
  table.refuses('refuses to owe anything to what is no queue', given, [
    ...each(owed, 12, ['', 'a{b', 'a}', 'a\nb', 'x'.repeat(201)]),
  ]);

  const thousand: Arg[] = Array.from({ length: 1000 }, (_, n) => [id(100 + n), 'p']).flat();
  table.refuses('refuses more than 1,000 jobs at once', given, [
    ['', '', R, 'p', '', 0, 1000, 1000, 0, ...thousand, 0, 0, 0],
    ['', '', R, 'p', '', 0, 1001, 1001, 0, ...thousand, A, 'p', 0, 0, 0],
  ]);

  const keys = ['waiting', 'pending', 'schedule', 'dead', 'hungry', 'metrics:enqueued', 'outbox'];
  table.refusesTypes(tree(node(R, {}, [node(A)])), keys);

  it('lands 1,800 children in steps: what is over 250 jobs is owed to the queue itself, 500 at a time', async () => {
    const { queue } = table;
    const children = Array.from({ length: 1_800 }, (_, n) => node(id(100 + n)));
    expect(await queue.run('land', tree(node(R, {}, children)))).toBe(1);
    expect(await queue.client.zcard(queue.keys.pending)).toBe(249);
    expect(await queue.client.get(`${queue.keys.row(R)}:dependencies`)).toBe('1800');
    const entries = await queue.client.xrangeBuffer(queue.keys.outbox, '-', '+');
    expect(entries).toHaveLength(4);
    for (const [n, [entry, [, to, , kind, , nodes]]] of entries.entries()) {
      expect([String(to), String(kind)]).toEqual(['q', 'land']);
      await queue.run('apply', ['q', n === 0 ? '0-0' : entries[n - 1]![0], entry, 'land', nodes!]);
      expect(await queue.client.zcard(queue.keys.pending)).toBe([749, 1_249, 1_749, 1_800][n]);
    }
    expect(await queue.client.scard(`${queue.keys.row(R)}:children`)).toBe(1_800);
    expect((await queue.dump())['metrics:enqueued']).toEqual(counted(1_801));
  });
});
