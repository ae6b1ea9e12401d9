import { show } from '../kernel/arguments.js';
import type { Timer } from '../kernel/clock.js';
import type { Codec } from '../kernel/codec.js';
import { EchoArgumentError, type EchoError, EchoStateError } from '../kernel/errors.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';
import type { Connection } from '../wire/connection.js';
import { asEchoError } from '../wire/faults.js';
import type { EventFrame } from '../wire/frames.js';
import { Conditions } from './conditions.js';
import { failureText } from './failure-text.js';
import { asked } from './handler.js';
import type { Metronome } from './metronome.js';
import { inOwnContext } from './own-context.js';
import { eventOf, type QueueEvent } from './queue-event.js';

export interface EngineBusParts {
  readonly connection: Connection;
  readonly keyspace: Keyspace;
  readonly metronome: Metronome;
  readonly codec: Codec;
  readonly requestTimeoutMs: number;
  /** Subscribes to a queue's events; {@link EngineBus.listening} is called when that has taken effect. */
  follow(keys: QueueKeys): void;
  unfollow(keys: QueueKeys): void;
  /** Calls in the async context of the engine, not in that of whoever listened first. */
  inScope<T>(act: () => T): T;
  fault(error: EchoError): void;
}

/** May be asynchronous; nothing else that it answers is looked at. */
export type QueueEventListener = (event: QueueEvent) => unknown;

/** What {@link EngineBus.listen} answers. */
export interface Listening {
  /**
   * Resolves when nothing that happens from now on is missed. While the server is away it waits; closed before, it resolves all
   * the same.
   */
  readonly ready: Promise<void>;
  /** The listener is not called any more. Idempotent. */
  close(): void;
  /** Resolves when its asynchronous calls have ended, or after 10 s. */
  idle(): Promise<void>;
}

interface Listener {
  readonly call: QueueEventListener;
  /** Asynchronous calls that have not ended. */
  running: number;
}

/** A queue that is listened to. */
interface Heard {
  readonly keys: QueueKeys;
  readonly listeners: Set<Listener>;
  /** The server has acknowledged the channel. */
  subscribed: boolean;
  readonly ready: Promise<void>;
  nowReady(): void;
}

/** How long the server believes that somebody listens. */
const HEARD_MS = 30_000;
/** Said again so often: also where somebody has emptied the server, events then go on. */
const SAID_AGAIN_MS = 10_000;
const PAUSE_AFTER_FAULT_MS = 1000;
/** Time for what an asynchronous listener has begun. */
const LAST_CALLS_MS = 10_000;

/**
 * What happens to the jobs of queues, in whatever process, for whoever listens. Steps publish it only while somebody has said that
 * he listens; a process says so for each queue of its listeners and hears it on the connection on which it hears of work.
 *
 * Nothing is kept: what happens while nobody listens, or while the connection is away, is not told later.
 */
export class EngineBus {
  private readonly queues = new Map<string, Heard>();
  private readonly conditions = new Conditions();
  private timer: Timer | undefined;
  private closed = false;

  /** @internal */
  constructor(private readonly parts: EngineBusParts) {
    // A server that forgot, or another one: it has to be told anew.
    parts.connection.listen({ up: () => this.sayAll(), down: () => undefined });
  }

  /**
   * Calls `listener` with every event of a queue, from when `ready` has resolved until it is closed. Events of one step come in
   * its order, and steps in theirs. It is not waited for: one that is asynchronous runs for several events at a time. What it
   * throws, or rejects with, is told to `onError`.
   * @throws EchoArgumentError for what is no queue or no function, EchoStateError once the EchoMq is closed
   */
  listen(queue: string | Queue, listener: QueueEventListener): Listening {
    const keys = this.parts.keyspace.queue(queueName(queue));
    if (typeof listener !== 'function')
      throw new EchoArgumentError(`a listener must be a function, got ${show(listener)}`);
    if (this.closed) throw new EchoStateError('this EchoMq is closed');
    const heard = this.heard(keys);
    const added: Listener = { call: listener, running: 0 }; // the same function may listen twice
    heard.listeners.add(added);
    return { ready: heard.ready, close: () => this.leave(heard, added), idle: () => this.idle(added) };
  }

  /** @internal things have happened to jobs of a queue */
  happened(queue: string, frames: readonly EventFrame[]): void {
    const heard = this.queues.get(queue);
    if (heard === undefined) return;
    this.parts.inScope(() => {
      for (const frame of frames) {
        const event = eventOf(queue, frame, this.parts.codec);
        if (event === undefined) continue;
        for (const listener of [...heard.listeners]) if (heard.listeners.has(listener)) this.tell(event, listener);
      }
    });
  }

  /** @internal the server has acknowledged the channel; again after every reconnect */
  listening(queue: string): void {
    const heard = this.queues.get(queue);
    if (heard === undefined) return;
    heard.subscribed = true;
    this.say(heard);
  }

  /** @internal resolves when all that listen are ready, or after `ms` */
  async readyWithin(ms: number): Promise<void> {
    const ready = Promise.all([...this.queues.values()].map((heard) => heard.ready));
    await this.parts.metronome.within(ms, ready);
  }

  /** @internal */
  stop(): void {
    this.closed = true;
    this.timer?.cancel();
    for (const heard of this.queues.values()) heard.nowReady();
    this.queues.clear();
  }

  private heard(keys: QueueKeys): Heard {
    let heard = this.queues.get(keys.queue);
    if (heard === undefined) {
      let nowReady = () => {};
      const ready = new Promise<void>((resolve) => {
        nowReady = resolve;
      });
      heard = { keys, listeners: new Set(), subscribed: false, ready, nowReady };
      this.queues.set(keys.queue, heard);
      this.parts.follow(keys);
    }
    return heard;
  }

  /** That somebody listened is left to expire: others may. */
  private leave(heard: Heard, listener: Listener): void {
    heard.listeners.delete(listener);
    if (heard.listeners.size > 0 || this.queues.get(heard.keys.queue) !== heard) return;
    this.queues.delete(heard.keys.queue);
    this.parts.unfollow(heard.keys);
    heard.nowReady();
    if (this.queues.size > 0) return;
    this.timer?.cancel();
    this.timer = undefined;
  }

  private idle(listener: Listener): Promise<void> {
    const ended = this.conditions.until(() => listener.running === 0);
    return this.parts.metronome.within(LAST_CALLS_MS, ended);
  }

  private sayAll(): void {
    const { connection } = this.parts;
    if (!connection.isUp) return; // when it is, all is said
    connection.inOneWrite(() => {
      for (const heard of this.queues.values()) if (heard.subscribed) this.say(heard);
    });
  }

  /** Tells the server that somebody listens. */
  private say(heard: Heard): void {
    const { connection, requestTimeoutMs, fault } = this.parts;
    this.timer ??= this.parts.metronome.after(SAID_AGAIN_MS, () => this.again());
    const options = { resend: true, timeoutMs: requestTimeoutMs };
    connection.call('SET', [heard.keys.heard, 1, 'PX', HEARD_MS], options).then(
      () => heard.nowReady(),
      (error) => {
        if (this.closed) return;
        fault(asEchoError(error));
        this.timer?.cancel();
        this.timer = this.parts.metronome.after(PAUSE_AFTER_FAULT_MS, () => this.again());
      },
    );
  }

  private again(): void {
    this.timer = undefined;
    if (this.queues.size === 0) return;
    this.timer = this.parts.metronome.after(SAID_AGAIN_MS, () => this.again());
    this.sayAll();
  }

  private tell(event: QueueEvent, listener: Listener): void {
    try {
      const answer = asked(inOwnContext(() => listener.call(event)));
      if (answer instanceof Promise) this.follow(event, listener, answer);
    } catch (thrown) {
      this.failed(event, thrown);
    }
  }

  private follow(event: QueueEvent, listener: Listener, answer: Promise<unknown>): void {
    listener.running += 1;
    answer
      .catch((thrown) => this.failed(event, thrown))
      .finally(() => {
        listener.running -= 1;
        this.conditions.changed();
      });
  }

  private failed({ event, queue }: QueueEvent, thrown: unknown): void {
    this.parts.fault(
      new EchoStateError(`a listener to the events of queue '${queue}' threw on '${event}': ${failureText(thrown)}`),
    );
  }
}
