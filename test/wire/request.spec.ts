import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Arg } from '../../lib/wire/reply.js';
import { request } from '../../lib/wire/resp/request.js';
import { spelt } from './spelling.js';

/** Short and long, of ASCII, of more, and of halves of characters. */
const text = fc.oneof(
  fc.string({ maxLength: 700 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc
    .array(fc.constantFrom('x', 'ß', '€', '😀', '\ud83d', '\ude00', '\r\n', '\0'), { maxLength: 200 })
    .map((s) => s.join('')),
);
const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));

/** As the socket is told to send it. */
const sent = (command: string, args: readonly Arg[]): Buffer => {
  const said = request(command, args);
  return typeof said === 'string' ? Buffer.from(said, 'latin1') : said;
};

describe('a request', () => {
  it('is on the wire what the protocol says, whatever its arguments are', () => {
    const args = fc.array(fc.oneof({ weight: 5, arbitrary: text }, fc.maxSafeInteger(), bytes), { maxLength: 20 });
    fc.assert(
      fc.property(args, (given) => {
        expect(sent('evalsha', given).equals(spelt('evalsha', given))).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each<[string, Arg[]]>([
    ['none', []],
    ['an empty one', ['']],
    ['no bytes', [Buffer.alloc(0)]],
    ['one of 64 characters, which is short, that are not all ASCII', ['ä'.repeat(64)]],
    ['one of 65, which is long', ['ä'.repeat(65)]],
    ['halves of one character in two arguments', ['\ud83d', '\ude00']],
    [
      'text that is longer than the lengths that are known by heart',
      ['x'.repeat(511), 'x'.repeat(512), 'ß'.repeat(300)],
    ],
    ['bytes between texts that are not ASCII', ['ß', Buffer.from([0xff, 0x0d, 0x0a]), 'ß'.repeat(100)]],
    ['numbers', [0, -1, Number.MAX_SAFE_INTEGER, 1.5]],
  ])('may have as arguments %s', (_what, args) => {
    expect(sent('set', args).toString('hex')).toBe(spelt('set', args).toString('hex'));
  });

  it('is made of ten thousand arguments as well, and leaves them as they are', () => {
    const args: Arg[] = Array.from({ length: 10_000 }, (_, n) => (n % 3 === 0 ? n : `argument ${n}`));
    const before = [...args];
    expect(sent('evalsha', args).equals(spelt('evalsha', before))).toBe(true);
    expect(args).toEqual(before);
  });

  it('is text of one byte a character where it can be, and bytes of its own otherwise', () => {
    expect(typeof request('set', ['k', 'x'.repeat(1_000), 7])).toBe('string');
    const given = Buffer.from('given');
    const said = request('set', ['k', given]) as Buffer;
    given.fill('x');
    expect(said.equals(spelt('set', ['k', 'given']))).toBe(true);
  });
});
