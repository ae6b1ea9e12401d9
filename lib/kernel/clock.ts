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
/** What is left then is less than Node's timers know of: it passes in turns of the event loop. */
const SHORTEST_TIMEOUT_MS = 0.5;

class SystemTimer implements Timer {
  private timeout: NodeJS.Timeout | undefined;
  private immediate: NodeJS.Immediate | undefined;

  constructor(
    private readonly due: number,
    private readonly fire: () => void,
  ) {
    this.wait();
  }

  cancel(): void {
    clearTimeout(this.timeout);
    clearImmediate(this.immediate);
  }

  /** Node counts whole milliseconds, and may fire a fraction of one early; the nearest is at most half of one late. */
  private wait(): void {
    const left = this.due - performance.now();
    if (left < SHORTEST_TIMEOUT_MS) this.immediate = setImmediate(() => this.check());
    else this.timeout = setTimeout(() => this.check(), Math.min(Math.round(left), LONGEST_TIMEOUT_MS));
  }

  private check(): void {
    if (performance.now() < this.due) this.wait();
    else this.fire();
  }
}

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, fire) => new SystemTimer(performance.now() + ms, fire),
};
