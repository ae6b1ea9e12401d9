import { describe, expect, it } from '@jest/globals';
import { matchesPartially } from '../../../lib/nest/testing/partial-match.js';

describe('a partial match', () => {
  class Money {
    constructor(readonly amount: number) {}
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
    ['equal bytes', Buffer.from('a'), Buffer.from('a')],
  ])('passes over or takes %s', (_, actual, expected) => {
    expect(matchesPartially(actual, expected)).toBe(true);
  });

  it.each<[string, unknown, unknown]>([
    ['another value', { a: 1 }, { a: 2 }],
    ['a number for its text', { a: '1' }, { a: 1 }],
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
