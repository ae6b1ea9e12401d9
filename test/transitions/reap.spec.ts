import { expect, it } from '@jest/globals';
import { counted, fields, gone, job, zset } from './changes.js';
import { FAR, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs, msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const THIS = 'f00d.x9';
const requeued = (stalls: number, attempts = 1) =>
  fields({ state: 'pending', stalls: String(stalls), lapsed: String(attempts) });
const buried = (text: string, attempts = '1') => ({
  state: 'dead',
  last_error: text,
  errors: attempts,
  [`error:${attempts}`]: text,
});

describeTransition('reap', (table) => {
  table.it('does nothing on an empty queue', { call: [1000, 2, THIS, 1], answer: [0, 0, -1, -1] });

  table.it('leaves leases that hold, and says when the next one ends', {
    given: (queue) => queue.active(A, {}, FAR),
    call: [1000, 2, '', 1],
    answer: [0, 0, FAR, msUntil(FAR)],
  });

  table.it('requeues lapsed jobs at their own priority, counted, and open to their holder', {
    given: async (queue) => {
      await queue.active(A, { priority: 3 }, PAST);
      await queue.active(B, { attempts: 4, stalls: 1, lapsed: 2, priority: -3 }, PAST);
      await queue.active(C, {}, FAR);
    },
    call: [1000, 2, '', 0],
    answer: [2, 0, FAR, msUntil(FAR)],
    changes: {
      active: zset([C, FAR]),
      pending: zset([B, -3], [A, 3]),
      [job(A)]: requeued(1),
      [job(B)]: requeued(2, 4),
      'metrics:stalled': counted(2),
    },
  });

  table.it('buries a job that has lapsed more often than the sweep allows', {
    given: (queue) => queue.active(A, { attempts: 3, stalls: 2, lapsed: 2 }, PAST),
    call: [1000, 2, '', 0],
    answer: [0, 1, -1, -1, A],
    changes: {
      active: gone,
      dead: zset([A, 0]),
      [job(A)]: fields({ ...buried('lease lapsed 3 times', '3'), stalls: '3', lapsed: undefined }),
      'metrics:stalled': counted(1),
      'metrics:failed': counted(1),
    },
  });

  table.it('buries at the first lapse where none is allowed', {
    given: (queue) => queue.active(A, {}, PAST),
    call: [1000, 0, '', 0],
    answer: [0, 1, -1, -1, A],
    changes: {
      active: gone,
      dead: zset([A, 0]),
      [job(A)]: fields({ ...buried('lease lapsed 1 times'), stalls: '1' }),
      'metrics:stalled': counted(1),
      'metrics:failed': counted(1),
    },
  });

  table.it("heeds a job's own limit before the sweep's", {
    given: async (queue) => {
      await queue.active(A, { max_stalls: 0 }, PAST);
      await queue.active(B, { max_stalls: 9, stalls: 8 }, PAST);
    },
    call: [1000, 2, '', 0],
    answer: [1, 1, -1, -1, A],
    changes: {
      active: gone,
      dead: zset([A, 0]),
      pending: zset([B, 0]),
      [job(A)]: fields({ ...buried('lease lapsed 1 times'), stalls: '1' }),
      [job(B)]: requeued(9),
      'metrics:stalled': counted(2),
      'metrics:failed': counted(1),
    },
  });

  table.it('buries a job that was asked to stop as cancelled, not as stalled', {
    given: (queue) => queue.active(A, { cancel: 1 }, PAST),
    call: [1000, 2, '', 0],
    answer: [0, 1, -1, -1, A],
    changes: {
      active: gone,
      dead: zset([A, 0]),
      [job(A)]: fields(buried('cancelled')),
      'metrics:failed': counted(1),
    },
  });

  table.it('does not count a lease from before a restart of the server', {
    given: (queue) => queue.active(A, { lease_epoch: 'beef.x1', stalls: 2, uncharged: 4, priority: 5 }, PAST),
    call: [1000, 2, THIS, 0],
    answer: [1, 0, -1, -1],
    changes: {
      active: gone,
      pending: zset([A, 5]),
      [job(A)]: fields({ state: 'pending', lapsed: '1', uncharged: '5', lease_epoch: '-' }),
    },
  });

  table.it('does not count a native claim from before a restart either', {
    given: (queue) => queue.active(A, { lease_epoch: 'beef' }, PAST),
    call: [1000, 2, THIS, 0],
    answer: [1, 0, -1, -1],
    changes: {
      active: gone,
      pending: zset([A, 0]),
      [job(A)]: fields({ state: 'pending', lapsed: '1', uncharged: '1', lease_epoch: '-' }),
    },
  });

  const current: [title: string, held: string, sweep: string][] = [
    ['of this run, by another connection', 'f00d.x1', THIS],
    ['of this run, natively', 'f00d', THIS],
    ['without an epoch', '-', THIS],
    ['by a connection that did not know the run', '-.x1', THIS],
    ['in an unknown run, when the sweep knows none', 'beef.x1', ''],
    ['in an unknown run, when the sweep has a bare dash', 'beef.x1', '-'],
    ['in an unknown run, when the sweep knows only its connection', 'beef.x1', '-.x9'],
  ];
  for (const [title, held, sweep] of current) {
    table.it(`counts a lapse of a claim made ${title}`, {
      given: (queue) => queue.active(A, { lease_epoch: held }, PAST),
      call: [1000, 2, sweep, 0],
      answer: [1, 0, -1, -1],
      changes: { active: gone, pending: zset([A, 0]), [job(A)]: requeued(1), 'metrics:stalled': counted(1) },
    });
  }

  table.it('buries a job that was asked to stop before the server restarted', {
    given: (queue) => queue.active(A, { cancel: 1, lease_epoch: 'beef.x1' }, PAST),
    call: [1000, 2, THIS, 0],
    answer: [0, 1, -1, -1, A],
    changes: { active: gone, dead: zset([A, 0]), [job(A)]: fields(buried('cancelled')), 'metrics:failed': counted(1) },
  });

  table.it('takes the longest lapsed first, no more than its limit, and says that more have', {
    given: async (queue) => {
      await queue.active(A, {}, PAST + 1);
      await queue.active(B, {}, PAST);
    },
    call: [1, 2, '', 0],
    answer: [1, 0, PAST + 1, 0],
    changes: {
      active: zset([A, PAST + 1]),
      pending: zset([B, 0]),
      [job(B)]: requeued(1),
      'metrics:stalled': counted(1),
    },
  });

  table.it('drops an id that has no row, or a key of another type in its place', {
    given: async (queue) => {
      await queue.ghost('active', A, PAST);
      await queue.ghost('active', B, PAST);
      await queue.client.set(queue.keys.row(B), 'x');
      await queue.ghost('active', C, FAR);
      await queue.hungry('p1');
    },
    call: [1000, 2, THIS, 1],
    answer: [0, 0, FAR, msUntil(FAR)],
    changes: { active: zset([C, FAR]) },
    reachable: false,
  });

  for (const record of [1, 1000]) {
    table.it(`records deaths, and only them, where recording is on (${record})`, {
      given: async (queue) => {
        await queue.active(A, { attempts: 3, stalls: 2 }, PAST);
        await queue.active(B, { cancel: 1 }, PAST);
        await queue.active(C, {}, PAST);
      },
      call: [1000, 2, '', record],
      answer: [1, 2, -1, -1, A, B],
      changes: {
        active: gone,
        dead: zset([A, 0], [B, 0]),
        pending: zset([C, 0]),
        [job(A)]: fields({ ...buried('lease lapsed 3 times', '3'), stalls: '3' }),
        [job(B)]: fields(buried('cancelled')),
        [job(C)]: requeued(1),
        'metrics:stalled': counted(2),
        'metrics:failed': counted(2),
        'stream:completions': {
          stream: [
            [expect.any(String), { id: A, outcome: 'dead', attempts: '3', at: inMs(0), error: 'lease lapsed 3 times' }],
            [expect.any(String), { id: B, outcome: 'dead', attempts: '1', at: inMs(0), error: 'cancelled' }],
          ],
        },
      },
    });
  }

  table.it('wakes one hungry process when the queue was empty', {
    given: async (queue) => {
      await queue.active(A, {}, PAST);
      await queue.hungry('crashed', 'p1', 'p2');
    },
    listening: ['p1', 'p2'],
    call: [1000, 2, '', 0],
    answer: [1, 0, -1, -1],
    changes: {
      active: gone,
      pending: zset([A, 0]),
      hungry: zset(['p2', 3]),
      [job(A)]: requeued(1),
      'metrics:stalled': counted(1),
    },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody when the queue was not empty', {
    given: async (queue) => {
      await queue.active(A, {}, PAST);
      await queue.pending(B);
      await queue.hungry('p1');
    },
    call: [1000, 2, '', 0],
    answer: [1, 0, -1, -1],
    changes: {
      active: gone,
      pending: zset([A, 0], [B, 0]),
      [job(A)]: requeued(1),
      'metrics:stalled': counted(1),
    },
  });

  table.it('reaps on a paused queue, and wakes nobody', {
    given: async (queue) => {
      await queue.active(A, {}, PAST);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [1000, 2, '', 0],
    answer: [1, 0, -1, -1],
    changes: { active: gone, pending: zset([A, 0]), [job(A)]: requeued(1), 'metrics:stalled': counted(1) },
  });

  const given = () => table.queue.active(A, {}, PAST);
  const good = ['5', '2', THIS, '0'];
  table.refuses('refuses numbers that are not canonical, or out of bounds', given, [
    ...each(good, 0, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
    ...each(good, 1, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
    ...each(good, 3, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
  ]);
  table.refuses('refuses calls that do not add up', given, [[], ['5'], ['5', '2'], ['5', '2', THIS]]);
  const types = ['active', 'pending', 'dead', 'hungry', 'metrics:failed', 'metrics:stalled', 'stream:completions'];
  table.refusesTypes([1000, 0, '', 1], types, given);

  it('needs no stream where recording is off', async () => {
    const { queue } = table;
    await queue.active(A, {}, PAST);
    await queue.client.set(`${queue.keys.base}stream:completions`, 'x');
    expect(await queue.run('reap', [1000, 0, '', 0])).toEqual([0, 1, -1, -1, Buffer.from(A)]);
  });

  it('gives the exemption of a restart exactly once', async () => {
    const { queue } = table;
    const { active } = queue.keys;
    await queue.run('enqueue', [A, 'p', '', 0]);
    await queue.run('claim', [1, 1, 'beef.x1']);
    await queue.client.zadd(active, PAST, A);
    expect(await queue.run('reap', [1000, 0, THIS, 0])).toEqual([1, 0, -1, -1]);
    await queue.run('claim', [1, 1]);
    await queue.client.zadd(active, PAST, A);
    expect(await queue.run('reap', [1000, 0, THIS, 0])).toEqual([0, 1, -1, -1, Buffer.from(A)]);
    expect(await queue.client.hget(queue.keys.row(A), 'last_error')).toBe('lease lapsed 1 times');
  });

  it('reaps 1,500 leases in two calls, every one once', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.active(jobId, {}, PAST)));
    expect(await queue.run('reap', [1000, 2, '', 0])).toEqual([1000, 0, PAST, 0]);
    expect(await queue.run('reap', [1000, 2, '', 0])).toEqual([500, 0, -1, -1]);
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual(ids);
    expect((await queue.dump())['metrics:stalled']).toEqual(counted(1_500));
  });
});
