import { describe, expect, it } from '@jest/globals';
import { Redial } from '../../lib/kernel/reconnect.js';

/** Draws no jitter: the longest pause. */
const longest = () => 1;
const pauses = (redial: Redial, lives: (number | undefined)[]) => lives.map((lived) => redial.after(lived));

describe('the pause before dialling again', () => {
  it('is none after a connection that lived well, however often', () => {
    expect(pauses(new Redial(longest), [1000, 5000, 3_600_000, 1000])).toEqual([0, 0, 0, 0]);
  });

  it('is none after the first connection that came up, however short it lived', () => {
    expect(new Redial(longest).after(0)).toBe(0);
  });

  it('is there at once when the server does not answer, doubles, and stops at two seconds', () => {
    const redial = new Redial(longest);
    expect(pauses(redial, Array(9).fill(undefined))).toEqual([20, 40, 80, 160, 320, 640, 1280, 2000, 2000]);
    expect(pauses(redial, Array(2000).fill(undefined)).every((ms) => ms === 2000)).toBe(true);
  });

  it('grows while the server greets and hangs up, and stops at half a second: work is waiting', () => {
    expect(pauses(new Redial(longest), Array(8).fill(10))).toEqual([0, 40, 80, 160, 320, 500, 500, 500]);
  });

  it('goes on from where it was when a short life follows no answer', () => {
    expect(pauses(new Redial(longest), [undefined, undefined, 999, undefined])).toEqual([20, 40, 80, 160]);
  });

  it('starts over after a good life', () => {
    const redial = new Redial(longest);
    pauses(redial, Array(20).fill(undefined));
    expect(pauses(redial, [1000, undefined, undefined])).toEqual([0, 40, 80]);
  });

  it('is spread over its upper half', () => {
    const drawn = (random: number, lived?: number) => {
      const redial = new Redial(() => random);
      for (let n = 0; n < 20; n++) redial.after(undefined);
      return redial.after(lived);
    };
    expect([drawn(0), drawn(0.5), drawn(1)]).toEqual([1000, 1500, 2000]);
    expect([drawn(0, 5), drawn(0.5, 5), drawn(1, 5)]).toEqual([250, 375, 500]);
    const own = Array.from({ length: 200 }, () => new Redial().after(undefined));
    expect(Math.min(...own)).toBeGreaterThanOrEqual(10);
    expect(Math.max(...own)).toBeLessThanOrEqual(20);
    expect(new Set(own).size).toBeGreaterThan(100);
  });
});
