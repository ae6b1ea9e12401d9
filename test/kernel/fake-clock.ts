import type { Clock, Timer } from '../../lib/kernel/clock.js';

/** A clock that stands still, and whose two hands are moved apart at will. It fires no timers. */
export class FakeClock implements Clock {
  constructor(
    public wallMs: number,
    public monotonicMs = 5_000.5,
  ) {}

  wall(): number {
    return this.wallMs;
  }

  monotonic(): number {
    return this.monotonicMs;
  }

  after(): Timer {
    throw new Error('what is pure needs no timer');
  }

  /** Time passes as it should. */
  pass(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }
}
