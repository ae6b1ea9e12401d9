import { randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../kernel/clock.js';
import { EchoError, EchoStateError, EchoTimeoutError } from '../kernel/errors.js';
import { base62 } from '../kernel/id.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { Redial } from '../kernel/reconnect.js';
import type { Client, ClientFactory, Scan } from './client.js';
import { asEchoError, connectionLost, isNotReady, isWrongNode } from './faults.js';
import type { Arg, Reply } from './reply.js';

export interface CallOptions {
  /** Send it again after a connection loss: only for calls that may be repeated. */
  resend: boolean;
  /** Milliseconds until the caller gets an EchoTimeoutError; undefined waits as long as it takes. */
  timeoutMs?: number | undefined;
  /** Told before each repetition: an answer may then speak of what the first sending did. */
  onResend?: (() => void) | undefined;
}

export interface ConnectionEvents {
  /** Connected, the fence passed; again after every reconnect. */
  up(): void;
  down(reason: EchoError): void;
  /** Cluster only: what was learnt of queues may no longer hold. */
  nodesChanged?(): void;
}

const END_PAUSE_MS = 20;
const NOT_READY_PAUSE_MS = 100;
/** From the dial to the end of the greeting. A connection that goes dark in between would otherwise be waited for without end. */
export const GREETING_MS = 10_000;

/** Runs after connecting and before anything else is sent. Throws to refuse the server. */
export type Greeting = (client: Client) => Promise<void>;

interface Waiter {
  go(client: Client): void;
  fail(error: EchoError): void;
}

/**
 * The command connection of a process: one client at a time, replaced when its socket ends. Calls that arrive while there
 * is none wait for the next; calls in flight fail with it, and are sent again only when they said they may be.
 */
export class Connection {
  private client: Client | undefined;
  private dialling: Client | undefined;
  private begun = false;
  private closed = false;
  private readonly waiters = new Set<Waiter>();
  private readonly listeners = new Set<ConnectionEvents>();
  private readonly inFlight = new Map<number, number>();
  private sent = 0;
  private pause: Timer | undefined;
  private readonly redial = new Redial();
  private upSince = 0;
  private lastAnswer = 0;
  private lastFault: EchoError | undefined;
  private nonce = '';
  private readonly runIds = new Map<string, string>();

  constructor(
    private readonly factory: ClientFactory,
    private readonly clock: Clock,
    private readonly greeting: Greeting,
  ) {}

  get cluster(): boolean {
    return this.factory.cluster;
  }

  /** Cluster only: what `INFO server` says on the node that holds a queue, so that its epoch can name the run. */
  async learnQueue(keys: QueueKeys): Promise<void> {
    const server = (await this.client?.info('server', keys.base).catch(raise)) ?? '';
    const runId = /^run_id:(\w+)/m.exec(server)?.[1];
    if (runId) this.runIds.set(keys.base, runId);
  }

  /** Which run of which server we talk to; undefined in a cluster, and where the server does not say. */
  get runId(): string | undefined {
    return this.runIds.get('');
  }

  get isUp(): boolean {
    return this.client !== undefined;
  }

  /** For good: nothing is sent any more. */
  get isClosed(): boolean {
    return this.closed;
  }

  listen(events: ConnectionEvents): void {
    this.listeners.add(events);
  }

  /**
   * Resolves once connected. Under `once` the first attempt that fails rejects it; it goes on being tried.
   * @throws EchoWireError, EchoStoreError when refused; EchoTimeoutError after `timeoutMs`
   */
  async open(timeoutMs: number, once = false): Promise<void> {
    this.begin();
    await this.ready(timeoutMs, (fault) => once || !fault.retryable);
  }

  /**
   * The epoch a claim gives: the server's run id and a nonce drawn at this connect, so that no two claims ever share a
   * token, not even when a failover gives a number out again.
   */
  epoch(keys: QueueKeys): string {
    return `${this.runIds.get(this.cluster ? keys.base : '') ?? '-'}.${this.nonce}`;
  }

  /** Sends one command. @throws EchoError */
  call(command: string, args: Arg[], options: CallOptions): Promise<Reply> {
    if (this.closed) return Promise.reject(new EchoStateError('the connection is closed'));
    if (options.timeoutMs === undefined) return this.attempt(command, args, options, undefined);
    return this.withDeadline(command, args, options, options.timeoutMs);
  }

  /** The answer to something that was sent, if it comes in time. @throws EchoTimeoutError after `timeoutMs`, `late` called */
  inTime<T>(answer: Promise<T>, timeoutMs: number, late?: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.clock.after(timeoutMs, () => {
        late?.();
        reject(this.timeout(timeoutMs));
      });
      answer.then(
        (value) => {
          timer.cancel();
          resolve(value);
        },
        (error) => {
          timer.cancel();
          reject(error);
        },
      );
    });
  }

  /** One step through the keyspace of the node that holds a queue. */
  async scan(keys: QueueKeys, cursor: string, pattern: string, count: number): Promise<Reply> {
    const client = this.client ?? (await this.nextClient());
    return client.scan(keys.base, cursor, pattern, count).catch(raise);
  }

  /** The same for the whole keyspace, node by node. */
  async scans(): Promise<Scan[]> {
    const client = this.client ?? (await this.nextClient());
    return client.scans().map((scan) => (cursor, pattern, count) => scan(cursor, pattern, count).catch(raise));
  }

  /** Milliseconds in which nothing was answered although something was asked; 0 when nothing is. */
  get silentMs(): number {
    for (const since of this.inFlight.values()) return this.clock.monotonic() - Math.max(since, this.lastAnswer);
    return 0;
  }

  /** Destroys the socket, so that a new one is made. */
  reset(): void {
    this.client?.destroy();
  }

  cork(): void {
    this.client?.cork();
  }

  uncork(): void {
    this.client?.uncork();
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.pause?.cancel();
    const fault = new EchoStateError('the connection is closed');
    for (const waiter of this.waiters) waiter.fail(fault);
    this.waiters.clear();
    const client = this.client ?? this.dialling;
    if (client === undefined) return;
    await new Promise<void>((resolve) => {
      client.onEnd(resolve);
      client.destroy();
    });
  }

  private async attempt(
    command: string,
    args: Arg[],
    options: CallOptions,
    deadline: { passed: boolean; waiting?: Waiter | undefined } | undefined,
  ): Promise<Reply> {
    for (;;) {
      const client = this.client ?? (await this.nextClient(deadline));
      const ticket = this.sent++;
      this.inFlight.set(ticket, this.clock.monotonic());
      try {
        const reply = await client.call(command, args);
        this.lastAnswer = this.clock.monotonic();
        return reply;
      } catch (error) {
        const fault = this.client === client ? asEchoError(error) : lost(error);
        if (isWrongNode(error)) client.destroy();
        if (this.closed || deadline?.passed || !options.resend) throw fault;
        if (isNotReady(error)) await this.sleep(NOT_READY_PAUSE_MS);
        else if (fault.code !== 'ECHO_UNREACHABLE') throw fault;
        else {
          options.onResend?.();
          // Its socket is gone and its end has not come through: trying again at once would keep it from ever coming.
          if (this.client === client) await this.sleep(END_PAUSE_MS);
        }
        if (deadline?.passed) throw fault; // during the pause: the caller has been told, and it must not be sent any more
      } finally {
        this.inFlight.delete(ticket);
      }
    }
  }

  private withDeadline(command: string, args: Arg[], options: CallOptions, timeoutMs: number): Promise<Reply> {
    const deadline: { passed: boolean; waiting?: Waiter } = { passed: false };
    return this.inTime(this.attempt(command, args, options, deadline), timeoutMs, () => {
      deadline.passed = true;
      if (deadline.waiting) this.waiters.delete(deadline.waiting);
    });
  }

  private timeout(timeoutMs: number): EchoTimeoutError {
    const why = this.client
      ? 'the server has not answered'
      : `no connection (${this.lastFault?.message ?? 'connecting'})`;
    return new EchoTimeoutError(`gave up after ${timeoutMs} ms: ${why}`, this.lastFault);
  }

  private nextClient(deadline?: { waiting?: Waiter | undefined }): Promise<Client> {
    if (this.closed) return Promise.reject(new EchoStateError('the connection is closed'));
    this.begin();
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { go: resolve, fail: reject };
      if (deadline) deadline.waiting = waiter;
      this.waiters.add(waiter);
    });
  }

  private ready(timeoutMs: number, hopeless: (fault: EchoError) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void) => {
        timer.cancel();
        this.waiters.delete(waiter);
        this.listeners.delete(watch);
        finish();
      };
      const waiter: Waiter = { go: () => settle(resolve), fail: (error) => settle(() => reject(error)) };
      const watch: ConnectionEvents = {
        up: () => undefined,
        down: (fault) => {
          if (hopeless(fault)) settle(() => reject(fault));
        },
      };
      const timer = this.clock.after(timeoutMs, () => settle(() => reject(this.timeout(timeoutMs))));
      this.waiters.add(waiter);
      this.listeners.add(watch);
    });
  }

  /** The first use connects; from then on `ended` keeps it so. */
  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    this.dial();
  }

  private dial(): void {
    if (this.closed) return;
    const client = this.factory.make('commands');
    let lastError: Error | undefined;
    let greeted = false;
    this.dialling = client;
    const limit = this.clock.after(GREETING_MS, () => client.destroy());
    client.onError((error) => {
      lastError = error;
    });
    client.onEnd(() => {
      limit.cancel();
      this.ended(client, greeted, lastError);
    });
    client
      .connect()
      .then(() => this.learn(client))
      .then(() => this.greeting(client))
      .then(
        () => {
          greeted = true;
          limit.cancel();
          if (this.closed) client.destroy();
          else this.adopt(client);
        },
        (error) => {
          lastError ??= error as Error;
          client.destroy();
        },
      );
  }

  /** The server's run id, and whether it is a primary at all: a demoted one looks alive. */
  private async learn(client: Client): Promise<void> {
    this.forget();
    if (client.cluster) return;
    const [server, replication] = await Promise.all([client.info('server', ''), client.info('replication', '')]);
    if (isReplica(replication)) throw new Error('the server is a replica');
    const runId = /^run_id:(\w+)/m.exec(server)?.[1];
    if (runId) this.runIds.set('', runId);
  }

  /** A new epoch: another server, or another node, may stand where the last one did. */
  private forget(): void {
    this.nonce = base62(randomBytes(8).readBigUInt64BE());
    this.runIds.clear();
  }

  private adopt(client: Client): void {
    this.client = client;
    client.onNodes(() => {
      this.forget();
      for (const listener of this.listeners) listener.nodesChanged?.();
    });
    this.dialling = undefined;
    this.upSince = this.clock.monotonic();
    this.lastFault = undefined;
    const waiting = [...this.waiters];
    this.waiters.clear();
    for (const waiter of waiting) waiter.go(client);
    for (const listener of this.listeners) listener.up();
  }

  private ended(client: Client, greeted: boolean, error: Error | undefined): void {
    if (this.client === client) this.client = undefined;
    if (this.dialling === client) this.dialling = undefined;
    this.inFlight.clear();
    if (this.closed) return;
    this.lastFault = error ? asEchoError(error) : connectionLost();
    const pause = this.redial.after(greeted ? this.clock.monotonic() - this.upSince : undefined);
    this.pause = this.clock.after(pause, () => this.dial()); // before anybody is told: whatever they do, we come back
    for (const listener of this.listeners) listener.down(this.lastFault);
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }
}

function raise(error: unknown): never {
  throw asEchoError(error);
}

/** What `INFO replication` says of a server that only follows another. */
export function isReplica(replication: string): boolean {
  return /^role:(slave|replica)/m.test(replication);
}

/** A command failed because its socket ended, whatever words the client library finds for it. */
function lost(error: unknown): EchoError {
  const fault = asEchoError(error);
  return fault.code === 'ECHO_UNREACHABLE' ? connectionLost() : fault;
}
