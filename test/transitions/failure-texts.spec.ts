import { expect, it } from '@jest/globals';
import { counted, fields, gone, job, zset } from './changes.js';
import { id } from './hand.js';
import { inMs } from './server-time.js';
import { describeTransition } from './state-table.js';

const A = id(1);

/** What a row keeps of its failures; noted by every transition in the same way. */
describeTransition('retry', (table) => {
  const texts = (from: number, to: number) =>
    Object.fromEntries(Array.from({ length: to - from + 1 }, (_, n) => [`error:${from + n}`, `e${from + n}`]));
  table.it('keeps the texts of the newest ten failures', {
    given: (queue) =>
      queue.active(A, {
        attempts: 12,
        last_error: 'e11',
        errors: '1,2,3,4,5,6,7,8,9,11',
        ...texts(1, 9),
        'error:11': 'e11',
      }),
    call: [0, A, 12, 5000, 20, 'e12'],
    answer: ['scheduled'],
    changes: {
      active: gone,
      schedule: zset([A, inMs(5000)]),
      [job(A)]: fields({
        state: 'scheduled',
        last_error: 'e12',
        errors: '2,3,4,5,6,7,8,9,11,12',
        'error:1': undefined,
        'error:12': 'e12',
      }),
      'metrics:retried': counted(1),
    },
    hears: [['beat', '5000']],
  });

  it('cuts a text to 4,096 bytes between two characters, in the row and in the record', async () => {
    const { queue } = table;
    const cuts: [text: string, bytes: number][] = [
      ['x'.repeat(5000), 4096],
      ['x'.repeat(4096), 4096],
      [`${'x'.repeat(4095)}é`, 4095],
      [`${'x'.repeat(4094)}é!`, 4096],
      [`${'x'.repeat(4094)}€`, 4094],
      [`${'x'.repeat(4093)}🦊`, 4093],
      [`${'x'.repeat(4092)}🦊🦊`, 4096],
      [`${'x'.repeat(4096)}🦊`, 4096],
      ['🦊'.repeat(2000), 4096],
    ];
    for (const [n, [text, bytes]] of cuts.entries()) {
      await queue.active(id(n));
      await queue.run('retry', [1, id(n), 1, 0, 0, text]);
      const whole = Buffer.from(text).subarray(0, bytes).toString();
      expect(await queue.client.hmget(queue.keys.row(id(n)), 'last_error', 'error:1')).toEqual([whole, whole]);
      const [[, entry]] = (await queue.client.xrevrange(
        `${queue.keys.base}stream:completions`,
        '+',
        '-',
        'COUNT',
        1,
      )) as [[string, string[]]];
      expect(entry.at(-1)).toBe(whole);
    }
  });

  it('cuts bytes that are no text too, and never below 4,092', async () => {
    const { queue } = table;
    await queue.active(A);
    await queue.run('retry', [0, A, 1, 0, 0, Buffer.alloc(9_000, 0x80)]);
    expect(await queue.client.hgetBuffer(queue.keys.row(A), 'last_error')).toEqual(Buffer.alloc(4_092, 0x80));
  });
});
