import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { assertJobBackoff, type Backoff, DEFAULT_BACKOFF, waitAfter } from '../../lib/kernel/backoff.js';
import { EchoArgumentError } from '../../lib/kernel/errors.js';

const HOUR = 3_600_000;
const never = () => 0;
const waits = (backoff: Backoff, failures: number[]) => failures.map((n) => waitAfter(backoff, n, undefined, never));

describe('a backoff', () => {
  it('of a fixed delay waits the same after every failure', () => {
    expect(waits({ type: 'fixed', delayMs: 250 }, [1, 2, 1000])).toEqual([250, 250, 250]);
  });

  it('that is exponential doubles, up to its limit', () => {
    expect(waits({ type: 'exponential', delayMs: 100, maxMs: 700 }, [1, 2, 3, 4, 5])).toEqual([
      100, 200, 400, 700, 700,
    ]);
  });

  it('that is exponential stops at an hour by default, however many failures', () => {
    expect(waits(DEFAULT_BACKOFF, [1, 2, 12, 13, 60, 1e6])).toEqual([1000, 2000, 2_048_000, HOUR, HOUR, HOUR]);
  });

  it('of 0 waits not at all', () => {
    expect(waits({ type: 'fixed', delayMs: 0 }, [1])).toEqual([0]);
    expect(waits({ type: 'exponential', delayMs: 0 }, [1, 2000])).toEqual([0, 0]);
  });

  it('with jitter takes up to that share off', () => {
    const backoff: Backoff = { type: 'fixed', delayMs: 1000, jitter: 0.25 };
    expect(waitAfter(backoff, 1, undefined, () => 0)).toBe(1000);
    expect(waitAfter(backoff, 1, undefined, () => 0.5)).toBe(875);
    expect(waitAfter(backoff, 1, undefined, () => 0.999999)).toBe(750);
    expect(waitAfter({ ...backoff, jitter: 1 }, 1, undefined, () => 0.999999)).toBe(0);
  });

  it('waits whole milliseconds within its bounds, whatever it is made of', () => {
    const made = fc.record({
      type: fc.constant('exponential' as const),
      delayMs: fc.maxSafeNat(),
      maxMs: fc.maxSafeNat(),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(made, fc.integer({ min: 1, max: 1e9 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (b, n, r) => {
        const ms = waitAfter(b, n, undefined, () => r);
        expect(Number.isSafeInteger(ms)).toBe(true);
        expect(ms).toBeGreaterThanOrEqual(0);
        expect(ms).toBeLessThanOrEqual(b.maxMs);
      }),
    );
  });
});

describe('a backoff function', () => {
  it('is told how often it failed, and with what', () => {
    const seen: unknown[] = [];
    const error = new Error('boom');
    expect(waitAfter((...args) => seen.push(args) * 500.4, 3, error, never)).toBe(500);
    expect(seen).toEqual([[3, error]]);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, undefined, null, 'soon', {}])(
    'that answers %p waits an hour',
    (nonsense) => {
      expect(waitAfter((() => nonsense) as unknown as Backoff, 1, undefined, never)).toBe(HOUR);
    },
  );

  it('that answers more than a number holds exactly waits the most that it does', () => {
    expect(waitAfter(() => 1e300, 1, undefined, never)).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('a backoff that travels', () => {
  it.each([
    { type: 'fixed', delayMs: 0 },
    { type: 'fixed', delayMs: 5, jitter: 1 },
    { type: 'exponential', delayMs: 5, maxMs: 0, jitter: 0 },
    { type: 'exponential', delayMs: Number.MAX_SAFE_INTEGER },
  ])('may be %j', (backoff) => {
    expect(() => assertJobBackoff(backoff)).not.toThrow();
  });

  const refused: [value: unknown, says: RegExp][] = [
    [undefined, /type, delayMs/],
    [null, /type, delayMs/],
    ['fixed', /type, delayMs/],
    [{}, /type/],
    [{ type: 'linear', delayMs: 5 }, /type/],
    [{ type: 'fixed' }, /delayMs/],
    [{ type: 'fixed', delayMs: -1 }, /delayMs/],
    [{ type: 'fixed', delayMs: 1.5 }, /delayMs/],
    [{ type: 'fixed', delayMs: Number.NaN }, /delayMs/],
    [{ type: 'fixed', delayMs: '5' }, /delayMs/],
    [{ type: 'fixed', delayMs: 2 ** 53 }, /delayMs/],
    [{ type: 'fixed', delayMs: 5, maxMs: 6 }, /maxMs/],
    [{ type: 'exponential', delayMs: 5, maxMs: -1 }, /maxMs/],
    [{ type: 'exponential', delayMs: 5, jitter: 1.1 }, /jitter/],
    [{ type: 'exponential', delayMs: 5, jitter: -0.1 }, /jitter/],
    [{ type: 'exponential', delayMs: 5, jitter: Number.NaN }, /jitter/],
    [{ type: 'fixed', delayMs: 5, delay: 6 }, /delay/],
  ];
  it.each(refused)('may not be %j', (value, says) => {
    expect(() => assertJobBackoff(value)).toThrow(EchoArgumentError);
    expect(() => assertJobBackoff(value)).toThrow(says);
  });
});
