import { expect, it } from '@jest/globals';
import { counted, fields, gone, job, zset } from './changes.js';
import { type Family, give, moved, owing, waiting } from './family.js';
import { C, P, S } from './flows/arrivals.js';
import { fansIn, tiesTo } from './flows/fan-in.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { ENDED, HOLDERS, STRANGERS } from './settled.js';
import { describeTransition } from './state-table.js';
import { more, node } from './tree.js';

const WAITS = { state: 'awaiting_children', uncharged: '1' };
const CANCELLED = { state: 'dead', last_error: 'cancelled', errors: '1', 'error:1': 'cancelled' };

describeTransition('wait', (table) => {
  const some: Family = { children: [C, S], processed: { [C]: 'r' } };
  const all: Family = { ...some, unsuccessful: { [S]: 'boom' } };
  const running =
    (family: Family, more = {}) =>
    async (queue: Hand) => {
      await queue.active(P, { priority: 3, ...more });
      await give(queue, P, family);
    };

  for (const { held, epoch, token } of HOLDERS) {
    table.it(`puts a parent back to wait for its children, uncharged, for the holder of a claim made ${held}`, {
      given: running(some, { lease_epoch: epoch }),
      call: [P, token],
      answer: [1],
      changes: { ...moved({ [P]: ['active', FAR] }, { [P]: ['waiting', 0] }), [job(P)]: fields(WAITS) },
    });
  }

  table.it('takes a parent that lapsed and was requeued out of pending, for its holder', {
    given: async (queue) => {
      await queue.lapsed(P, { uncharged: 4 });
      await give(queue, P, some);
    },
    call: [P, 1],
    answer: [1],
    changes: {
      ...moved({ [P]: ['pending', 0] }, { [P]: ['waiting', 0] }),
      [job(P)]: fields({ ...WAITS, uncharged: '5', lapsed: undefined }),
    },
  });

  table.it('puts a parent whose lease is over but not reaped back to wait', {
    given: async (queue) => {
      await queue.active(P, {}, PAST);
      await give(queue, P, some);
    },
    call: [P, 1],
    answer: [1],
    changes: { active: gone, waiting: zset([P, 0]), [job(P)]: fields(WAITS) },
  });

  table.it('puts a parent for which nothing is outstanding back to pending, and wakes somebody', {
    given: async (queue) => {
      await running(all)(queue);
      await queue.hungry('p1');
    },
    call: [P, 1],
    answer: [1],
    changes: {
      ...moved({ [P]: ['active', FAR] }, { [P]: ['pending', 3] }),
      [job(P)]: fields({ ...WAITS, state: 'pending' }),
      hungry: gone,
    },
    hears: [['w:p1', '']],
  });

  table.it('puts a job without children back to pending', {
    given: (queue) => queue.active(P),
    call: [P, 1],
    answer: [1],
    changes: {
      ...moved({ [P]: ['active', FAR] }, { [P]: ['pending', 0] }),
      [job(P)]: fields({ ...WAITS, state: 'pending' }),
    },
  });

  table.it('waits for a child that is held dead, as for any that has not settled', {
    given: async (queue) => {
      await queue.dead(C, tiesTo('hold'));
      await running({ children: [C] })(queue);
    },
    call: [P, 1],
    answer: [1],
    changes: { ...moved({ [P]: ['active', FAR] }, { [P]: ['waiting', 0] }), [job(P)]: fields(WAITS) },
  });

  fansIn(table, {
    what: 'a wait of what was asked to stop',
    how: 'dead',
    text: 'cancelled',
    child: (queue, ties) => queue.active(C, { cancel: 1, ...ties }),
    call: [C, 1],
    answer: [1],
    places: [
      ['active', FAR],
      ['dead', 0],
    ],
    changes: { [job(C)]: fields(CANCELLED) },
    counts: { failed: 1 },
    policies: ['fail'],
  });

  table.it('buries a parent that was asked to stop, which has died of itself, and owes word of it', {
    given: async (queue) => {
      await queue.active(P, { cancel: 1, parent: id(20), parent_queue: 'r', parent_policy: 'ignore', awaited: 1 });
      await give(queue, P, some);
    },
    call: [P, 1],
    answer: [1],
    changes: {
      ...moved({ [P]: ['active', FAR] }, { [P]: ['dead', 0] }),
      [job(P)]: fields({ ...CANCELLED, died_of: 'self' }),
      outbox: owing({ to: 'r', parent: id(20), child: P, how: 'dead', policy: 'ignore', text: 'cancelled' }),
      'metrics:failed': counted(1),
    },
    hears: [
      ['settled', P],
      ['beat', 'relay'],
    ],
  });

  for (const { held, epoch, token } of STRANGERS) {
    table.it(`answers stale to ${held}`, {
      given: running(some, { lease_epoch: epoch }),
      call: [P, token],
      answer: [-1],
    });
  }

  for (const [state, given] of ENDED) {
    table.it(`answers stale for a job that ${state}`, {
      given: (queue) => given(queue, P),
      call: [P, 1],
      answer: [-1],
    });
  }

  table.it('answers stale to a second wait under the same claim', {
    given: (queue) => waiting(queue, P, some, { attempts: 1, lease_epoch: '-', uncharged: 1 }),
    call: [P, 1],
    answer: [-1],
  });

  table.it('answers gone where there is no row, or a key of another type, and settles the rest', {
    given: async (queue) => {
      await running(some)(queue);
      await queue.client.set(queue.keys.row(C), 'x');
    },
    call: [C, 1, S, 1, P, 1],
    answer: [0, 0, 1],
    changes: { ...moved({ [P]: ['active', FAR] }, { [P]: ['waiting', 0] }), [job(P)]: fields(WAITS) },
    reachable: false,
  });

  const given = running(some);
  table.refuses('refuses calls that do not add up', () => given(table.queue), [[], [P], [P, '1', C]]);
  const keys = ['active', 'pending', 'waiting', 'dead', 'hungry', 'outbox', 'metrics:failed'];
  table.refusesTypes([P, 1], keys);

  it('is released once for each wait, also by children that a running parent was given', async () => {
    const { queue } = table;
    await waiting(queue, P, { children: [C] });
    await queue.active(C, { parent: P });
    await queue.run('complete', [0, C, 1, 0, 'c']);
    await queue.run('claim', [30_000, 1]);
    expect(await queue.run('land', more(P, 1, [node(id(3)), node(id(4))]))).toBe(1);
    expect(await queue.run('wait', [P, 1])).toEqual([1]);
    for (const [n, child] of [id(3), id(4)].entries()) {
      expect(await queue.client.hget(queue.keys.row(P), 'state')).toBe('awaiting_children');
      await queue.run('claim', [30_000, 1]);
      expect(await queue.run('complete', [0, child, 1, 0, `r${n}`])).toEqual([1]);
    }
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual([P]);
    const [claimed] = [await queue.run('claim', [30_000, 1, 'f00d.x', 'p1'])] as [Buffer[]];
    expect(claimed.map(String)).toEqual([P, 'p', '2', '1']);
    expect(await queue.client.hgetall(`${queue.keys.row(P)}:processed`)).toEqual({
      [C]: 'c',
      [id(3)]: 'r0',
      [id(4)]: 'r1',
    });
  });
});
