import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Call } from '../../lib/wire/call.js';
import type { Arg } from '../../lib/wire/reply.js';

/** What the protocol of the server says, argument by argument. */
function spelt(name: string, args: readonly Arg[]): Buffer {
  const parts = [name, ...args].map((arg) => (typeof arg === 'object' ? arg : Buffer.from(String(arg))));
  return Buffer.concat([
    Buffer.from(`*${parts.length}\r\n`),
    ...parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]),
  ]);
}

/** Short and long, of ASCII, of more, and of halves of characters. */
const text = fc.oneof(
  fc.string({ maxLength: 700 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc
    .array(fc.constantFrom('x', 'ß', '€', '😀', '\ud83d', '\ude00', '\r\n', '\0'), { maxLength: 200 })
    .map((s) => s.join('')),
);
const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));

describe('a call', () => {
  it('is on the wire what the protocol says, whatever its arguments are', () => {
    const args = fc.array(fc.oneof({ weight: 5, arbitrary: text }, fc.maxSafeInteger(), bytes), { maxLength: 20 });
    fc.assert(
      fc.property(args, (given) => {
        const sent = new Call('evalsha', given).toWritable();
        expect(Buffer.from(sent as Buffer).equals(spelt('evalsha', given))).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('names its key, by which a cluster finds the node', () => {
    expect(new Call('evalsha', ['sha', 2, 'emq:{q}:pending', 'emq:{q}:']).getKeys()).toEqual(['emq:{q}:pending']);
    expect(new Call('ZREM', ['emq:{q}:hungry', 'p']).getKeys()).toEqual(['emq:{q}:hungry']);
    expect(new Call('PING', []).getKeys()).toEqual([]);
  });
});
