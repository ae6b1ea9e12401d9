import { expect, it } from '@jest/globals';
import { counted, fields, gone, job, zset } from './changes.js';
import { FAR, id, PAST } from './hand.js';
import { each, NOT_NUMBERS } from './malformed.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];

describeTransition('cancel', (table) => {
  table.it('removes what has not started', {
    given: async (queue) => {
      await queue.pending(A, { priority: 3 });
      await queue.lapsed(B);
      await queue.scheduled(C);
      await queue.pending(D);
    },
    call: [0, A, B, C],
    answer: [1, 1, 1],
    changes: {
      pending: zset([D, 0]),
      schedule: gone,
      [job(A)]: gone,
      [job(B)]: gone,
      [job(C)]: gone,
      'metrics:removed': counted(3),
    },
  });

  table.it('asks a running job to stop, and tells every process', {
    given: async (queue) => {
      await queue.active(A);
      await queue.active(B, {}, PAST);
    },
    call: [0, A, B],
    answer: [2, 2],
    changes: { [job(A)]: fields({ cancel: '1' }), [job(B)]: fields({ cancel: '1' }) },
    hears: [
      ['beat', `cancel:${A}`],
      ['beat', `cancel:${B}`],
    ],
  });

  table.it('asks again when it is asked again', {
    given: (queue) => queue.active(A, { cancel: 1 }),
    call: [1, A, A],
    answer: [2, 2],
    hears: [
      ['beat', `cancel:${A}`],
      ['beat', `cancel:${A}`],
    ],
  });

  table.it('answers wrong state for what has ended, and removes the rest', {
    given: async (queue) => {
      await queue.dead(A);
      await queue.done(B);
      await queue.pending(C);
    },
    call: [0, A, B, C],
    answer: [-2, -2, 1],
    changes: { pending: gone, [job(C)]: gone, 'metrics:removed': counted(1) },
  });

  table.it('removes a job named twice once', {
    given: (queue) => queue.scheduled(A),
    call: [0, A, A],
    answer: [1, 0],
    changes: { schedule: gone, [job(A)]: gone, 'metrics:removed': counted(1) },
  });

  table.it('answers gone where there is no row, or a key of another type', {
    given: async (queue) => {
      await queue.ghost('schedule', A, FAR);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: [0, A, B, 'active', ''],
    answer: [0, 0, 0, 0],
    reachable: false,
  });

  const given = () => table.queue.pending(A);
  table.refuses('refuses calls that do not add up', given, [
    [],
    ['0'],
    ['1'],
    ...each(['0', A], 0, [...NOT_NUMBERS, '3', '-1']),
  ]);
  table.refusesTypes([0, A], ['pending', 'schedule', 'metrics:removed'], given);

  it('cancels 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.scheduled(jobId)));
    expect(await queue.run('cancel', [0, ...ids])).toEqual(ids.map(() => 1));
    expect(await queue.dump()).toEqual({ 'metrics:enqueued': counted(1_500), 'metrics:removed': counted(1_500) });
  });
});
