import { type Clock, systemClock } from '../../lib/kernel/clock.js';

/** The system's clock, of which each hand can be set ahead; timers that are set already fire when they would have. */
export class SkewedClock implements Clock {
  private aheadMs = { wall: 0, monotonic: 0 };

  wall(): number {
    return systemClock.wall() + this.aheadMs.wall;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.aheadMs.monotonic;
  }

  after(ms: number, fire: () => void) {
    return systemClock.after(ms, fire);
  }

  /** As after a time in which this process did not run. */
  skip(ms: number, hands: readonly ('wall' | 'monotonic')[] = ['wall', 'monotonic']): void {
    for (const hand of hands) this.aheadMs[hand] += ms;
  }
}
