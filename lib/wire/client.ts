import type { Arg, Reply } from './reply.js';

/** One step through the keyspace of one node. */
export type Scan = (cursor: string, pattern: string, count: number) => Promise<Reply>;

/** One life of one connection. It does not reconnect, queue, or (but for a cluster's) send anything twice: that is decided above it. */
export interface Client {
  readonly cluster: boolean;
  connect(): Promise<void>;
  /** Answers strings as bytes. Rejects with what the server said, or with another error when the socket has ended. */
  call(command: string, args: Arg[]): Promise<Reply>;
  /**
   * The same for the hot path, without a promise: one of the two is called, later. In a cluster `resent` is told before, when the
   * library may have sent it twice, as it does when a node's connection is lost.
   */
  send(
    command: string,
    args: Arg[],
    answer: (reply: Reply) => void,
    failure: (error: Error) => void,
    resent?: () => void,
  ): void;
  /** `INFO <section>` of the node that holds `key`. */
  info(section: string, key: string): Promise<string>;
  /** `SCAN` on the node that holds `key`. */
  scan(key: string, cursor: string, pattern: string, count: number): Promise<Reply>;
  /** `SCAN` of each node that holds keys. */
  scans(): Scan[];
  subscribe(channels: string[]): Promise<void>;
  unsubscribe(channels: string[]): Promise<void>;
  /** What is published, as bytes: not all of it is text. */
  onMessage(listener: (channel: string, message: Buffer) => void): void;
  /** Called once, when the connection is over for whatever reason. */
  onEnd(listener: () => void): void;
  onError(listener: (error: Error) => void): void;
  /** Cluster only: a node has come or gone. The connection as a whole lives on, what is known of its nodes does not. */
  onNodes(listener: () => void): void;
  /** Bytes written between the two go out together. */
  cork(): void;
  uncork(): void;
  /**
   * Bytes have come or left since this moment, by the clock that `now` is of, as far as somebody sees who looks now and then. -Infinity
   * when none have, and in a cluster, which has many sockets.
   */
  movedSince(now: number): number;
  /**
   * Cluster only: milliseconds in which a node that owes answers has given no sign of life, by the clock that `now` is of, as far as
   * somebody sees who looks now and then; of several nodes the longest. 0 when there is none.
   */
  nodesSilentMs?(now: number): number;
  /** Ends what has been silent for longer than this: in a cluster the connections to such nodes, otherwise all of it. */
  endSilent(limitMs: number): void;
  /** Ends it now, also when the other side is silent. */
  destroy(): void;
}

export interface ClientFactory {
  readonly cluster: boolean;
  make(role: 'commands' | 'subscriber'): Client;
}
