import { expect, it } from '@jest/globals';
import { type Hand, id } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];
const MANY = 1_000_000;

const three = async (queue: Hand) => {
  for (const jobId of [C, A, B]) await queue.dead(jobId, { payload: jobId.repeat(10) });
  await queue.pending(D);
};
const page = (...ids: string[]) => ids.map((jobId) => [jobId, expect.arrayContaining(['payload', jobId.repeat(10)])]);

describeTransition('morgue', (table) => {
  table.it('answers dead jobs in mint order, behind the last id of all', {
    given: three,
    call: ['', 10, MANY],
    answer: [C, ...page(A, B, C)],
  });
  table.it('answers as many as it is asked for', { given: three, call: ['', 2, MANY], answer: [C, ...page(A, B)] });
  table.it('goes on behind an id', { given: three, call: [A, 1, MANY], answer: [C, ...page(B)] });
  table.it('goes on behind an id that is not there', { given: three, call: [id(0), 1, MANY], answer: [C, ...page(A)] });
  table.it('answers an empty page behind the end', { given: three, call: [C, 10, MANY], answer: [C] });
  table.it('answers no id of an empty morgue', { call: ['', 10, MANY], answer: [''] });

  table.it('ends a page early rather than carry more bytes', {
    given: three,
    call: ['', 10, 350],
    answer: [C, ...page(A, B)],
  });
  table.it('holds at least one job, however large', { given: three, call: [A, 10, 1], answer: [C, ...page(B)] });

  table.it('shows ghosts with an empty row', {
    given: async (queue) => {
      await queue.ghost('dead', A);
      await queue.ghost('dead', B);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: ['', 10, MANY],
    answer: [B, [A, []], [B, []]],
    reachable: false,
  });

  const given = () => table.queue.dead(A);
  const good = ['', '10', '1000'];
  table.refuses('refuses numbers that are not canonical, or out of bounds', given, [
    [],
    [''],
    ['', '10'],
    ...each(good, 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
    ...each(good, 2, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
  ]);
  table.refusesTypes(good, ['dead']);

  it('meets each of 2,500 once, although those it has met leave', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 2_500 }, (_, n) => id(n));
    await queue.client.zadd(queue.keys.dead, ...ids.flatMap((jobId) => [0, jobId]));
    const seen: string[] = [];
    for (;;) {
      const [last, ...rows] = (await queue.run('morgue', [seen.at(-1) ?? '', 1000, MANY])) as [Buffer, ...Buffer[][]];
      if (rows.length === 0) break;
      expect(String(last)).toBe(ids.at(-1));
      const met = rows.map(([jobId]) => String(jobId));
      seen.push(...met);
      await queue.client.zrem(queue.keys.dead, ...met.slice(0, 500));
    }
    expect(seen).toEqual(ids);
  });
});
