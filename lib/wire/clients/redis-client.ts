import type { Socket } from 'node:net';
import type { Redis } from 'ioredis';
import type { Client, Scan } from '../client.js';
import { tagOf } from '../faults.js';
import { type Arg, type Reply, text } from '../reply.js';
import { Exchange } from '../resp/exchange.js';
import { LibraryClient } from './library-client.js';
import { Traffic } from './traffic.js';

/** Of one server. */
export class RedisClient extends LibraryClient<Redis> implements Client {
  readonly cluster = false;
  private ending = false;
  private exchange: Exchange | undefined;
  private traffic: Traffic | undefined;

  constructor(
    client: Redis,
    /** It sends nothing but calls. */
    private readonly callsOnly: boolean,
  ) {
    super(client);
  }

  override async connect(): Promise<void> {
    await super.connect();
    // The library selects the database too, but goes on in database 0 when that is refused.
    const { db } = this.client.options;
    if (db) await this.client.select(db);
    if (this.callsOnly) await this.takeOver();
  }

  override call(command: string, args: Arg[]): Promise<Reply> {
    if (this.exchange === undefined) return super.call(command, args);
    return new Promise((answer, failure) => this.send(command, args, answer, failure));
  }

  override send(command: string, args: Arg[], answer: (reply: Reply) => void, failure: (error: Error) => void): void {
    if (this.exchange === undefined) super.send(command, args, answer, failure);
    else this.exchange.send(command, args, answer, failure);
  }

  async info(section: string): Promise<string> {
    return text(await this.call('INFO', [section]));
  }

  /**
   * The library has connected and greeted, and goes on watching over the socket; from here on requests and answers are ours. What it
   * does for each of them would be half of what a call costs a process that has just been asleep.
   */
  private async takeOver(): Promise<void> {
    // Behind whatever it has sent by itself. Refused, it is answered too.
    await this.client.ping().catch((error) => {
      if (!tagOf(error)) throw error;
    });
    const { socket } = this;
    if (socket === undefined) return; // ended meanwhile, or a library that keeps it elsewhere: then it goes on as it is
    const theirs = socket.listeners('data');
    this.exchange = new Exchange(socket);
    for (const listener of theirs) socket.off('data', listener as () => void);
    // Whatever a version of it may yet want to say by itself: its answer would be taken for that of a call.
    this.client.sendCommand = (command) => {
      command.reject(new Error('this connection takes no commands of the client library any more'));
      return command.promise;
    };
  }

  scan(_key: string, cursor: string, pattern: string, count: number): Promise<Reply> {
    return this.call('SCAN', [cursor, 'MATCH', pattern, 'COUNT', count]);
  }

  scans(): Scan[] {
    return [(...step) => this.scan('', ...step)];
  }

  async subscribe(channels: string[]): Promise<void> {
    await this.client.subscribe(...channels);
  }

  async unsubscribe(channels: string[]): Promise<void> {
    await this.client.unsubscribe(...channels);
  }

  onMessage(listener: (channel: string, message: Buffer) => void): void {
    this.client.on('messageBuffer', (channel: Buffer, message: Buffer) => listener(channel.toString(), message));
  }

  onNodes(): void {
    // one node, which comes and goes with the client
  }

  cork(): void {
    this.socket?.cork();
  }

  uncork(): void {
    this.socket?.uncork();
  }

  movedSince(now: number): number {
    if (this.traffic === undefined && this.socket) this.traffic = new Traffic(this.socket);
    return this.traffic?.since(now) ?? Number.NEGATIVE_INFINITY;
  }

  endSilent(): void {
    this.destroy();
  }

  destroy(): void {
    // An ended client would only start the timer that waits for its socket to close, and each call listens to the socket anew.
    if (this.client.status === 'end') return;
    if (!this.ending) this.client.disconnect();
    this.ending = true;
    // disconnect() says goodbye and waits for the other side; a silent one would keep the socket for minutes.
    this.socket?.destroy();
  }

  private get socket(): Socket | undefined {
    return (this.client as unknown as { stream?: Socket }).stream;
  }
}
