import { describe, expect, it } from '@jest/globals';
import { EchoArgumentError } from '../../../lib/index.js';
import { assertMatchable, matchesPartially } from '../../../lib/nest/testing/partial-match.js';

describe('a partial match', () => {
  class Money {
    constructor(readonly amount: number) {}
  }
  class Purse extends Money {
    toJSON(): Purse {
      return new Purse(this.amount);
    }
  }
  const epoch = '1970-01-01T00:00:00.000Z';

  it.each<[string, unknown, unknown]>([
    ['what is not asked for', { a: 1, b: 2 }, { a: 1 }],
    ['it at any depth', { a: { b: { c: 1, d: 2 } } }, { a: { b: { d: 2 } } }],
    ['it inside of arrays', { a: [{ b: 1, c: 2 }] }, { a: [{ b: 1 }] }],
    ['which class the expected is of', { amount: 3 }, new Money(3)],
    ['undefined where nothing is', {}, { a: undefined }],
    ['a Date that has become text', { at: epoch }, { at: new Date(0) }],
    ['a toJSON of any kind', { a: 5 }, { toJSON: () => ({ a: 5 }) }],
    ['matchers', { a: 'x', b: [1] }, { a: expect.any(String), b: expect.arrayContaining([1]) }],
    ['null', { a: null }, { a: null }],
    ['NaN where a codec keeps it', { a: [Number.NaN] }, { a: [Number.NaN] }],
    ['a toJSON that answers another of its kind', { amount: 3 }, new Purse(3)],
    ['equal bytes', Buffer.from('a'), Buffer.from('a')],
  ])('passes over or takes %s', (_, actual, expected) => {
    expect(matchesPartially(actual, expected)).toBe(true);
  });

  it.each<[string, unknown, unknown]>([
    ['another value', { a: 1 }, { a: 2 }],
    ['a number for its text', { a: '1' }, { a: 1 }],
    ['NaN', { a: null }, { a: Number.NaN }],
    ['NaN from nothing', undefined, Number.NaN],
    ['a missing part', {}, { a: 1 }],
    ['what only the prototype has', {}, { toString: expect.anything() }],
    ['a longer array', [1, 2], [1]],
    ['an object for an array', { 0: 1, length: 1 }, [1]],
    ['an array for an object', [1], { 0: 1 }],
    ['null for an object', { a: null }, { a: {} }],
    ['another Date', { at: epoch }, { at: new Date(1) }],
    ['an object for text', 'abc', { length: 3 }],
    ['other bytes', Buffer.from('a'), Buffer.from('b')],
    ['what a matcher refuses', { a: 1 }, { a: expect.any(String) }],
  ])('tells %s', (_, actual, expected) => {
    expect(matchesPartially(actual, expected)).toBe(false);
  });
});

describe('what no job can hold', () => {
  const circle: { self?: unknown } = {};
  circle.self = { deep: [circle] };
  const remade = { toJSON: () => ({ again: remade }) };

  it.each<[string, unknown, string]>([
    ['a function', () => 1, 'data is a function, which no job holds: leave it out, or give a matcher'],
    ['a class for a matcher', { to: String }, 'data.to is a function'],
    ['a symbol', { a: [Symbol('x')] }, 'data.a.0 is a symbol'],
    ['what holds itself', circle, 'data.self.deep.0 is what it stands in'],
    ['what its toJSON puts into itself', remade, 'data.again is what it stands in'],
  ])('is refused: %s', (_, expected, message) => {
    const call = () => assertMatchable(expected, 'data');
    expect(call).toThrow(EchoArgumentError);
    expect(call).toThrow(message);
  });

  it('is not what stands twice, nor what a matcher holds', () => {
    const twice = { a: 1 };
    assertMatchable({ x: twice, y: [twice, twice], z: expect.objectContaining({ f: String }) }, 'data');
    assertMatchable({ at: new Date(0), bytes: Buffer.from('a'), n: Number.NaN, none: undefined }, 'data');
  });
});
