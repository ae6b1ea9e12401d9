import { expect, it } from '@jest/globals';
import { id } from './hand.js';
import { describeTransition, readable } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];

describeTransition('get', (table) => {
  table.it('answers nothing for nothing', { call: [], answer: [] });

  table.it('answers an empty row where there is none, or a key of another type', {
    given: (queue) => queue.client.set(queue.keys.row(B), 'x'),
    call: [A, B, ''],
    answer: [[], [], []],
    reachable: false,
  });

  it('answers every field of each row, in the order asked for', async () => {
    const { queue } = table;
    await queue.pending(A, { priority: 3 });
    await queue.done(B);
    const reply = readable(await queue.run('get', [B, C, A, B])) as string[][];
    const fields = reply.map((flat) => Object.fromEntries(flat.flatMap((x, n) => (n % 2 ? [] : [[x, flat[n + 1]]]))));
    const b = { state: 'done', attempts: '1', payload: 'p', lease_epoch: '-', result: 'r' };
    expect(fields).toEqual([b, {}, { state: 'pending', attempts: '0', payload: 'p', priority: '3' }, b]);
  });

  it('answers 1,500 rows in one call, every byte of them', async () => {
    const { queue } = table;
    const payload = Buffer.from([...Array(256).keys()]);
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await queue.run(
      'enqueue',
      ids.flatMap((jobId) => [jobId, payload, '', 0]),
    );
    const rows = (await queue.run('get', ids)) as Buffer[][];
    expect(rows).toHaveLength(1_500);
    expect(rows.every((row) => row.some((value) => value.equals(payload)))).toBe(true);
  });
});
