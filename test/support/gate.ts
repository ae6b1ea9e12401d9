import type { Socket } from 'node:net';

/** One direction of one proxied connection: passes bytes on in order, each no earlier than its time, none while shut. */
export class Gate {
  private readonly queue: { bytes: Buffer; dueMs: number }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private shut = false;
  private ending = false;

  constructor(private readonly to: Socket) {}

  /** Passes bytes on after `delayMs`, and never before what was sent earlier. */
  send(bytes: Buffer, delayMs: number): void {
    this.queue.push({ bytes, dueMs: performance.now() + delayMs });
    this.flush();
  }

  /** Ends the far side once everything sent so far has passed. */
  end(): void {
    this.ending = true;
    this.flush();
  }

  /** Holds everything back, or lets it go again. */
  setShut(shut: boolean): void {
    this.shut = shut;
    this.flush();
  }

  /** Forgets what is still held. */
  drop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.queue.length = 0;
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    while (!this.shut && this.queue.length > 0) {
      const leftMs = this.queue[0]!.dueMs - performance.now();
      if (leftMs > 0) {
        this.timer = setTimeout(() => this.flush(), Math.ceil(leftMs));
        return;
      }
      this.to.write(this.queue.shift()!.bytes);
    }
    if (this.ending && this.queue.length === 0) this.to.end();
  }
}
