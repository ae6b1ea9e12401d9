import { expect, it } from '@jest/globals';
import { counted, gone, job, zset } from './changes.js';
import { type Hand, id } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];

const three = async (queue: Hand) => {
  for (const jobId of [C, A, B]) await queue.dead(jobId);
  await queue.pending(id(4));
};

describeTransition('trim', (table) => {
  table.it('removes the lowest ids until keep_count are left', {
    given: three,
    call: [1, 1000],
    answer: 2,
    changes: { dead: zset([C, 0]), [job(A)]: gone, [job(B)]: gone, 'metrics:removed': counted(2) },
  });

  table.it('removes no more than its limit', {
    given: three,
    call: [0, 2],
    answer: 2,
    changes: { dead: zset([C, 0]), [job(A)]: gone, [job(B)]: gone, 'metrics:removed': counted(2) },
  });

  table.it('removes all with keep_count 0', {
    given: three,
    call: [0, 1000],
    answer: 3,
    changes: { dead: gone, [job(A)]: gone, [job(B)]: gone, [job(C)]: gone, 'metrics:removed': counted(3) },
  });

  table.it('removes nothing where no more than keep_count are dead', { given: three, call: [3, 1000], answer: 0 });
  table.it('takes the largest keep_count', { given: three, call: ['9007199254740991', 1], answer: 0 });
  table.it('does nothing on an empty queue', { call: [0, 1000], answer: 0 });

  table.it('drops ghosts too', {
    given: async (queue) => {
      await queue.ghost('dead', A);
      await queue.dead(B);
    },
    call: [1, 1000],
    answer: 1,
    changes: { dead: zset([B, 0]), 'metrics:removed': counted(1) },
  });

  const given = () => table.queue.dead(A);
  table.refuses('refuses counts that are not integers within bounds', given, [
    [],
    ['0'],
    ...each(['0', '5'], 0, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
    ...each(['0', '5'], 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
  ]);
  table.refusesTypes([0, 1000], ['dead', 'metrics:removed'], given);

  it('trims 1,500 dead in two calls', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.dead(jobId)));
    expect(await queue.run('trim', [100, 1000])).toBe(1000);
    expect(await queue.run('trim', [100, 1000])).toBe(400);
    expect(await queue.client.zrange(queue.keys.dead, 0, '-1')).toEqual(ids.slice(1_400));
  });
});
