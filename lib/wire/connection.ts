import { AsyncResource } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../kernel/clock.js';
import { EchoError, EchoStateError, EchoTimeoutError } from '../kernel/errors.js';
import { base62 } from '../kernel/id.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { Redial } from '../kernel/reconnect.js';
import type { Client, ClientFactory, Scan } from './client.js';
import { asEchoError, connectionLost, isNotReady, isWrongNode, tagOf } from './faults.js';
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

/** Something that is sent, perhaps more than once. */
interface Call {
  readonly command: string;
  readonly args: Arg[];
  readonly options: CallOptions;
  /** Its time is over: whoever made it has been told. */
  passed?: boolean;
  /** While it waits for a connection. */
  waiting?: Waiter;
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
  /** Calls on the present client that are not answered, and since when there have been any, on the monotonic clock. */
  private unanswered = 0;
  private askedAt = 0;
  private pause: Timer | undefined;
  private readonly redial = new Redial();
  private upSince = 0;
  private lastAnswer = 0;
  private lastFault: EchoError | undefined;
  private nonce = '';
  private readonly runIds = new Map<string, string>();
  /** Sockets and what they tell belong to nobody's request, though the first one may be what connects. */
  private readonly scope = new AsyncResource('EchoMqConnection');

  constructor(
    private readonly factory: ClientFactory,
    private readonly clock: Clock,
    private readonly greeting: Greeting,
    /** Where time limits wait: most are cancelled, so a timer for each would be too many. */
    private readonly limits: Pick<Clock, 'after'> = clock,
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
    const { timeoutMs } = options;
    if (timeoutMs === undefined) return this.attempt({ command, args, options });
    const call: Call = { command, args, options, passed: false };
    return new Promise((resolve, reject) => {
      const limit = this.limit(timeoutMs, (error) => {
        call.passed = true;
        if (call.waiting) this.waiters.delete(call.waiting);
        reject(error);
      });
      this.attempt(call).then(
        (reply) => {
          limit.cancel();
          resolve(reply);
        },
        (error) => {
          limit.cancel();
          reject(error);
        },
      );
    });
  }

  /**
   * Sends one command once, on the connection that is there. Told in the moment the answer is read, with no promise in between and in
   * no particular async context: for what a job waits for.
   */
  callAtOnce(command: string, args: Arg[], answer: (reply: Reply) => void, failure: (error: EchoError) => void): void {
    const { client } = this;
    if (client === undefined) {
      setImmediate(failure, this.closed ? new EchoStateError('the connection is closed') : connectionLost());
      return;
    }
    this.asked();
    client.send(
      command,
      args,
      (reply) => {
        this.answered(client);
        answer(reply);
      },
      (error) => {
        this.failed(client, error);
        failure(this.faultOn(client, error));
      },
    );
  }

  /** Gives whoever waits for an answer an error when it takes too long; cancelled when it has come. */
  limit(timeoutMs: number, late: (error: EchoTimeoutError) => void): Timer {
    return this.limits.after(timeoutMs, () => late(this.timeout(timeoutMs)));
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
    return this.unanswered === 0 ? 0 : this.clock.monotonic() - Math.max(this.askedAt, this.lastAnswer);
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

  /** On the connection that is there, or the next one. Nothing but promises of one step each: it is in the way of every job. */
  private attempt(call: Call): Promise<Reply> {
    const { client } = this;
    if (client === undefined) return this.nextClient(call).then((next) => this.sendOn(next, call));
    return this.sendOn(client, call);
  }

  private sendOn(client: Client, call: Call): Promise<Reply> {
    this.asked();
    return new Promise((resolve) => {
      client.send(
        call.command,
        call.args,
        (reply) => {
          this.answered(client);
          resolve(reply);
        },
        (error) => {
          this.failed(client, error);
          resolve(this.afterFailure(client, call, error));
        },
      );
    });
  }

  private faultOn(client: Client, error: unknown): EchoError {
    const fault = this.client === client ? asEchoError(error) : lost(error);
    if (isWrongNode(error)) client.destroy();
    return fault;
  }

  private asked(): void {
    if (this.unanswered === 0) this.askedAt = this.clock.monotonic();
    this.unanswered += 1;
  }

  private answered(client: Client): void {
    if (this.client !== client) return; // with a client that has ended all were let go
    this.unanswered -= 1;
    this.lastAnswer = this.clock.monotonic();
  }

  private failed(client: Client, error: unknown): void {
    if (this.client !== client) return;
    this.unanswered -= 1;
    if (tagOf(error)) this.lastAnswer = this.clock.monotonic(); // a refusal is a sign of life
  }

  /** Sends it again as long as that helps and is allowed. @throws EchoError */
  private async afterFailure(client: Client, call: Call, error: unknown): Promise<Reply> {
    for (let failure = error; ; ) {
      const fault = this.faultOn(client, failure);
      if (this.closed || call.passed || !call.options.resend) throw fault;
      if (isNotReady(failure)) await this.sleep(NOT_READY_PAUSE_MS);
      else if (fault.code !== 'ECHO_UNREACHABLE') throw fault;
      else {
        call.options.onResend?.();
        // Its socket is gone and its end has not come through: trying again at once would keep it from ever coming.
        if (this.client === client) await this.sleep(END_PAUSE_MS);
      }
      if (call.passed) throw fault; // during the pause: the caller has been told, and it must not be sent any more
      client = this.client ?? (await this.nextClient(call));
      this.asked();
      try {
        const reply = await client.call(call.command, call.args);
        this.answered(client);
        return reply;
      } catch (next) {
        this.failed(client, next);
        failure = next;
      }
    }
  }

  private timeout(timeoutMs: number): EchoTimeoutError {
    const why = this.client
      ? 'the server has not answered'
      : `no connection (${this.lastFault?.message ?? 'connecting'})`;
    return new EchoTimeoutError(`gave up after ${timeoutMs} ms: ${why}`, this.lastFault);
  }

  private nextClient(call?: Call): Promise<Client> {
    if (this.closed) return Promise.reject(new EchoStateError('the connection is closed'));
    this.begin();
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { go: resolve, fail: reject };
      if (call) call.waiting = waiter;
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
    this.scope.runInAsyncScope(() => this.dial());
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
    this.unanswered = 0;
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
