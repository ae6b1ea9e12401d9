import { type Clock, systemClock } from '../../lib/kernel/clock.js';

/** A clock on which everything takes a fraction of its time: what waits three seconds waits 3 / `factor`. */
export function fastClock(factor: number): Clock {
  const [wall, monotonic] = [systemClock.wall(), systemClock.monotonic()];
  return {
    wall: () => Math.floor(wall + (systemClock.wall() - wall) * factor),
    monotonic: () => monotonic + (systemClock.monotonic() - monotonic) * factor,
    after: (ms, fire) => systemClock.after(ms / factor, fire),
  };
}
