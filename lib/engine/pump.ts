import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../kernel/clock.js';
import type { Codec } from '../kernel/codec.js';
import { EchoConfigError, type EchoError, EchoStateError } from '../kernel/errors.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import type { ClientFactory } from '../wire/client.js';
import type { Connection } from '../wire/connection.js';
import type { Executor } from '../wire/executor.js';
import type { EventFrame } from '../wire/frames.js';
import { type Hearing, Subscriber, type SubscriberEvents } from '../wire/subscriber.js';
import type { EnqueueItem } from '../wire/transitions/index.js';
import { Beat, type Earliest } from './beat.js';
import type { EngineBus } from './bus.js';
import { Consumer, type ConsumerHost } from './consumer.js';
import type { ConsumerSettings } from './consumer-options.js';
import type { Flows } from './flows.js';
import type { Handler } from './handler.js';
import type { Metronome } from './metronome.js';
import type { SlotFiring } from './slot-firing.js';
import type { Waits } from './waits.js';
import { Watchdog } from './watchdog.js';

export interface PumpParts {
  connection: Connection;
  executor: Executor;
  flows: Flows;
  waits: Pick<Waits, 'settled' | 'listening'>;
  bus: Pick<EngineBus, 'happened' | 'listening'>;
  slots: SlotFiring;
  keyspace: Keyspace;
  metronome: Metronome;
  clock: Clock;
  codec: Codec;
  maxPayloadBytes: number;
  factory: ClientFactory;
  process: string;
  /** Claims carry an epoch on this wire. */
  epochs: boolean;
  fault(error: EchoError): void;
}

/**
 * Owns a process's consumers: hears of work on one connection for all of them, sends what a turn of the event loop has
 * gathered, and keeps the beat.
 */
export class Pump implements ConsumerHost, SubscriberEvents {
  readonly executor: Executor;
  readonly flows: Flows;
  readonly slots: SlotFiring;
  readonly keyspace: Keyspace;
  readonly metronome: Metronome;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly maxPayloadBytes: number;
  readonly process: string;
  private readonly consumers = new Map<string, Consumer>();
  /** Closed by somebody before us, and not yet done. */
  private readonly leaving = new Set<Consumer>();
  private readonly pulse: Beat;
  private subscriber: Subscriber | undefined;
  private marked = new Set<Consumer>();
  private readonly watchdog: Watchdog;
  private closing = false;
  /** The async context handlers start in: this object's, not that of whoever happened to enqueue just then. */
  private readonly scope = new AsyncResource('EchoMq');
  private runId: string | undefined;

  constructor(private readonly parts: PumpParts) {
    this.executor = parts.executor;
    this.flows = parts.flows;
    this.slots = parts.slots;
    this.keyspace = parts.keyspace;
    this.metronome = parts.metronome;
    this.clock = parts.clock;
    this.codec = parts.codec;
    this.maxPayloadBytes = parts.maxPayloadBytes;
    this.process = parts.process;
    this.watchdog = new Watchdog(parts.metronome, parts.connection, () => this.subscriber, parts.fault);
    this.pulse = new Beat(this, parts.connection.cluster, () => parts.clock.monotonic());
    parts.connection.listen({ up: () => this.reconnected(), down: () => undefined });
  }

  get isUp(): boolean {
    return this.parts.connection.isUp;
  }

  /** @throws EchoConfigError when the queue has a consumer already */
  serve(keys: QueueKeys, settings: ConsumerSettings, handler: Handler): Consumer {
    if (this.closing) throw new EchoStateError('this EchoMq is closing: it consumes nothing more');
    if (this.consumers.has(keys.queue)) {
      throw new EchoConfigError(
        `queue '${keys.queue}' has a consumer in this process already: one serves it, with slots`,
      );
    }
    const consumer = new Consumer(this, keys, settings, handler);
    this.consumers.set(keys.queue, consumer);
    this.pulse.add(consumer);
    this.listenFor(keys, 'work');
    return consumer;
  }

  /** The consumers, by queue. */
  get serving(): ReadonlyMap<string, Consumer> {
    return this.consumers;
  }

  /** Queues whose beat this process leads. */
  get leading(): string[] {
    return this.pulse.leading;
  }

  /** Since when a queue's beat has been due or unanswered, by the monotonic clock; undefined when the last one was answered. */
  beatOwedSince(queue: string): number | undefined {
    return this.pulse.owedSince(queue);
  }

  /** Closes every consumer. `others` resolves without the handler it is called from, `all` with it. */
  close(): { others: Promise<unknown>; all: Promise<unknown> } {
    this.closing = true;
    const consumers = [...this.consumers.values(), ...this.leaving];
    return {
      others: Promise.all(consumers.map((consumer) => consumer.close())),
      all: Promise.all(consumers.map((consumer) => consumer.drained())),
    };
  }

  /** Ends the timers and the subscriber, after the consumers are done. */
  async end(): Promise<void> {
    this.watchdog.stop();
    this.pulse.stop();
    await this.subscriber?.close();
  }

  epoch(keys: QueueKeys): string | undefined {
    return this.parts.epochs ? this.parts.connection.epoch(keys) : undefined;
  }

  stepAside(keys: QueueKeys): void {
    // Failing, it costs a needless wake-up.
    this.parts.connection.call('ZREM', [keys.hungry, this.process], { resend: false }).catch(() => undefined);
  }

  /** Sends jobs of a queue; its consumer here, when idle, claims behind them. */
  around<T>(queue: string, send: () => T): T {
    const consumer = this.consumers.get(queue);
    return consumer === undefined ? send() : consumer.behind(send);
  }

  /** Would a job be handed to a consumer here at once? */
  isWaiting(queue: string): boolean {
    return this.consumers.get(queue)?.claims.isWaiting ?? false;
  }

  /** Lands a job in the hands of this process, where it waits for one; false where it does not, and nothing is done. */
  dispatch(queue: string, item: EnqueueItem, told: (landed: boolean | EchoError) => void): boolean {
    return this.consumers.get(queue)?.claims.dispatch(item, told) ?? false;
  }

  /** Listens for the end of a queue's jobs, or for all that happens to them, on the connection that consumers listen on. */
  follow(keys: QueueKeys, hears: Exclude<Hearing, 'work'>): void {
    this.watchdog.start();
    this.listenFor(keys, hears);
  }

  unfollow(keys: QueueKeys, hears: Exclude<Hearing, 'work'>): void {
    this.subscriber?.remove(keys, hears);
  }

  inScope<T>(act: () => T): T {
    return this.scope.runInAsyncScope(act);
  }

  mark(consumer: Consumer): void {
    if (this.marked.size === 0) setImmediate(() => this.turn());
    this.marked.add(consumer);
  }

  async withdraw(consumer: Consumer): Promise<void> {
    this.consumers.delete(consumer.queue);
    this.leaving.add(consumer);
    queueMicrotask(() => consumer.drained().then(() => this.leaving.delete(consumer)));
    this.subscriber?.remove(consumer.keys, 'work');
    try {
      await this.pulse.remove(consumer);
    } catch (error) {
      this.fault(error as EchoError); // leadership then ends by itself
    }
  }

  fault(error: EchoError): void {
    this.parts.fault(error);
  }

  // What the subscriber hears.

  wake(queue: string): void {
    this.consumers.get(queue)?.claims.wake();
  }

  beat(queue: string, what: Earliest, inMs: number): void {
    this.pulse.sooner(queue, what, inMs);
  }

  leaderless(): void {
    if (!this.closing) this.pulse.soon();
  }

  owes(queue: string): void {
    this.pulse.owes(queue);
  }

  died(queue: string, id: string): void {
    this.pulse.died(queue, id);
  }

  cancelled(queue: string, id: string): void {
    this.consumers.get(queue)?.cancelled(id);
  }

  paused(queue: string): void {
    this.consumers.get(queue)?.queuePaused();
  }

  settled(queue: string, id: string): void {
    this.parts.waits.settled(queue, id);
  }

  happened(queue: string, frames: readonly EventFrame[]): void {
    this.parts.bus.happened(queue, frames);
  }

  listening(queue: string, hears: Hearing): void {
    if (hears === 'ends') this.parts.waits.listening(queue);
    else if (hears === 'events') this.parts.bus.listening(queue);
    else {
      this.pulse.soon();
      this.consumers.get(queue)?.claims.listen();
    }
  }

  private turn(): void {
    const consumers = this.marked;
    this.marked = new Set();
    this.parts.connection.inOneWrite(() =>
      this.inScope(() => {
        for (const consumer of consumers) consumer.turn();
      }),
    );
  }

  private listenFor(keys: QueueKeys, hears: Hearing): void {
    this.subscriber ??= new Subscriber(this.parts.factory, this.clock, this.process, this);
    const { subscriber } = this;
    this.inScope(() => subscriber.add(keys, hears));
  }

  private reconnected(): void {
    this.watchdog.start();
    const { runId } = this.parts.connection;
    // Another server: the old one may have been demoted without closing our other socket, on which we would hear nothing.
    if (this.runId !== undefined && runId !== this.runId) this.subscriber?.reset();
    this.runId = runId;
    if (this.consumers.size === 0) return;
    this.pulse.soon();
    for (const consumer of this.consumers.values()) consumer.reconnected();
  }
}
