import { expect, it } from '@jest/globals';
import { type Hand, id } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { describeTransition } from './state-table.js';

const MANY = 1_000_000;
const STREAM = 'emq:{q}:stream:completions';

const entry = (n: number) => [
  'id',
  id(n),
  'outcome',
  'completed',
  'attempts',
  '1',
  'at',
  '5',
  'result',
  'r'.repeat(50),
];
const recorded =
  (...at: string[]) =>
  async (queue: Hand) => {
    for (const [n, place] of at.entries()) await queue.client.xadd(STREAM, place, ...entry(n));
  };
const page = (...at: [place: string, n: number][]) => at.map(([place, n]) => [place, entry(n)]);
const three = recorded('5-1', '5-2', '70-0');

describeTransition('completions', (table) => {
  table.it('answers entries from the oldest, in their order', {
    given: three,
    call: ['0-0', 10, MANY],
    answer: [0, ...page(['5-1', 0], ['5-2', 1], ['70-0', 2])],
  });
  table.it('goes on behind an entry', { given: three, call: ['5-1', 1, MANY], answer: [0, ...page(['5-2', 1])] });
  table.it('goes on behind an entry that was trimmed', {
    given: three,
    call: ['6-0', 10, MANY],
    answer: [0, ...page(['70-0', 2])],
  });
  table.it('answers nothing behind the newest', { given: three, call: ['70-0', 10, MANY], answer: [0] });
  table.it('answers nothing of a stream that is not there yet', { call: ['0-0', 10, MANY], answer: [0] });

  table.it('remembers entries that were deleted: a stream that is empty now is still the same', {
    given: async (queue) => {
      await three(queue);
      await queue.client.xdel(STREAM, '5-1', '5-2', '70-0');
    },
    call: ['70-0', 10, MANY],
    answer: [0],
  });

  for (const after of ['70-1', '71-0', '9007199254740991-9007199254740991']) {
    table.it(`begins anew for a reader that has seen ${after}, which this stream never held, and says so (C154)`, {
      given: three,
      call: [after, 2, MANY],
      answer: [1, ...page(['5-1', 0], ['5-2', 1])],
    });
  }
  table.it('says so of a stream that is gone', { call: ['70-0', 10, MANY], answer: [1] });

  table.it('ends a page early rather than carry more bytes', {
    given: three,
    call: ['0-0', 10, 250],
    answer: [0, ...page(['5-1', 0], ['5-2', 1])],
  });
  table.it('holds at least one entry, however large', {
    given: three,
    call: ['0-0', 10, 1],
    answer: [0, ...page(['5-1', 0])],
  });

  const good = ['0-0', '10', '1000'];
  table.refuses('refuses what is no id of an entry', three, [
    ...each(good, 0, [
      '',
      '5',
      '5-',
      '-5',
      '5-1-1',
      '05-1',
      '5-01',
      '+5-1',
      '5-x',
      '9007199254740992-0',
      '0-9007199254740992',
    ]),
  ]);
  table.refuses('refuses numbers that are not canonical, or out of bounds', three, [
    [],
    ['0-0'],
    ['0-0', '10'],
    ...each(good, 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
    ...each(good, 2, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
  ]);
  table.refusesTypes(good, ['stream:completions']);

  it('pages through 1,234 entries, each once', async () => {
    const { queue } = table;
    const places = Array.from({ length: 1_234 }, (_, n) => `9-${n + 1}`);
    const writes = queue.client.pipeline();
    for (const [n, place] of places.entries()) writes.xadd(STREAM, place, ...entry(n));
    await writes.exec();
    const seen: string[] = [];
    for (const limit of [1000, 100, 100, 100, 100]) {
      const [restarted, ...rows] = (await queue.run('completions', [seen.at(-1) ?? '0-0', limit, MANY])) as [
        number,
        ...Buffer[][],
      ];
      expect(restarted).toBe(0);
      seen.push(...rows.map(([place]) => String(place)));
    }
    expect(seen).toEqual(places);
  });
});
