import { expect, it } from '@jest/globals';
import { FAR, id } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { describeTransition, type Table } from './state-table.js';

const [A, B] = [id(1), id(2)];

/** Every part, in order; `between` runs after each. */
async function parts(table: Table, count: number, between?: (n: number) => Promise<unknown>): Promise<string[][]> {
  const found: string[][] = [];
  let cursor = '0';
  do {
    const [next, ...members] = ((await table.queue.run('members', ['pending', cursor, count])) as Buffer[]).map(String);
    cursor = next!;
    found.push(members);
    await between?.(found.length);
  } while (cursor !== '0');
  return found;
}

describeTransition('members', (table) => {
  for (const set of ['pending', 'schedule', 'dead', 'lane:a', 'lane:a:b', 'lanes:waiting']) {
    table.it(`answers what stands in ${set}, whatever else there is`, {
      given: async (queue) => {
        await queue.client.zadd(queue.keys.base + set, 5, A, FAR, B);
        await queue.client.zadd(`${queue.keys.base}waiting`, 5, id(3));
      },
      call: [set, 0, 100],
      answer: ['0', A, B],
      reachable: false,
    });
  }

  table.it('answers nothing of a set that is empty', { call: ['pending', 0, 10], answer: ['0'] });
  table.it('takes a cursor that it never gave', { call: ['pending', '18446744073709551615', 10], answer: ['0'] });

  const given = () => table.queue.pending(A);
  const good = ['pending', '0', '10'];
  table.refuses('refuses sets that are none, or hold no jobs that wait', given, [
    [],
    ...each(good, 0, ['', 'active', 'waiting', 'lanes', 'lane:', 'lane', 'job:x', 'schedules', 'hungry']),
  ]);
  table.refuses('refuses cursors and counts that are not canonical, or out of bounds', given, [
    ['pending'],
    ['pending', '0'],
    ...each(good, 1, ['', '-1', 'x', '1.5', '0x1', '123456789012345678901', '99999999999999999999']),
    ...each(good, 2, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
  ]);
  table.refusesTypes(good, ['pending'], given);

  it('meets every one of 2,500 in parts, although they go and others come all the while', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 2_500 }, (_, n) => id(n));
    await queue.client.zadd(queue.keys.pending, ...ids.flatMap((jobId) => [0, jobId]));
    const stay = new Set(ids.filter((_, n) => n % 2 === 0));
    const found = await parts(table, 100, async (n) => {
      const come = Array.from({ length: 50 }, (_, i) => [0, id(10_000 + n * 50 + i)]).flat();
      await queue.client.zadd(queue.keys.pending, ...come);
      await queue.client.zrem(queue.keys.pending, ...ids.filter((_, i) => i % 2 === 1).slice(n * 30, n * 30 + 30));
    });
    expect(found.length).toBeGreaterThan(5);
    expect(found.every((part) => part.length < 300)).toBe(true);
    const met = new Set(found.flat());
    expect([...stay].filter((jobId) => !met.has(jobId))).toEqual([]);
  });
});
