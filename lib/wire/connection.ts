import type { Clock, Timer } from '../kernel/clock.js';
import type { EchoError, EchoTimeoutError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Client, ClientFactory, Scan } from './client.js';
import { asEchoError, connectionLost, isNotReady, isWrongNode, tagOf } from './faults.js';
import { type ConnectionEvents, closedFault, type Greeting, Lifeline, type Waiter } from './lifeline.js';
import type { Arg, Reply } from './reply.js';

export interface CallOptions {
  /** Send it again after a connection loss: only for calls that may be repeated. */
  resend: boolean;
  /** Milliseconds until the caller gets an EchoTimeoutError; undefined waits as long as it takes. */
  timeoutMs?: number | undefined;
  /** Told of each repetition, before its answer: that may then speak of what the first sending did. */
  onResend?: (() => void) | undefined;
}

const END_PAUSE_MS = 20;
const NOT_READY_PAUSE_MS = 100;

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
 * The command connection of a process. Calls that arrive while there is none wait for the next; calls in flight fail with their
 * socket, and are sent again only when they said they may be.
 */
export class Connection {
  private readonly lifeline: Lifeline;
  /** Calls on the present client that are not answered, and since when there have been any, on the monotonic clock. */
  private unanswered = 0;
  private askedAt = 0;
  private lastAnswer = 0;

  constructor(
    private readonly factory: ClientFactory,
    private readonly clock: Clock,
    greeting: Greeting,
    /** Where time limits wait: most are cancelled, so a timer for each would be too many. */
    private readonly limits: Pick<Clock, 'after'> = clock,
  ) {
    this.lifeline = new Lifeline(factory, clock, greeting);
    this.lifeline.listen({
      up: () => undefined,
      down: () => {
        this.unanswered = 0; // all of them fail with it
      },
    });
  }

  get cluster(): boolean {
    return this.factory.cluster;
  }

  /** Which run of which server we talk to; undefined in a cluster, and where the server does not say. */
  get runId(): string | undefined {
    return this.lifeline.epochs.runId('');
  }

  get isUp(): boolean {
    return this.lifeline.client !== undefined;
  }

  /** For good: nothing is sent any more. */
  get isClosed(): boolean {
    return this.lifeline.isClosed;
  }

  listen(events: ConnectionEvents): void {
    this.lifeline.listen(events);
  }

  /**
   * Resolves once connected. Under `once` the first attempt that fails rejects it; it goes on being tried.
   * @throws EchoWireError, EchoStoreError when refused; EchoTimeoutError after `timeoutMs`
   */
  open(timeoutMs: number, once = false): Promise<void> {
    return this.lifeline.ready(timeoutMs, (fault) => once || !fault.retryable);
  }

  /** The epoch that a claim gives. */
  epoch(keys: QueueKeys): string {
    return this.lifeline.epochs.of(this.cluster ? keys.base : '');
  }

  /** Cluster only: what `INFO server` says on the node that holds a queue, so that its epoch can name the run. */
  async learnQueue(keys: QueueKeys): Promise<void> {
    const server = (await this.lifeline.client?.info('server', keys.base).catch(raise)) ?? '';
    this.lifeline.epochs.learn(keys.base, server);
  }

  /** Sends one command. @throws EchoError */
  call(command: string, args: Arg[], options: CallOptions): Promise<Reply> {
    if (this.lifeline.isClosed) return Promise.reject(closedFault());
    const { timeoutMs } = options;
    if (timeoutMs === undefined) return this.attempt({ command, args, options });
    const call: Call = { command, args, options, passed: false };
    return new Promise((resolve, reject) => {
      const limit = this.limit(timeoutMs, (error) => {
        call.passed = true;
        if (call.waiting) this.lifeline.giveUp(call.waiting);
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
    const { client } = this.lifeline;
    if (client === undefined) {
      setImmediate(failure, this.lifeline.isClosed ? closedFault() : connectionLost());
      return;
    }
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
    this.asked();
  }

  /** Gives whoever waits for an answer an error when it takes too long; cancelled when it has come. */
  limit(timeoutMs: number, late: (error: EchoTimeoutError) => void): Timer {
    return this.limits.after(timeoutMs, () => late(this.lifeline.timeout(timeoutMs)));
  }

  /** One step through the keyspace of the node that holds a queue. */
  async scan(keys: QueueKeys, cursor: string, pattern: string, count: number): Promise<Reply> {
    const client = this.lifeline.client ?? (await this.nextClient());
    return client.scan(keys.base, cursor, pattern, count).catch(raise);
  }

  /** The same for the whole keyspace, node by node. */
  async scans(): Promise<Scan[]> {
    const client = this.lifeline.client ?? (await this.nextClient());
    return client.scans().map((scan) => (cursor, pattern, count) => scan(cursor, pattern, count).catch(raise));
  }

  /**
   * Milliseconds in which nothing was answered although something was asked; 0 when nothing is. Between two looks bytes that come, or
   * leave, are a sign of life as well. In a cluster each node is judged by itself, and the worst counts.
   */
  get silentMs(): number {
    const now = this.clock.monotonic();
    const { client } = this.lifeline;
    if (client?.nodesSilentMs) return client.nodesSilentMs(now);
    const moved = client?.movedSince(now) ?? 0;
    return this.unanswered === 0 ? 0 : now - Math.max(this.askedAt, this.lastAnswer, moved);
  }

  /** Destroys the socket, so that a new one is made; in a cluster those to nodes that have been silent for longer than this. */
  reset(limitMs: number): void {
    this.lifeline.client?.endSilent(limitMs);
  }

  /** What is sent in `act`, before it returns, leaves in one write. */
  inOneWrite<T>(act: () => T): T {
    const { client } = this.lifeline;
    client?.cork();
    try {
      return act();
    } finally {
      client?.uncork();
    }
  }

  close(): Promise<void> {
    return this.lifeline.close();
  }

  /** On the connection that is there, or the next one. Nothing but promises of one step each: it is in the way of every job. */
  private attempt(call: Call): Promise<Reply> {
    const { client } = this.lifeline;
    if (client === undefined) return this.nextClient(call).then((next) => this.sendOn(next, call));
    return this.sendOn(client, call);
  }

  private sendOn(client: Client, call: Call): Promise<Reply> {
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
        call.options.onResend,
      );
      this.asked();
    });
  }

  private faultOn(client: Client, error: unknown): EchoError {
    const fault = this.lifeline.client === client ? asEchoError(error) : lost(error);
    if (isWrongNode(error)) client.destroy();
    return fault;
  }

  private asked(): void {
    if (this.unanswered === 0) this.askedAt = this.clock.monotonic();
    this.unanswered += 1;
  }

  private answered(client: Client): void {
    if (this.lifeline.client !== client) return; // with a client that has ended all were let go
    this.unanswered -= 1;
    this.lastAnswer = this.clock.monotonic();
  }

  private failed(client: Client, error: unknown): void {
    if (this.lifeline.client !== client) return;
    this.unanswered -= 1;
    if (tagOf(error)) this.lastAnswer = this.clock.monotonic(); // a refusal is a sign of life
  }

  /** Sends it again as long as that helps and is allowed. @throws EchoError */
  private async afterFailure(client: Client, call: Call, error: unknown): Promise<Reply> {
    for (let failure = error; ; ) {
      const fault = this.faultOn(client, failure);
      if (this.lifeline.isClosed || call.passed || !call.options.resend) throw fault;
      if (isNotReady(failure)) await this.sleep(NOT_READY_PAUSE_MS);
      else if (fault.code !== 'ECHO_UNREACHABLE') throw fault;
      else {
        call.options.onResend?.();
        // Its socket is gone and its end has not come through: trying again at once would keep it from ever coming.
        if (this.lifeline.client === client) await this.sleep(END_PAUSE_MS);
      }
      if (call.passed) throw fault; // during the pause: the caller has been told, and it must not be sent any more
      client = this.lifeline.client ?? (await this.nextClient(call));
      this.asked();
      try {
        const reply = await sentOn(client, call);
        this.answered(client);
        return reply;
      } catch (next) {
        this.failed(client, next);
        failure = next;
      }
    }
  }

  private nextClient(call?: Call): Promise<Client> {
    return this.lifeline.next((waiter) => {
      if (call) call.waiting = waiter;
    });
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }
}

function sentOn(client: Client, { command, args, options }: Call): Promise<Reply> {
  return new Promise((answer, failure) => client.send(command, args, answer, failure, options.onResend));
}

function raise(error: unknown): never {
  throw asEchoError(error);
}

/** A command failed because its socket ended, whatever words the client library finds for it. */
function lost(error: unknown): EchoError {
  const fault = asEchoError(error);
  return fault.code === 'ECHO_UNREACHABLE' ? connectionLost() : fault;
}
