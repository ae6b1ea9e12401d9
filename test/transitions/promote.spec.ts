import { expect, it } from '@jest/globals';
import { fields, gone, job, zset } from './changes.js';
import { FAR, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { usUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const PENDING = fields({ state: 'pending' });

describeTransition('promote', (table) => {
  table.it('does nothing on an empty queue', { call: [1000], answer: [0, -1, -1] });

  table.it('says when the next job is due, and leaves it', {
    given: (queue) => queue.scheduled(A, {}, FAR),
    call: [1000],
    answer: [0, FAR, usUntil(FAR)],
  });

  table.it('puts due jobs in pending at their own priority, and says when the next is due', {
    given: async (queue) => {
      await queue.scheduled(A, { priority: 9 }, PAST);
      await queue.scheduled(B, { priority: -3, attempts: 2, uncharged: 1, last_error: 'e' }, PAST - 1);
      await queue.scheduled(C, {}, FAR);
    },
    call: [1000],
    answer: [2, FAR, usUntil(FAR)],
    changes: { schedule: zset([C, FAR]), pending: zset([B, -3], [A, 9]), [job(A)]: PENDING, [job(B)]: PENDING },
  });

  table.it('takes the longest due first, no more than its limit, and says that more is due', {
    given: async (queue) => {
      await queue.scheduled(A, {}, PAST + 2);
      await queue.scheduled(B, {}, PAST + 1);
      await queue.scheduled(C, {}, PAST);
    },
    call: [2],
    answer: [2, PAST + 2, 0],
    changes: {
      schedule: zset([A, PAST + 2]),
      pending: zset([B, 0], [C, 0]),
      [job(B)]: PENDING,
      [job(C)]: PENDING,
    },
  });

  table.it('takes jobs due in the same millisecond in mint order', {
    given: async (queue) => {
      for (const jobId of [C, A, B]) await queue.scheduled(jobId, {}, PAST);
    },
    call: [2],
    answer: [2, PAST, 0],
    changes: { schedule: zset([C, PAST]), pending: zset([A, 0], [B, 0]), [job(A)]: PENDING, [job(B)]: PENDING },
  });

  table.it('drops ghosts, and does not count them', {
    given: async (queue) => {
      await queue.ghost('schedule', A, PAST);
      await queue.scheduled(B, {}, PAST);
      await queue.ghost('schedule', C, FAR);
    },
    call: [1000],
    answer: [1, FAR, usUntil(FAR)],
    changes: { schedule: zset([C, FAR]), pending: zset([B, 0]), [job(B)]: PENDING },
    ghosts: [A, C],
  });

  table.it('wakes nobody for ghosts alone', {
    given: async (queue) => {
      await queue.ghost('schedule', A, PAST);
      await queue.client.set(queue.keys.row(A), 'x');
      await queue.hungry('p1');
    },
    call: [1000],
    answer: [0, -1, -1],
    changes: { schedule: gone },
    reachable: false,
  });

  table.it('wakes one hungry process when the queue was empty', {
    given: async (queue) => {
      await queue.scheduled(A, {}, PAST);
      await queue.scheduled(B, {}, PAST);
      await queue.hungry('crashed', 'p1', 'p2');
    },
    listening: ['p1', 'p2'],
    call: [1000],
    answer: [2, -1, -1],
    changes: {
      schedule: gone,
      pending: zset([A, 0], [B, 0]),
      hungry: zset(['p2', 3]),
      [job(A)]: PENDING,
      [job(B)]: PENDING,
    },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody when the queue was not empty', {
    given: async (queue) => {
      await queue.scheduled(A, {}, PAST);
      await queue.pending(B);
      await queue.hungry('p1');
    },
    call: [1000],
    answer: [1, -1, -1],
    changes: { schedule: gone, pending: zset([A, 0], [B, 0]), [job(A)]: PENDING },
  });

  table.it('promotes on a paused queue, and wakes nobody', {
    given: async (queue) => {
      await queue.scheduled(A, {}, PAST);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [1000],
    answer: [1, -1, -1],
    changes: { schedule: gone, pending: zset([A, 0]), [job(A)]: PENDING },
  });

  const given = () => table.queue.scheduled(A, {}, PAST);
  table.refuses('refuses limits that are not integers from 1 to 1000', given, [
    [],
    ...each(['5'], 0, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
  ]);
  table.refusesTypes([1000], ['schedule', 'pending', 'hungry'], given);

  it('brings 2,500 due jobs back in three calls, every one once', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 2_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.scheduled(jobId, {}, PAST)));
    const answers = [];
    for (let n = 0; n < 4; n++) answers.push(await queue.run('promote', [1000]));
    expect(answers).toEqual([
      [1000, PAST, 0],
      [1000, PAST, 0],
      [500, -1, -1],
      [0, -1, -1],
    ]);
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual(ids);
  });
});
