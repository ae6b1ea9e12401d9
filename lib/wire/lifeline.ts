import { AsyncResource } from 'node:async_hooks';
import type { Clock, Timer } from '../kernel/clock.js';
import { type EchoError, EchoStateError, EchoTimeoutError } from '../kernel/errors.js';
import { Redial } from '../kernel/reconnect.js';
import type { Client, ClientFactory } from './client.js';
import { Epochs } from './epochs.js';
import { asEchoError, connectionLost } from './faults.js';

export interface ConnectionEvents {
  /** Connected, the fence passed; again after every reconnect. */
  up(): void;
  down(reason: EchoError): void;
  /** Cluster only: what was learnt of queues may no longer hold. */
  nodesChanged?(): void;
}

/** Runs after connecting and before anything else is sent. Throws to refuse the server. */
export type Greeting = (client: Client) => Promise<void>;

/** Somebody who waits for a connection. */
export interface Waiter {
  go(client: Client): void;
  fail(error: EchoError): void;
}

/** From the dial to the end of the greeting. A connection that goes dark in between would otherwise be waited for without end. */
export const GREETING_MS = 10_000;

/** Keeps a connection: one client at a time, the next when its socket has ended, with growing pauses. */
export class Lifeline {
  readonly epochs = new Epochs();
  private present: Client | undefined;
  private dialling: Client | undefined;
  private begun = false;
  private closed = false;
  private readonly waiters = new Set<Waiter>();
  private readonly listeners = new Set<ConnectionEvents>();
  private pause: Timer | undefined;
  private readonly redial = new Redial();
  private upSince = 0;
  private fault: EchoError | undefined;
  /** Sockets and what they tell belong to nobody's request, though the first one may be what connects. */
  private readonly scope = new AsyncResource('EchoMqConnection');

  constructor(
    private readonly factory: ClientFactory,
    private readonly clock: Clock,
    private readonly greeting: Greeting,
  ) {}

  /** Connected, and past the greeting. */
  get client(): Client | undefined {
    return this.present;
  }

  get isClosed(): boolean {
    return this.closed;
  }

  listen(events: ConnectionEvents): void {
    this.listeners.add(events);
  }

  /** The client that comes next; `told` takes the waiter, which {@link giveUp} sends away. @throws EchoStateError when closed */
  next(told?: (waiter: Waiter) => void): Promise<Client> {
    if (this.closed) return Promise.reject(closedFault());
    this.begin();
    return new Promise((go, fail) => {
      const waiter: Waiter = { go, fail };
      told?.(waiter);
      this.waiters.add(waiter);
    });
  }

  giveUp(waiter: Waiter): void {
    this.waiters.delete(waiter);
  }

  /** @throws EchoError when an attempt fails in a way that is `hopeless`; EchoTimeoutError after `timeoutMs` */
  ready(timeoutMs: number, hopeless: (fault: EchoError) => boolean): Promise<void> {
    this.begin();
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

  /** What to tell whoever has waited too long. */
  timeout(timeoutMs: number): EchoTimeoutError {
    const why = this.present ? 'the server has not answered' : `no connection (${this.fault?.message ?? 'connecting'})`;
    return new EchoTimeoutError(`gave up after ${timeoutMs} ms: ${why}`, this.fault);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.pause?.cancel();
    const fault = closedFault();
    for (const waiter of this.waiters) waiter.fail(fault);
    this.waiters.clear();
    const client = this.present ?? this.dialling;
    if (client === undefined) return;
    await new Promise<void>((resolve) => {
      client.onEnd(resolve);
      client.destroy();
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
    this.epochs.renew();
    if (client.cluster) return;
    const [server, replication] = await Promise.all([client.info('server', ''), client.info('replication', '')]);
    if (isReplica(replication)) throw new Error('the server is a replica');
    this.epochs.learn('', server);
  }

  private adopt(client: Client): void {
    this.present = client;
    client.onNodes(() => {
      this.epochs.renew();
      for (const listener of this.listeners) listener.nodesChanged?.();
    });
    this.dialling = undefined;
    this.upSince = this.clock.monotonic();
    this.fault = undefined;
    const waiting = [...this.waiters];
    this.waiters.clear();
    for (const waiter of waiting) waiter.go(client);
    for (const listener of this.listeners) listener.up();
  }

  private ended(client: Client, greeted: boolean, error: Error | undefined): void {
    if (this.present === client) this.present = undefined;
    if (this.dialling === client) this.dialling = undefined;
    if (this.closed) return;
    this.fault = error ? asEchoError(error) : connectionLost();
    const pause = this.redial.after(greeted ? this.clock.monotonic() - this.upSince : undefined);
    this.pause = this.clock.after(pause, () => this.dial()); // before anybody is told: whatever they do, we come back
    for (const listener of this.listeners) listener.down(this.fault);
  }
}

export function closedFault(): EchoStateError {
  return new EchoStateError('the connection is closed');
}

/** What `INFO replication` says of a server that only follows another. */
export function isReplica(replication: string): boolean {
  return /^role:(slave|replica)/m.test(replication);
}
