import { createServer, type Server, type Socket } from 'node:net';
import { type ConnectionRules, ProxiedConnection, type Verdict } from './proxied-connection.js';

export type { Verdict } from './proxied-connection.js';

/** A direction of traffic: what clients send, or what the server answers. */
export type Direction = 'requests' | 'replies';

/** Sees every command on its way to the server, and may judge it. Nothing returned means `pass`. */
export type RequestHook = (command: Buffer, connection: ProxiedConnection) => Verdict | undefined;

/** When several hooks judge one command, the first of these counts. */
const STRICTEST_FIRST: readonly Verdict[] = ['cut', 'drop', 'hold', 'last'];

/**
 * A TCP proxy before a server, with faults on demand. Controls act at once, on open connections and on later ones. Commands are
 * recognised by a piece of their bytes: a command's name, a key, a script's hash.
 */
export class FaultProxy {
  private readonly connections = new Set<ProxiedConnection>();
  private readonly hooks = new Set<RequestHook>();
  private readonly shut: Record<Direction, boolean> = { requests: false, replies: false };
  private nextDelayMs: () => number = () => 0;
  private rest: (bytes: number) => number = () => 0;
  private losesReplies = false;
  private refuses = false;
  private readonly rules: ConnectionRules = {
    verdict: (command, connection) => this.judge(command, connection),
    delayMs: () => this.nextDelayMs(),
    restMs: (bytes) => this.rest(bytes),
    dropsReplies: () => this.losesReplies,
  };

  private constructor(
    private readonly listener: Server,
    private readonly target: URL,
  ) {
    listener.on('connection', (client) => this.open(client));
  }

  /**
   * Opens a proxy on a free port of 127.0.0.1.
   *
   * @param target the server's URL, or anything with its `host` and `port`.
   */
  static listen(target: string | { host: string; port: number }): Promise<FaultProxy> {
    return new Promise((resolve, reject) => {
      const listener = createServer({ allowHalfOpen: true });
      listener.once('error', reject);
      listener.listen(0, '127.0.0.1', () => {
        resolve(
          new FaultProxy(
            listener,
            new URL(typeof target === 'string' ? target : `redis://${target.host}:${target.port}`),
          ),
        );
      });
    });
  }

  /** The proxy's own port on 127.0.0.1. */
  get port(): number {
    return (this.listener.address() as { port: number }).port;
  }

  /** The server's URL with the proxy's address in it; credentials and database stay. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${this.port}`;
    return url.href;
  }

  /** How many connections go through the proxy now. */
  get size(): number {
    return this.connections.size;
  }

  /** Delays every piece of traffic, each way, by this many ms; a function is asked for each piece. Order is kept. 0 ends it. */
  delay(ms: number | (() => number)): void {
    this.nextDelayMs = typeof ms === 'function' ? ms : () => ms;
  }

  /**
   * Lets an end that has sent so many bytes rest for so many ms, in which nothing more is read from it, so that it has to wait; Infinity
   * is for good.
   */
  pace(rest: (bytes: number) => number): void {
    this.rest = rest;
  }

  /** Holds traffic back without closing anything, like a network gone dark. Default: both ways. */
  freeze(direction?: Direction): void {
    this.setShut(direction, true);
  }

  /** Lets what {@link freeze} held back go on, in order. */
  thaw(direction?: Direction): void {
    this.setShut(direction, false);
  }

  /** Passes requests and loses every reply, until called with false. */
  dropReplies(dropping = true): void {
    this.losesReplies = dropping;
  }

  /** Destroys all open connections; what was under way is lost. */
  cut(): void {
    for (const connection of this.connections) connection.cut();
  }

  /** Closes every new connection at once, until {@link accept}. Open ones stay. */
  refuse(): void {
    this.refuses = true;
  }

  /** Takes new connections again. */
  accept(): void {
    this.refuses = false;
  }

  /** Shows `hook` every command from now on. Returns its removal. */
  onRequest(hook: RequestHook): () => void {
    this.hooks.add(hook);
    return () => {
      this.hooks.delete(hook);
    };
  }

  /** Resolves with the next command that contains `text`, after it was passed on. */
  async request(text: string): Promise<Buffer> {
    return (await this.next(text, 'pass')).command;
  }

  /** Holds the next command that contains `text`, and all behind it on its connection. Resolves, once it came, with the way to let go. */
  async hold(text: string): Promise<{ release(): void }> {
    const { connection } = await this.next(text, 'hold');
    return { release: () => connection.release() };
  }

  /** Cuts the connection on which the next command with `text` comes, before the server sees it. Resolves after the cut. */
  async cutBefore(text: string): Promise<void> {
    await (await this.next(text, 'cut')).connection.closed;
  }

  /**
   * The server executes the next command that contains `text`, and the client cannot know: the reply is lost, with any that was still
   * under way before it, and the connection is cut. Resolves after the cut. A blocked command counts as executed once it unblocks.
   */
  async passAndDropReply(text: string): Promise<void> {
    await (await this.next(text, 'last')).connection.closed;
  }

  /** Cuts everything and stops listening. */
  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.listener.close(resolve));
  }

  private open(client: Socket): void {
    if (this.refuses) return void client.destroy();
    const connection = new ProxiedConnection(
      client,
      { host: this.target.hostname, port: Number(this.target.port || 6379) },
      this.rules,
    );
    this.connections.add(connection);
    connection.closed.then(() => this.connections.delete(connection));
    connection.toServer.setShut(this.shut.requests);
    connection.toClient.setShut(this.shut.replies);
  }

  private judge(command: Buffer, connection: ProxiedConnection): Verdict {
    const verdicts = [...this.hooks].map((hook) => hook(command, connection));
    return STRICTEST_FIRST.find((verdict) => verdicts.includes(verdict)) ?? 'pass';
  }

  private next(text: string, verdict: Verdict): Promise<{ command: Buffer; connection: ProxiedConnection }> {
    return new Promise((resolve) => {
      const forget = this.onRequest((command, connection) => {
        if (!command.includes(text)) return undefined;
        forget();
        resolve({ command, connection });
        return verdict;
      });
    });
  }

  private setShut(direction: Direction | undefined, shut: boolean): void {
    if (direction !== 'replies') this.shut.requests = shut;
    if (direction !== 'requests') this.shut.replies = shut;
    for (const connection of this.connections) {
      connection.toServer.setShut(this.shut.requests);
      connection.toClient.setShut(this.shut.replies);
    }
  }
}
