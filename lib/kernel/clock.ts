import { performance } from 'node:perf_hooks';

/** A pending timer; `cancel` is idempotent. */
export interface Timer {
  cancel(): void;
}

/**
 * Every reading of time goes through a clock, so that tests can own it.
 * `wall` can jump (NTP, an operator); `monotonic` cannot, but it may stand still while a machine is suspended.
 */
export interface Clock {
  /** Milliseconds since 1970, whole. */
  wall(): number;
  /** Milliseconds since an arbitrary moment, with a fraction; never goes back. */
  monotonic(): number;
  /** Calls `fire` once after `ms` milliseconds, not before. */
  after(ms: number, fire: () => void): Timer;
}

/** setTimeout takes at most 2^31 - 1 ms and fires at once beyond; longer waits are made of several. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

class SystemTimer implements Timer {
  private handle: NodeJS.Timeout;

  constructor(
    private readonly due: number,
    private readonly fire: () => void,
  ) {
    this.handle = this.arm();
  }

  cancel(): void {
    clearTimeout(this.handle);
  }

  private arm(): NodeJS.Timeout {
    const left = Math.ceil(this.due - performance.now());
    return setTimeout(() => this.check(), Math.min(Math.max(left, 0), LONGEST_TIMEOUT_MS));
  }

  private check(): void {
    // libuv compares whole milliseconds and can fire a fraction of one early.
    if (performance.now() < this.due) this.handle = this.arm();
    else this.fire();
  }
}

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, fire) => new SystemTimer(performance.now() + ms, fire),
};
