import { AsyncResource } from 'node:async_hooks';
import type { Clock, Timer } from '../kernel/clock.js';

interface Entry {
  due: number;
  fire: (() => void) | undefined;
}

const WORTH_CLEARING = 1000;

/**
 * Every timer of a process: lease renewal, the beat, exact run-at times, handler time limits. One timer of the clock
 * stands for all of them, set to the earliest; the others wait in a heap.
 */
export class Metronome {
  private readonly heap: Entry[] = [];
  private armed: Timer | undefined;
  private armedFor = Number.POSITIVE_INFINITY;
  private stopped = false;
  private cancelled = 0;
  /** One timer fires for many: each in our async context, not in that of whoever set the timer. */
  private readonly scope = new AsyncResource('EchoMqMetronome');

  constructor(private readonly clock: Clock) {}

  /** Milliseconds of the monotonic clock. */
  now(): number {
    return this.clock.monotonic();
  }

  /** Calls `fire` once, `ms` from now; never when stopped before. */
  after(ms: number, fire: () => void): Timer {
    const entry: Entry = { due: this.clock.monotonic() + ms, fire };
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
    this.heap.length = 0;
    this.cancelled = 0;
    this.armed?.cancel();
    this.armed = undefined;
  }

  /** Left in the heap until it comes to the top; or until there are more cancelled than waiting. */
  private cancel(entry: Entry): void {
    if (entry.fire === undefined) return;
    entry.fire = undefined;
    this.cancelled += 1;
    if (this.cancelled < WORTH_CLEARING || this.cancelled * 2 < this.heap.length) return;
    const waiting = this.heap.filter(({ fire }) => fire !== undefined);
    this.heap.length = 0;
    this.cancelled = 0;
    for (const kept of waiting) this.push(kept);
  }

  private arm(): void {
    this.dropCancelled();
    const first = this.heap[0];
    const due = first?.due ?? Number.POSITIVE_INFINITY;
    if (due === this.armedFor) return;
    this.armed?.cancel();
    this.armed = undefined;
    this.armedFor = due;
    if (first) this.armed = this.clock.after(Math.max(0, due - this.clock.monotonic()), () => this.ring());
  }

  private ring(): void {
    this.armedFor = Number.POSITIVE_INFINITY;
    this.armed = undefined;
    const now = this.clock.monotonic();
    try {
      this.scope.runInAsyncScope(() => {
        while (this.heap[0] && this.heap[0].due <= now) this.fire(this.pop());
      });
    } finally {
      if (!this.stopped) this.arm();
    }
  }

  private dropCancelled(): void {
    while (this.heap[0] && this.heap[0].fire === undefined) {
      this.pop();
      this.cancelled -= 1;
    }
  }

  private fire(entry: Entry): void {
    const { fire } = entry;
    if (fire === undefined) {
      this.cancelled -= 1;
    } else {
      entry.fire = undefined; // a late cancel finds nothing to do
      fire();
    }
  }

  private push(entry: Entry): void {
    const { heap } = this;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.due <= entry.due) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  private pop(): Entry {
    const { heap } = this;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length > 0) {
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && heap[child + 1]!.due < heap[child]!.due) child += 1;
        if (heap[child]!.due >= last.due) break;
        heap[at] = heap[child]!;
        at = child;
      }
      heap[at] = last;
    }
    return first;
  }
}
