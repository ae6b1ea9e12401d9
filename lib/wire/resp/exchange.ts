import type { Socket } from 'node:net';
import type { Arg, Reply } from '../reply.js';
import { ReplyReader } from './reader.js';
import { request } from './request.js';

/** A request that is not answered yet. */
interface Asked {
  answer(reply: Reply): void;
  failure(error: Error): void;
  next: Asked | undefined;
}

/**
 * Requests and answers over a socket that is connected and greeted: answers come in the order of the requests. When the socket ends,
 * what is not answered fails.
 */
export class Exchange {
  private first: Asked | undefined;
  private last: Asked | undefined;

  constructor(private readonly socket: Socket) {
    const reader = new ReplyReader({
      answer: (reply) => {
        const asked = this.shift();
        try {
          asked.answer(reply);
        } catch (error) {
          process.nextTick(raise, error); // a fault of whoever asked: nothing is wrong with what is read
        }
      },
      refusal: (error) => tell(this.shift(), error),
    });
    socket.on('data', (chunk: Buffer) => {
      try {
        reader.feed(chunk);
      } catch (error) {
        socket.destroy(error as Error); // what follows cannot be told apart
      }
    });
    socket.on('error', () => undefined); // its close follows
    socket.once('close', () => this.fail());
  }

  /** Later calls `answer`, or `failure` with a ReplyError when the server refuses, with another error when the socket has ended. */
  send(command: string, args: readonly Arg[], answer: (reply: Reply) => void, failure: (error: Error) => void): void {
    const { socket } = this;
    if (!socket.writable) {
      setImmediate(failure, ended());
      return;
    }
    const said = request(command, args); // first: what cannot be said is not waited for
    const asked: Asked = { answer, failure, next: undefined };
    if (this.last === undefined) this.first = asked;
    else this.last.next = asked;
    this.last = asked;
    socket.write(said, 'latin1');
  }

  private shift(): Asked {
    const asked = this.first;
    if (asked === undefined) throw new Error('the server answered what it was not asked');
    this.first = asked.next;
    if (asked.next === undefined) this.last = undefined;
    asked.next = undefined; // or one that has grown old would make all behind it grow old, for the garbage collection
    return asked;
  }

  private fail(): void {
    let asked = this.first;
    this.first = undefined;
    this.last = undefined;
    for (; asked !== undefined; asked = asked.next) tell(asked, ended());
  }
}

/** Whoever asked may throw; the others are told all the same. */
function tell(asked: Asked, error: Error): void {
  try {
    asked.failure(error);
  } catch (thrown) {
    process.nextTick(raise, thrown);
  }
}

function raise(error: unknown): never {
  throw error;
}

function ended(): Error {
  return new Error('the connection has ended');
}
