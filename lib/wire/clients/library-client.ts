import { Cluster, Redis } from 'ioredis';
import type { Arg, Reply } from '../reply.js';
import { Call } from './call.js';

/** What both kinds of client have in common. */
export abstract class LibraryClient<C extends Redis | Cluster> {
  /** Of a copy of the library that is not ours, perhaps of another version: it takes only commands that it has made. */
  private readonly foreign: boolean;

  constructor(protected readonly client: C) {
    this.foreign = !(client instanceof Redis || client instanceof Cluster);
    // The library prints errors that nobody listens to.
    client.on('error', () => undefined);
  }

  connect(): Promise<void> {
    return this.client.connect() as Promise<void>;
  }

  call(command: string, args: Arg[]): Promise<Reply> {
    if (this.foreign) return this.client.callBuffer(command, args as string[]) as Promise<Reply>;
    return this.client.sendCommand(new Call(command, args)) as Promise<Reply>;
  }

  send(command: string, args: Arg[], answer: (reply: Reply) => void, failure: (error: Error) => void): void {
    this.call(command, args).then(answer, failure);
  }

  onEnd(listener: () => void): void {
    this.client.once('end', listener);
  }

  onError(listener: (error: Error) => void): void {
    this.client.on('error', listener);
  }
}
