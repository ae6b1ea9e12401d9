import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { Metronome } from '../../lib/engine/metronome.js';
import type { Clock, Timer } from '../../lib/kernel/clock.js';

/** A clock that is moved by hand, and fires what is then due. */
class HandClock implements Clock {
  private nowMs = 1000;
  private readonly timers = new Map<object, { due: number; fire: () => void }>();

  wall(): number {
    return this.nowMs;
  }

  monotonic(): number {
    return this.nowMs;
  }

  after(ms: number, fire: () => void): Timer {
    const key = {};
    this.timers.set(key, { due: this.nowMs + ms, fire });
    return { cancel: () => void this.timers.delete(key) };
  }

  /** Timers set and not yet fired or cancelled. */
  get set(): number {
    return this.timers.size;
  }

  /** Time passes, and at its end whatever is due fires. */
  pass(ms: number): void {
    this.nowMs += ms;
    for (;;) {
      const due = [...this.timers].find(([, timer]) => timer.due <= this.nowMs);
      if (!due) return;
      this.timers.delete(due[0]);
      due[1].fire();
    }
  }
}

/** How many timers it holds, cancelled ones included. */
const held = (metronome: Metronome) => (Reflect.get(metronome, 'heap') as unknown[]).length;
const HOUR = 3_600_000;
const never = () => {
  throw new Error('a cancelled timer fired');
};

describe('the metronome', () => {
  it('fires in the order of time, by one timer of the clock at a time', () => {
    const clock = new HandClock();
    const metronome = new Metronome(clock);
    const fired: number[] = [];
    for (const ms of [50, 10, 40, 20, 30]) metronome.after(ms, () => fired.push(ms));
    expect(clock.set).toBe(1);
    clock.pass(25);
    expect(fired).toEqual([10, 20]);
    clock.pass(100);
    expect(fired).toEqual([10, 20, 30, 40, 50]);
    expect(clock.set).toBe(0);
  });

  it('keeps nothing of a timer that is cancelled, however far its time', () => {
    const clock = new HandClock();
    const metronome = new Metronome(clock);
    metronome.after(5, () => undefined); // the cancelled ones never come to the top
    let most = 0;
    for (let n = 0; n < 10_000; n++) {
      metronome.after(HOUR + n, never).cancel();
      most = Math.max(most, held(metronome));
    }
    expect(most).toBe(1);
    metronome.stop();
  });

  it('holds what waits and no more when timers are cancelled long after they were set', () => {
    const metronome = new Metronome(new HandClock());
    const timers = Array.from({ length: 10_000 }, (_, n) => metronome.after(HOUR - n, never));
    metronome.after(5, () => undefined);
    for (const timer of timers.slice(0, 9_990)) timer.cancel();
    expect(held(metronome)).toBe(11);
    metronome.stop();
  });

  it('fires what was not cancelled, once and in order, among thousands that were', () => {
    const clock = new HandClock();
    const metronome = new Metronome(clock);
    const fired: number[] = [];
    const timers = Array.from({ length: 10_000 }, (_, n) => {
      const ms = ((n * 7919) % 10_000) + 1;
      return { ms, timer: metronome.after(ms, () => fired.push(ms)) };
    });
    for (const { ms, timer } of timers) if (ms % 10 !== 0) timer.cancel();
    for (let n = 0; n < 100; n++) clock.pass(101);
    expect(fired).toEqual(Array.from({ length: 1_000 }, (_, n) => (n + 1) * 10));
    for (const { timer } of timers) timer.cancel(); // too late, and twice
    for (let n = 0; n < 3_000; n++) metronome.after(HOUR, never).cancel();
    metronome.after(5, () => fired.push(0));
    clock.pass(5);
    expect(fired.at(-1)).toBe(0);
    expect(clock.set).toBe(0);
  });

  it('goes on after a callback has thrown', () => {
    const clock = new HandClock();
    const metronome = new Metronome(clock);
    const fired: string[] = [];
    metronome.after(5, () => {
      throw new Error('boom');
    });
    metronome.after(6, () => fired.push('second'));
    metronome.after(50, () => fired.push('third'));
    expect(() => clock.pass(10)).toThrow('boom');
    clock.pass(0);
    clock.pass(40);
    expect(fired).toEqual(['second', 'third']);
  });

  it('fires in the async context it was made in, not in that of whoever set the timer', () => {
    const clock = new HandClock();
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const metronome = new Metronome(clock);
    requests.run('a request', () => metronome.after(5, () => seen.push(requests.getStore())));
    requests.run('whoever moves the clock', () => clock.pass(10));
    expect(seen).toEqual([undefined]);
  });

  it('fires nothing once stopped', () => {
    const clock = new HandClock();
    const metronome = new Metronome(clock);
    metronome.after(5, never);
    metronome.stop();
    metronome.after(5, never);
    clock.pass(10);
    expect(clock.set).toBe(0);
  });
});
