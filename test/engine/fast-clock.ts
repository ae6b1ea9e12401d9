import { type Clock, systemClock } from '../../lib/kernel/clock.js';
import type { EchoError } from '../../lib/kernel/errors.js';

/** A clock on which everything takes a fraction of its time: what waits three seconds waits 3 / `factor`. */
export function fastClock(factor: number): Clock {
  const [wall, monotonic] = [systemClock.wall(), systemClock.monotonic()];
  return {
    wall: () => Math.floor(wall + (systemClock.wall() - wall) * factor),
    monotonic: () => monotonic + (systemClock.monotonic() - monotonic) * factor,
    after: (ms, fire) => systemClock.after(ms / factor, fire),
  };
}

/** `onError` for an engine on a fast clock, for which a second's limit is over so soon that a busy server misses it now and then. */
export const unlessLate = (tell: (error: EchoError) => void) => (error: EchoError) => {
  if (error.code !== 'ECHO_TIMEOUT' && !error.message.includes('gone silent')) tell(error);
};

/** A clock on which the next beat is a minute away: whoever gets a job while a test waits for it was woken, not helped by a beat. */
export const rareBeats = (): Clock => fastClock(1 / 20);
