import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { Gate } from './gate.js';
import { RequestSplitter } from './request-splitter.js';

/**
 * What becomes of one command. `pass`: it goes on. `hold`: it waits, and all behind it on its connection, until released. `drop`: it is
 * lost. `last`: the server executes it, everything after it is lost, its reply too, then the connection is cut. `cut`: the
 * connection is cut before the server sees it.
 */
export type Verdict = 'pass' | 'hold' | 'drop' | 'last' | 'cut';

/** What a connection asks the proxy it belongs to. */
export interface ConnectionRules {
  /** Asked for every complete command, in order. */
  verdict(command: Buffer, connection: ProxiedConnection): Verdict;
  /** Delay for the next piece of traffic, in ms. */
  delayMs(): number;
  /** How long nothing more is read from an end that has sent so many bytes, in ms: it then notices that it must wait. */
  restMs(bytes: number): number;
  /** True while replies are lost. */
  dropsReplies(): boolean;
}

/** One client's connection through the proxy, and the connection to the server behind it. */
export class ProxiedConnection {
  readonly toServer: Gate;
  readonly toClient: Gate;
  /** Resolves once both ends are closed. */
  readonly closed: Promise<void>;
  private readonly server: Socket;
  private readonly requests = new RequestSplitter();
  private readonly held: Buffer[] = [];
  private holding = false;
  private lastMark: string | undefined;
  private seen = '';
  private readonly resting = new Map<Socket, NodeJS.Timeout | undefined>();

  constructor(
    private readonly client: Socket,
    target: { host: string; port: number },
    private readonly rules: ConnectionRules,
  ) {
    this.server = connect({ ...target, noDelay: true, allowHalfOpen: true });
    this.toServer = new Gate(this.server);
    this.toClient = new Gate(client);
    client.setNoDelay(true);
    client.on('data', (bytes) => {
      this.rest(client, bytes.length);
      this.fromClient(bytes);
    });
    client.on('end', () => this.toServer.end());
    this.server.on('data', (bytes) => {
      this.rest(this.server, bytes.length);
      this.fromServer(bytes);
    });
    this.server.on('end', () => this.toClient.end());
    const ends = [client, this.server].map((socket) => {
      socket.on('error', () => this.cut());
      return new Promise<void>((resolve) => socket.on('close', () => resolve()));
    });
    this.closed = Promise.all(ends).then(() => {});
  }

  /** Destroys both ends; what was under way is lost. */
  cut(): void {
    this.toServer.drop();
    this.toClient.drop();
    for (const timer of this.resting.values()) clearTimeout(timer);
    this.client.destroy();
    this.server.destroy();
  }

  /** Lets commands that a `hold` stopped go on; they are judged anew. */
  release(): void {
    this.holding = false;
    this.judge(this.held.splice(0));
  }

  private rest(socket: Socket, bytes: number): void {
    const ms = this.rules.restMs(bytes);
    if (ms === 0) return;
    socket.pause();
    this.resting.set(socket, Number.isFinite(ms) ? setTimeout(() => socket.resume(), ms) : undefined);
  }

  private fromClient(bytes: Buffer): void {
    const commands = this.requests.push(bytes);
    if (this.holding) this.held.push(...commands);
    else this.judge(commands);
  }

  private judge(commands: Buffer[]): void {
    for (const [index, command] of commands.entries()) {
      if (this.lastMark || this.client.destroyed) return;
      const verdict = this.rules.verdict(command, this);
      if (verdict === 'cut') this.cut();
      if (verdict === 'hold') {
        this.holding = true;
        this.held.push(...commands.slice(index));
        return;
      }
      if (verdict === 'pass' || verdict === 'last') this.toServer.send(command, this.rules.delayMs());
      if (verdict === 'last') this.markLast();
    }
  }

  /**
   * A server answers one connection in order, so the answer to a PING of ours behind the command proves that the command was
   * executed. The first reply bytes after it prove nothing: they may belong to an earlier command of the pipeline.
   */
  private markLast(): void {
    this.lastMark = randomUUID();
    this.toServer.send(Buffer.from(`*2\r\n$4\r\nPING\r\n$36\r\n${this.lastMark}\r\n`), 0);
  }

  private fromServer(bytes: Buffer): void {
    if (this.lastMark) {
      this.seen += bytes.toString('latin1');
      if (this.seen.includes(this.lastMark)) this.cut();
      this.seen = this.seen.slice(-this.lastMark.length);
    } else if (!this.rules.dropsReplies()) {
      this.toClient.send(bytes, this.rules.delayMs());
    }
  }
}
