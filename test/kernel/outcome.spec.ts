import { describe, expect, it } from '@jest/globals';
import { Discard, outcomeOf, RateLimited, Snooze } from '../../lib/kernel/outcome.js';

describe('an outcome', () => {
  it('is the code of the wire in words', () => {
    expect([1, 0, -1, -2].map(outcomeOf)).toEqual(['ok', 'gone', 'stale', 'wrong_state']);
  });
});

describe('a snooze', () => {
  it.each([0, 5, Number.MAX_SAFE_INTEGER])('may last %d ms', (ms) => {
    expect(new Snooze(ms)).toMatchObject({ ms, name: 'Snooze' });
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '5', Symbol('x'), undefined])(
    'may not last %p',
    (ms) => {
      expect(() => new Snooze(ms as number)).toThrow(RangeError);
    },
  );
});

describe('a hold', () => {
  it('is of the lane, or of the queue', () => {
    expect(new RateLimited(5)).toMatchObject({ ms: 5, scope: 'lane', name: 'RateLimited' });
    expect(new RateLimited(1, { scope: 'queue' })).toMatchObject({ ms: 1, scope: 'queue' });
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', Symbol('x')])('may not last %p', (ms) => {
    expect(() => new RateLimited(ms as number)).toThrow(RangeError);
  });

  it.each([null, 'queue', 5, { scop: 'queue' }, { scope: 'all' }, { scope: Symbol('x') }])(
    'is not taken for one of the lane under %p',
    (options) => {
      expect(() => new RateLimited(5, options as never)).toThrow(RangeError);
    },
  );
});

describe('a discard', () => {
  it('says why', () => {
    expect(new Discard('no such user').message).toBe('no such user');
    expect(new Discard().message).not.toBe('');
  });
});
