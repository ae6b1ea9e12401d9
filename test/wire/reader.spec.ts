import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Reply } from '../../lib/wire/reply.js';
import { ProtocolError, ReplyError, ReplyReader } from '../../lib/wire/resp/reader.js';
import { aside, bulk, conversation, cut, error, integer, list, nothing, type Refused, simple } from './spelling.js';

/** What is read of these pieces, in order. */
function read(pieces: Iterable<Buffer>): (Reply | Refused)[] {
  const told: (Reply | Refused)[] = [];
  const reader = new ReplyReader({
    answer: (reply) => told.push(reply),
    refusal: (refusal) => {
      expect(refusal).toBeInstanceOf(ReplyError);
      told.push({ refused: refusal.message });
    },
  });
  for (const piece of pieces) reader.feed(piece);
  return told;
}

/** The same, and how many bytes were copied on the way. */
function readCounting(pieces: Iterable<Buffer>): { told: (Reply | Refused)[]; copied: number } {
  const { concat } = Buffer;
  let copied = 0;
  Buffer.concat = (parts, ...rest) => {
    const whole = concat(parts, ...rest);
    copied += whole.length;
    return whole;
  };
  try {
    const told = read(pieces);
    return { told, copied };
  } finally {
    Buffer.concat = concat;
  }
}

const bytewise = (bytes: Buffer): Buffer[] => cut(bytes, [1]);

describe('what a server says', () => {
  it('is read as what it was, wherever it is cut', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 200 })), {
      maxLength: 10,
    });
    fc.assert(
      fc.property(conversation, sizes, (sayings, pieces) => {
        const bytes = Buffer.concat(sayings.map((saying) => saying.bytes));
        const expected = sayings.flatMap((saying) => (saying.read === undefined ? [] : [saying.read]));
        expect(read(cut(bytes, pieces))).toEqual(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is read byte by byte, and one answer before the next has come', () => {
    const told: number[] = [];
    const reader = new ReplyReader({ answer: () => told.push(at), refusal: () => told.push(-at) });
    let at = 0;
    for (const byte of bytewise(Buffer.from('$2\r\nab\r\n:12\r\n-NO\r\n*2\r\n:1\r\n$0\r\n\r\n'))) {
      at += 1;
      reader.feed(byte);
    }
    expect(told).toEqual([8, 13, -18, 32]);
  });

  it.each<[string, Buffer, (Reply | Refused)[]]>([
    ['an empty string', bulk('').bytes, [Buffer.alloc(0)]],
    ['an empty line', simple('').bytes, [Buffer.alloc(0)]],
    ['an empty list', list('*', []).bytes, [[]]],
    ['empty lists in lists', list('*', [list('*', []), list('~', []), list('%', [])]).bytes, [[[], [], []]]],
    ['a string that is none', nothing('$-1').bytes, [null]],
    ['a list that is none', nothing('*-1').bytes, [null]],
    ['nothing', nothing('_').bytes, [null]],
    ['nothing among others', list('*', [nothing('$-1'), integer(0), nothing('_')]).bytes, [[null, 0, null]]],
    ['the smallest number', integer(Number.MIN_SAFE_INTEGER).bytes, [Number.MIN_SAFE_INTEGER]],
    ['an error', error('WRONGTYPE no').bytes, [{ refused: 'WRONGTYPE no' }]],
    [
      'an error among others, as its text, and not as the end of them',
      list('*', [integer(1), error('ERR no'), list('*', [error('ERR nor this')])]).bytes,
      [[1, Buffer.from('ERR no'), [Buffer.from('ERR nor this')]]],
    ],
    ['a message between two answers', Buffer.from(':1\r\n>2\r\n+a\r\n*1\r\n:7\r\n:2\r\n'), [1, 2]],
    ['a message of nothing', Buffer.from('>0\r\n:2\r\n'), [2]],
    ['what is to be known of an answer', Buffer.from('|1\r\n+ttl\r\n:7\r\n*2\r\n:1\r\n|0\r\n:2\r\n'), [[1, 2]]],
    ['a text that says its format', Buffer.from('=7\r\ntxt:abc\r\n'), [Buffer.from('abc')]],
  ])('may be %s', (_what, bytes, expected) => {
    expect(read([bytes])).toEqual(expected);
    expect(read(bytewise(bytes))).toEqual(expected);
  });

  it('may be nested more deeply than anybody would', () => {
    const depth = 1_000;
    let innermost = read([Buffer.from(`${'*1\r\n'.repeat(depth)}:1\r\n`)])[0] as Reply;
    for (let i = 0; i < depth; i++) innermost = (innermost as Reply[])[0]!;
    expect(innermost).toBe(1);
  });

  it('is copied once when it is long and comes in many pieces', () => {
    const long = Buffer.alloc(8_000_000, 'x');
    const pieces = cut(list('*', [bulk(long), integer(1)]).bytes, [1_000]);
    const { told, copied } = readCounting(pieces);
    expect((told[0] as Reply[])[1]).toBe(1);
    expect(long.equals((told[0] as Buffer[])[0]!)).toBe(true);
    expect(copied).toBeLessThan(long.length + 10_000);
  });

  it('is not read from its beginning with every piece when there are many elements in many pieces', () => {
    const { bytes } = list(
      '*',
      Array.from({ length: 20_000 }, (_, n) => integer(n)),
    );
    const { told, copied } = readCounting(bytewise(bytes));
    expect(told).toEqual([Array.from({ length: 20_000 }, (_, n) => n)]);
    expect(copied).toBeLessThan(8 * bytes.length); // of each element what came of it before, piece by piece
  });
});

describe('what no server says', () => {
  it.each([
    ['a beginning that is none', 'HTTP/1.1 400 Bad Request\r\n'],
    ['an empty line', '\r\n'],
    ['a number with letters', ':12a\r\n'],
    ['a number that is empty', ':\r\n'],
    ['a length that is empty', '$\r\n'],
    ['a number that is a sign', ':-\r\n'],
    ['a number whose line ends too early', ':1\rx'],
    ['a length in words', '$one\r\n'],
    ['a length that is negative and not -1', '$-2\r\n'],
    ['a list of a length that is negative and not -1', '*-2\r\n'],
    ['a message that is none', '>-1\r\n'],
    ['a string longer than it says', '$2\r\nabc\r\n'],
    ['a string that does not end', '$2\r\nabxy'],
    ['a string that streams', '$?\r\n'],
    ['a truth that is neither', '#x\r\n'],
    ['a wrong element', '*2\r\n:1\r\nx\r\n'],
  ])('is %s: nothing is read of it but a ProtocolError', (_what, said) => {
    const bytes = Buffer.from(`:7\r\n${said}`);
    for (const pieces of [[bytes], bytewise(bytes)]) {
      const told: unknown[] = [];
      const reader = new ReplyReader({ answer: (reply) => told.push(reply), refusal: (e) => told.push(e) });
      expect(() => {
        for (const piece of pieces) reader.feed(piece);
      }).toThrow(ProtocolError);
      expect(told).toEqual([7]);
    }
  });

  it('is noticed wherever a byte that belongs to the form is another one, or it is read as something', () => {
    const said = fc.constant(list('*', [bulk('abc'), integer(12), aside('|', []), simple('OK'), bulk('')]).bytes);
    fc.assert(
      fc.property(said, fc.nat(), fc.integer({ min: 0, max: 255 }), (bytes, at, byte) => {
        const garbled = Buffer.from(bytes);
        garbled[at % garbled.length] = byte;
        try {
          expect(read([garbled]).length).toBeLessThanOrEqual(garbled.length);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
