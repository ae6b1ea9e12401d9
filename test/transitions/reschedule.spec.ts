import { expect, it } from '@jest/globals';
import { fields, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs, msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const PENDING = fields({ state: 'pending' });

describeTransition('reschedule', (table) => {
  table.it('gives a waiting job an earlier time, counted from now, and announces it', {
    given: (queue) => queue.scheduled(A),
    call: [A, '5000'],
    answer: [1],
    changes: { schedule: zset([A, inMs(5000)]) },
    hears: [['beat', '5000']],
  });

  table.it('gives a waiting job a later time, which needs no announcement', {
    given: async (queue) => {
      await queue.scheduled(A, {}, FAR);
      await queue.scheduled(B, {}, PAST);
    },
    call: [A, `@${FAR + 5}`, B, `@${FAR + 6}`],
    answer: [1, 1],
    changes: { schedule: zset([A, FAR + 5], [B, FAR + 6]) },
  });

  table.it('announces a new earliest time on the server clock as what is left until then', {
    given: (queue) => queue.scheduled(A, {}, FAR),
    call: [A, `@${FAR - 5}`],
    answer: [1],
    changes: { schedule: zset([A, FAR - 5]) },
    hears: [['beat', msUntil(FAR - 5)]],
  });

  for (const delay of ['', '0', `@${PAST}`]) {
    table.it(`sends a job to pending for the delay '${delay}', at its own priority, and wakes a hungry process`, {
      given: async (queue) => {
        await queue.scheduled(A, { priority: 8 });
        await queue.hungry('crashed', 'p1');
      },
      call: [A, delay],
      answer: [1],
      changes: { schedule: gone, pending: zset([A, 8]), hungry: gone, [job(A)]: PENDING },
      hears: [['w:p1', '']],
    });
  }

  table.it('wakes nobody for a job that goes on waiting', {
    given: async (queue) => {
      await queue.scheduled(A);
      await queue.hungry('p1');
    },
    call: [A, '5000'],
    answer: [1],
    changes: { schedule: zset([A, inMs(5000)]) },
    hears: [['beat', '5000']],
  });

  table.it('wakes nobody when the queue was not empty', {
    given: async (queue) => {
      await queue.scheduled(A);
      await queue.pending(B);
      await queue.hungry('p1');
    },
    call: [A, ''],
    answer: [1],
    changes: { schedule: gone, pending: zset([A, 0], [B, 0]), [job(A)]: PENDING },
  });

  table.it('wakes nobody on a paused queue', {
    given: async (queue) => {
      await queue.scheduled(A);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [A, ''],
    answer: [1],
    changes: { schedule: gone, pending: zset([A, 0]), [job(A)]: PENDING },
  });

  table.it('takes the last time of a job named twice, unless the first was now', {
    given: async (queue) => {
      await queue.scheduled(A);
      await queue.scheduled(B);
    },
    call: [A, '9000', A, `@${FAR + 1}`, B, '', B, '5000'],
    answer: [1, 1, 1, -2],
    changes: { schedule: zset([A, FAR + 1]), pending: zset([B, 0]), [job(B)]: PENDING },
  });

  const elsewhere: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['pending', (queue) => queue.pending(A)],
    ['active', (queue) => queue.active(A)],
    ['dead', (queue) => queue.dead(A)],
    ['done', (queue) => queue.done(A)],
  ];
  for (const [state, given] of elsewhere) {
    table.it(`answers that a ${state} job waits for no time, and changes the rest`, {
      given: async (queue) => {
        await given(queue);
        await queue.scheduled(C, {}, PAST);
      },
      call: [A, '5000', C, '6000'],
      answer: [-2, 1],
      changes: { schedule: zset([C, inMs(6000)]) },
    });
  }

  table.it('answers gone where there is no row, or a key of another type', {
    given: async (queue) => {
      await queue.ghost('schedule', A, FAR);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: [A, '', B, '5'],
    answer: [0, 0],
    reachable: false,
  });

  const given = () => table.queue.scheduled(A);
  const good = [A, '5'];
  table.refuses('refuses delays that are not canonical milliseconds', given, [
    ...each(good, 1, [...NOT_NUMBERS.filter((text) => text !== ''), ...TOO_LARGE, '-1', '@', '@-1', '@1e3']),
  ]);
  table.refuses('refuses calls that do not add up', given, [[], [A], [...good, B], [...good, B, 'soon']]);
  table.refusesTypes(good, ['schedule', 'pending', 'hungry'], given);

  it('changes 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.scheduled(jobId)));
    expect(
      await queue.run(
        'reschedule',
        ids.flatMap((jobId) => [jobId, `@${FAR + 1}`]),
      ),
    ).toEqual(ids.map(() => 1));
    expect(await queue.client.zcount(queue.keys.schedule, FAR + 1, FAR + 1)).toBe(1_500);
  });
});
