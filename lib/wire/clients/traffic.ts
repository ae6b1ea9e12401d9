import type { Socket } from 'node:net';

/** What Node counts of the bytes that were given to a socket, for its own time limits. */
interface Handle {
  readonly bytesWritten?: number;
  /** Of those, what has not left yet, also of a write that is half done. */
  readonly writeQueueSize?: number;
  /** With TLS, that of the socket beneath, by which the bytes leave one after the other. */
  readonly _parent?: Handle | null;
}

/** Whether bytes come or leave on a socket, as somebody sees who looks now and then: long answers and requests take their time. */
export class Traffic {
  private lookedAt = Number.NEGATIVE_INFINITY;
  private movedAt = Number.NEGATIVE_INFINITY;
  private read = 0;
  private left = 0;
  private waiting = false;

  constructor(private readonly socket: Socket) {}

  /** Something has moved since the moment that is answered, by the clock that `now` is of; -Infinity when nothing has. */
  since(now: number): number {
    const { bytesRead } = this.socket;
    const { bytesWritten = 0, writeQueueSize = 0 } = this.handle;
    const left = bytesWritten - writeQueueSize;
    // What the system takes at once says nothing: it does so too when the other side is dead. Once it takes no more, it makes room
    // only as the other side receives; and then it still holds much that is under way.
    if (this.waiting && left > this.left) this.movedAt = now;
    // When it came is not known: as of the earlier look, whoever goes silent half way is found no later than one who never began.
    else if (bytesRead > this.read) this.movedAt = this.lookedAt;
    this.read = bytesRead;
    this.left = left;
    this.waiting = writeQueueSize > 0;
    this.lookedAt = now;
    return this.movedAt;
  }

  private get handle(): Handle {
    const handle = (this.socket as unknown as { _handle?: Handle | null })._handle;
    return handle?._parent ?? handle ?? {};
  }
}
