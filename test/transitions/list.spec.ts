import { expect, it } from '@jest/globals';
import { FAR, type Hand, id } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const MANY = 1_000_000;

const three = async (queue: Hand) => {
  await queue.pending(A, { priority: 7, payload: 'a'.repeat(100) });
  await queue.pending(C, { payload: 'c'.repeat(100) });
  await queue.pending(B, { priority: -7, payload: 'b'.repeat(100) });
};
const listed = (jobId: string, score: string) => [jobId, score, expect.arrayContaining(['state', 'pending'])];

describeTransition('list', (table) => {
  table.it('answers a page in the order of the set, behind the size of the whole', {
    given: three,
    call: [0, 2, MANY],
    answer: [3, listed(B, '-7'), listed(C, '0')],
  });

  table.it('answers what is left behind an offset', { given: three, call: [2, 10, MANY], answer: [3, listed(A, '7')] });

  table.it('answers an empty page behind the end', { given: three, call: [3, 1000, MANY], answer: [3] });
  table.it('takes the largest offset', { given: three, call: ['9007199254740991', 1000, MANY], answer: [3] });
  table.it('answers size 0 of a set that is empty', { call: [0, 10, MANY], answer: [0] });

  table.it('ends a page early rather than carry more bytes', {
    given: three,
    call: [0, 10, 250],
    answer: [3, listed(B, '-7'), listed(C, '0')],
  });

  table.it('holds at least one job, however large', { given: three, call: [0, 10, 1], answer: [3, listed(B, '-7')] });

  table.it('lists ghosts with an empty row', {
    given: async (queue) => {
      await queue.ghost('pending', A);
      await queue.ghost('pending', B);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: [0, 10, MANY],
    answer: [2, [A, '0', []], [B, '0', []]],
    reachable: false,
  });

  const sets = ['active', 'schedule', 'dead', 'waiting'];
  for (const set of sets) {
    table.it(`lists ${set}`, {
      given: (queue) => queue.ghost(set, A, FAR),
      keys: [`emq:{q}:${set}`, 'emq:{q}:'],
      call: [0, 10, MANY],
      answer: [1, [A, String(FAR), []]],
      ghosts: [A],
      reachable: false,
    });
  }

  const given = () => table.queue.pending(A);
  const good = ['0', '10', '1000'];
  table.refuses('refuses numbers that are not canonical, or out of bounds', given, [
    [],
    ['0'],
    ['0', '10'],
    ...each(good, 0, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
    ...each(good, 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
    ...each(good, 2, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
  ]);
  table.refusesTypes(good, ['pending']);

  it('pages through 2,500 jobs, each once', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 2_500 }, (_, n) => id(n));
    await queue.run(
      'enqueue',
      ids.flatMap((jobId) => [jobId, 'p', '', 0]),
    );
    const seen: string[] = [];
    for (let offset = 0; offset < 2_500; ) {
      const [total, ...page] = (await queue.run('list', [offset, 1000, MANY])) as [number, ...Buffer[][]];
      expect(total).toBe(2_500);
      seen.push(...page.map(([jobId]) => String(jobId)));
      offset += page.length;
    }
    expect(seen).toEqual(ids);
  });
});
