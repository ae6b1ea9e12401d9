import { expect, it } from '@jest/globals';
import { counted, gone, job, zset } from './changes.js';
import { FAR, id } from './hand.js';
import { each, NOT_NUMBERS } from './malformed.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D, E] = [id(1), id(2), id(3), id(4), id(5)];

describeTransition('remove', (table) => {
  table.it('removes what nobody runs, from whatever set it stands in', {
    given: async (queue) => {
      await queue.pending(A, { priority: 3 });
      await queue.lapsed(B);
      await queue.scheduled(C);
      await queue.dead(D);
      await queue.pending(E);
    },
    call: [0, A, B, C, D],
    answer: [1, 1, 1, 1],
    changes: {
      pending: zset([E, 0]),
      schedule: gone,
      dead: gone,
      [job(A)]: gone,
      [job(B)]: gone,
      [job(C)]: gone,
      [job(D)]: gone,
      'metrics:removed': counted(4),
    },
  });

  table.it('deletes a kept row, which was counted when it was completed', {
    given: (queue) => queue.done(A),
    call: [0, A],
    answer: [1],
    changes: { [job(A)]: gone },
  });

  table.it('leaves a running job, and removes the rest', {
    given: async (queue) => {
      await queue.active(A);
      await queue.dead(B);
    },
    call: [0, A, B],
    answer: [-2, 1],
    changes: { dead: gone, [job(B)]: gone, 'metrics:removed': counted(1) },
  });

  const only: [state: string, jobId: string, left: Record<string, object | typeof gone>][] = [
    ['pending', A, { pending: gone, [job(A)]: gone }],
    ['scheduled', B, { schedule: gone, [job(B)]: gone }],
    ['dead', C, { dead: gone, [job(C)]: gone }],
  ];
  for (const [state, jobId, changes] of only) {
    table.it(`told '${state}', removes what is that and nothing else`, {
      given: async (queue) => {
        await queue.pending(A);
        await queue.scheduled(B);
        await queue.dead(C);
        await queue.active(D);
        await queue.done(E);
      },
      call: [state, A, B, C, D, E, id(9)],
      answer: [...[A, B, C].map((one) => (one === jobId ? 1 : -2)), -2, -2, 0],
      changes: { ...changes, 'metrics:removed': counted(1) },
    });
  }

  table.it('removes a job named twice once', {
    given: (queue) => queue.pending(A),
    call: [1, A, A],
    answer: [1, 0],
    changes: { pending: gone, [job(A)]: gone, 'metrics:removed': counted(1) },
  });

  table.it('answers gone where there is no row, or a key of another type', {
    given: async (queue) => {
      await queue.ghost('schedule', A, FAR);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: [0, A, B, 'pending', ''],
    answer: [0, 0, 0, 0],
    reachable: false,
  });

  table.it('answers wrong state, and counts nothing, where row and sets disagree', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.client.zrem(queue.keys.pending, A);
    },
    call: [0, A],
    answer: [-2],
    reachable: false,
  });

  const given = () => table.queue.pending(A);
  table.refuses('refuses calls that do not add up', given, [
    [],
    ['0'],
    ['1'],
    ...each(['0', A], 0, [...NOT_NUMBERS, '6', '-1']),
  ]);
  table.refusesTypes([0, A], ['pending', 'schedule', 'dead', 'metrics:removed'], given);

  it('removes 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.pending(jobId)));
    expect(await queue.run('remove', [0, ...ids])).toEqual(ids.map(() => 1));
    expect(await queue.dump()).toEqual({ 'metrics:enqueued': counted(1_500), 'metrics:removed': counted(1_500) });
  });
});
