import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EchoArgumentError } from '../../lib/kernel/errors.js';
import { assertJobId, base62, ID_EPOCH_MS, isJobId, readId, spellId } from '../../lib/kernel/id.js';

const parts = fc.tuple(
  fc.integer({ min: 0, max: 2 ** 42 - 1 }),
  fc.integer({ min: 0, max: 4095 }),
  fc.integer({ min: 0, max: 1023 }),
);
const asNumber = ([ms, node, sequence]: [number, number, number]) =>
  (BigInt(ms) << 22n) | (BigInt(node) << 10n) | BigInt(sequence);

describe('an id', () => {
  it('is the 64-bit number of time, node and sequence, in base 62 and padded', () => {
    fc.assert(
      fc.property(parts, (of) => {
        expect(spellId(...of)).toBe(`JOB${base62(asNumber(of)).padStart(11, '0')}`);
      }),
    );
  });

  it('says when, on which node, and as which of its millisecond it was minted', () => {
    fc.assert(
      fc.property(parts, ([ms, node, sequence]) => {
        const read = readId(spellId(ms, node, sequence));
        expect(read).toEqual({ mintedAt: new Date(ms + ID_EPOCH_MS), node, sequence });
      }),
    );
  });

  it('orders by bytes as it was minted', () => {
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        const [first, second] = [spellId(...a), spellId(...b)];
        expect(first < second).toBe(asNumber(a) < asNumber(b));
        expect(Buffer.compare(Buffer.from(first), Buffer.from(second)) < 0).toBe(asNumber(a) < asNumber(b));
      }),
    );
  });

  it('is the one of the wire', () => {
    expect(readId('JOB0KHTOWnGLuC').mintedAt.toISOString()).toBe('2026-01-27T15:11:37.641Z');
    const { node, sequence } = readId('JOB0KHTOWnGLuC');
    expect(spellId(Date.parse('2026-01-27T15:11:37.641Z') - ID_EPOCH_MS, node, sequence)).toBe('JOB0KHTOWnGLuC');
  });

  it('reaches from the first to the last number of 64 bits', () => {
    expect(spellId(0, 0, 0)).toBe('JOB00000000000');
    expect(spellId(2 ** 42 - 1, 4095, 1023)).toBe('JOBLygHa16AHYF');
    expect(isJobId('JOBLygHa16AHYF')).toBe(true);
    expect(isJobId('JOBLygHa16AHYG')).toBe(false);
  });

  const strangers: unknown[] = [
    '',
    'JOB',
    'pending',
    'job0KHTOWnGLuC',
    'JOB0KHTOWnGLu',
    'JOB0KHTOWnGLuCC',
    'JOB0KHTOWnGLu_',
    'JOB0KHTOWnGLu-',
    'JOB0KHTOWnGLé',
    'JOB0KHTOWnGLuC\n',
    ' JOB0KHTOWnGLuC',
    'JOBzzzzzzzzzzz',
    undefined,
    null,
    7,
    {},
    ['JOB0KHTOWnGLuC'],
  ];
  it.each(strangers.map((stranger) => [stranger]))('is not %j', (stranger) => {
    expect(isJobId(stranger)).toBe(false);
    expect(() => assertJobId(stranger)).toThrow(EchoArgumentError);
    expect(() => readId(stranger as string)).toThrow(EchoArgumentError);
  });

  it('quotes no more than 40 characters of what it refuses', () => {
    expect(() => assertJobId('x'.repeat(10_000))).toThrow(/^.{1,120}$/);
  });
});
