import { AsyncResource } from 'node:async_hooks';
import type { Clock, Timer } from '../kernel/clock.js';

interface Entry {
  readonly due: number;
  readonly fire: () => void;
  /** Where it stands in the heap; -1 when it does not. */
  at: number;
}

/**
 * Every timer of a process: lease renewal, the beat, exact run-at times, handler time limits. One timer of the clock
 * stands for all of them, set to the earliest; the others wait in a heap.
 */
export class Metronome {
  private readonly heap: Entry[] = [];
  private armed: Timer | undefined;
  private armedFor = Number.POSITIVE_INFINITY;
  private stopped = false;
  /** One timer fires for many: each in our async context, not in that of whoever set the timer. */
  private readonly scope = new AsyncResource('EchoMqMetronome');

  constructor(private readonly clock: Clock) {}

  /** Milliseconds of the monotonic clock. */
  now(): number {
    return this.clock.monotonic();
  }

  /** Calls `fire` once, `ms` from now; never when stopped before. */
  after(ms: number, fire: () => void): Timer {
    const entry: Entry = { due: this.clock.monotonic() + ms, fire, at: -1 };
    if (!this.stopped) {
      this.push(entry);
      this.arm();
    }
    return { cancel: () => this.cancel(entry) };
  }

  /** Resolves when it is done, or after `ms`, whichever is first. */
  within(ms: number, done: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.after(ms, resolve);
      done.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  stop(): void {
    this.stopped = true;
    for (const entry of this.heap) entry.at = -1;
    this.heap.length = 0;
    this.armed?.cancel();
    this.armed = undefined;
  }

  /**
   * Out of the heap at once. Left there until it is due, it would live long enough for the compiler to make its like, and all that is
   * made in one go with it, among what is old: what a call carries was then collected with all the memory only.
   */
  private cancel(entry: Entry): void {
    if (entry.at >= 0) this.takeOut(entry);
  }

  /** An earlier one than needed, for what was cancelled, is left: it finds nothing due, and sets the next. */
  private arm(): void {
    const first = this.heap[0];
    if (first === undefined || first.due >= this.armedFor) return;
    this.armed?.cancel();
    this.armedFor = first.due;
    this.armed = this.clock.after(Math.max(0, first.due - this.clock.monotonic()), () => this.ring());
  }

  private ring(): void {
    this.armedFor = Number.POSITIVE_INFINITY;
    this.armed = undefined;
    const now = this.clock.monotonic();
    try {
      this.scope.runInAsyncScope(() => {
        for (let first = this.heap[0]; first && first.due <= now; first = this.heap[0]) {
          this.takeOut(first);
          first.fire();
        }
      });
    } finally {
      if (!this.stopped) this.arm();
    }
  }

  private push(entry: Entry): void {
    this.heap.push(entry);
    this.rise(entry, this.heap.length - 1);
  }

  private takeOut(entry: Entry): void {
    const { heap } = this;
    const { at } = entry;
    entry.at = -1;
    const last = heap.pop()!;
    if (last === entry) return;
    if (at > 0 && heap[(at - 1) >> 1]!.due > last.due) this.rise(last, at);
    else this.sink(last, at);
  }

  /** Puts it at a place that is free, or above. */
  private rise(entry: Entry, from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.heap[parent]!.due <= entry.due) break;
      this.put(this.heap[parent]!, at);
      at = parent;
    }
    this.put(entry, at);
  }

  /** Or below. */
  private sink(entry: Entry, from: number): void {
    const { heap } = this;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.due < heap[child]!.due) child += 1;
      if (heap[child]!.due >= entry.due) break;
      this.put(heap[child]!, at);
      at = child;
    }
    this.put(entry, at);
  }

  private put(entry: Entry, at: number): void {
    this.heap[at] = entry;
    entry.at = at;
  }
}
