import type { Socket } from 'node:net';
import type { Redis } from 'ioredis';
import { Traffic } from './traffic.js';

/** What the client library keeps of a connection. */
interface Kept {
  readonly stream?: Socket;
  /** Sent, and not answered yet. */
  readonly commandQueue?: { peekFront(): unknown };
}

/** A node of a cluster that owes answers and gives no sign of life, as somebody sees who looks now and then. */
export class NodeSilence {
  private socket: Socket | undefined;
  private traffic: Traffic | undefined;
  private oldest: unknown;
  private owesSince = 0;
  private lasted = 0;

  constructor(private readonly node: Redis) {}

  /** Milliseconds it has lasted at the last look, counted from the first look that found the oldest of what it owes. */
  get ms(): number {
    return this.lasted;
  }

  /** `now`: by a clock that is always the same. */
  look(now: number): void {
    const { stream, commandQueue } = this.node as unknown as Kept;
    if (stream !== this.socket) {
      this.socket = stream;
      this.traffic = stream && new Traffic(stream);
      this.oldest = undefined;
    }
    const moved = this.traffic?.since(now) ?? now;
    const oldest = commandQueue?.peekFront();
    // Not from the look before: behind a blocked event loop that would be long ago, and what is owed was asked for just now.
    if (oldest === undefined || oldest !== this.oldest) this.owesSince = now;
    this.oldest = oldest;
    this.lasted = now - Math.max(this.owesSince, moved);
  }

  /** What was not answered is sent again by the client library, to whichever node it finds then. */
  end(): void {
    this.socket?.destroy();
  }
}
