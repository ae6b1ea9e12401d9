import type { Clock, Timer } from '../kernel/clock.js';
import { type EchoError, EchoStoreError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { Redial } from '../kernel/reconnect.js';
import type { Client, ClientFactory } from './client.js';
import { asEchoError, tagOf } from './faults.js';
import { type EventFrame, readFrames } from './frames.js';
import { GREETING_MS, isReplica } from './lifeline.js';

export interface SubscriberEvents {
  /** Something may be claimable. */
  wake(queue: string): void;
  /** A new earliest time in so many milliseconds: a job's, a slot of a repeating schedule, or a lane's that a rate holds back. */
  beat(queue: string, what: 'run' | 'slot' | 'park', inMs: number): void;
  /** Nobody leads the queue any more. */
  leaderless(queue: string): void;
  /** Something is owed to another queue. */
  owes(queue: string): void;
  cancelled(queue: string, id: string): void;
  /** A parent has died of one of its children. */
  died(queue: string, id: string): void;
  paused(queue: string): void;
  /** A job that somebody waits for has ended. */
  settled(queue: string, id: string): void;
  /** Things have happened to jobs of a queue, in one step. */
  happened(queue: string, frames: readonly EventFrame[]): void;
  /** The server has acknowledged the channels of a queue: from now on nothing that `hears` speaks of is missed. */
  listening(queue: string, hears: Hearing): void;
  fault(error: EchoError): void;
}

/** What a process listens to a queue for: as its consumer, for the end of jobs, or for all that happens to jobs. */
export type Hearing = 'work' | 'ends' | 'events';

interface Channel {
  readonly keys: QueueKeys;
  readonly says: 'wake' | 'beat' | 'settled' | 'events';
}

/** Channels that are acknowledged: the one of the beat comes with that of the wake-ups. */
const HEARING: Record<Exclude<Channel['says'], 'beat'>, Hearing> = { wake: 'work', settled: 'ends', events: 'events' };

const CANCEL = 'cancel:';
const DIED = 'died:';
const SLOT = 'slot:';
const PARK = 'park:';

/**
 * The one connection on which a process hears of work, however many queues it serves. It has no commands in flight but
 * SUBSCRIBE and PING; when its socket ends a new one is made and every channel subscribed again.
 */
export class Subscriber {
  private client: Client | undefined;
  private up = false;
  private closed = false;
  private readonly redial = new Redial();
  private upSince: number | undefined;
  private pause: Timer | undefined;
  private pinged: number | undefined;
  /** By name, what it says. */
  private readonly channels = new Map<string, Channel>();

  constructor(
    private readonly factory: ClientFactory,
    private readonly clock: Clock,
    private readonly process: string,
    private readonly events: SubscriberEvents,
  ) {}

  /** Listens for a queue; `listening` says when that has taken effect, again after every reconnect. */
  add(keys: QueueKeys, hears: Hearing): void {
    const channels = this.channelsOf(keys, hears);
    for (const [name, channel] of channels) this.channels.set(name, channel);
    if (this.client === undefined && this.pause === undefined) this.dial();
    else if (this.client && this.up) this.send(this.client, channels);
  }

  remove(keys: QueueKeys, hears: Hearing): void {
    const names = this.channelsOf(keys, hears).map(([name]) => name);
    for (const name of names) this.channels.delete(name);
    if (this.client && this.up) this.client.unsubscribe(names).catch((error) => this.report(error));
  }

  /** Asks for a sign of life. */
  ping(): void {
    if (!this.client || !this.up || this.factory.cluster || this.pinged !== undefined) return;
    this.pinged = this.clock.monotonic();
    this.client.call('PING', []).then(
      () => {
        this.pinged = undefined;
      },
      (error) => {
        if (tagOf(error)) this.pinged = undefined; // BUSY, say: a refusal is a sign of life
      }, // otherwise the socket ended: `ended` sees to it
    );
  }

  /** Milliseconds a ping has been unanswered and no bytes have come; 0 when none is. */
  get silentMs(): number {
    const now = this.clock.monotonic();
    const moved = this.client?.movedSince(now) ?? 0;
    return this.pinged === undefined ? 0 : now - Math.max(this.pinged, moved);
  }

  /** Destroys the socket, so that a new one is made. */
  reset(): void {
    this.client?.destroy();
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.pause?.cancel();
    const { client } = this;
    if (client === undefined) return;
    await new Promise<void>((resolve) => {
      client.onEnd(resolve);
      client.destroy();
    });
  }

  private channelsOf(keys: QueueKeys, hears: Hearing): [name: string, channel: Channel][] {
    if (hears === 'ends') return [[keys.settledChannel, { keys, says: 'settled' }]];
    if (hears === 'events') return [[keys.eventsChannel, { keys, says: 'events' }]];
    return [
      [keys.wakeChannel(this.process), { keys, says: 'wake' }],
      [keys.beatChannel, { keys, says: 'beat' }],
    ];
  }

  private dial(): void {
    this.pause = undefined;
    if (this.closed) return;
    const client = this.factory.make('subscriber');
    this.client = client;
    const limit = this.clock.after(GREETING_MS, () => client.destroy());
    client.onMessage((channel, message) => this.hear(channel, message));
    client.onError((error) => this.report(error));
    client.onEnd(() => {
      limit.cancel();
      this.ended();
    });
    client
      .connect()
      .then(() => this.probe(client))
      .then(
        () => {
          limit.cancel();
          this.up = true;
          this.upSince = this.clock.monotonic();
          this.subscribeAll(client);
        },
        (error) => {
          if (tagOf(error)) this.report(error); // a failed connect has had its own error event
          client.destroy();
        },
      );
  }

  /** Scripts publish after they have written and so cannot fail there: whether they may is asked for beforehand. */
  private async probe(client: Client): Promise<void> {
    const [channel] = this.channels.values();
    if (!channel) return;
    const first = channel.keys;
    if (!client.cluster && isReplica(await client.info('replication', first.base))) {
      throw new Error('the server is a replica: nobody is woken through it');
    }
    await client.call(this.factory.cluster ? 'SPUBLISH' : 'PUBLISH', [first.beatChannel, 'probe']);
  }

  /** In a cluster the channels of one call must share a slot; elsewhere one call takes them all. */
  private subscribeAll(client: Client): void {
    const groups = new Map<string, [string, Channel][]>();
    for (const entry of this.channels) {
      const group = this.factory.cluster ? entry[1].keys.queue : '';
      const same = groups.get(group);
      if (same === undefined) groups.set(group, [entry]);
      else same.push(entry);
    }
    for (const group of groups.values()) this.send(client, group);
  }

  private send(client: Client, channels: [string, Channel][]): void {
    client.subscribe(channels.map(([name]) => name)).then(
      () => {
        for (const [name, channel] of channels) {
          // Not what was given up meanwhile, and perhaps asked for anew: that is acknowledged by itself.
          if (channel.says === 'beat' || this.channels.get(name) !== channel) continue;
          this.events.listening(channel.keys.queue, HEARING[channel.says]);
        }
      },
      (error) => {
        this.report(error);
        if (!this.closed) client.destroy();
      },
    );
  }

  private ended(): void {
    this.client = undefined;
    this.up = false;
    this.pinged = undefined;
    if (this.closed) return;
    const { upSince } = this;
    this.upSince = undefined;
    const pause = this.redial.after(upSince === undefined ? undefined : this.clock.monotonic() - upSince);
    this.pause = this.clock.after(pause, () => this.dial());
  }

  private hear(channel: string, bytes: Buffer): void {
    const heard = this.channels.get(channel);
    if (heard === undefined) return;
    const { queue } = heard.keys;
    if (heard.says === 'events') {
      this.events.happened(queue, readFrames(bytes));
      return;
    }
    const message = bytes.toString();
    if (heard.says === 'wake') this.events.wake(queue);
    else if (heard.says === 'settled') this.events.settled(queue, message);
    else if (message === 'lead') this.events.leaderless(queue);
    else if (message === 'relay') this.events.owes(queue);
    else if (message === 'pause') this.events.paused(queue);
    else if (message.startsWith(DIED)) this.events.died(queue, message.slice(DIED.length));
    else if (message.startsWith(CANCEL)) this.events.cancelled(queue, message.slice(CANCEL.length));
    else if (message.startsWith(SLOT)) this.events.beat(queue, 'slot', Number(message.slice(SLOT.length)));
    else if (message.startsWith(PARK)) this.events.beat(queue, 'park', Number(message.slice(PARK.length)));
    else this.events.beat(queue, 'run', Number(message));
  }

  private report(error: unknown): void {
    if (this.closed) return;
    const fault = asEchoError(error);
    const denied = tagOf(error) === 'NOPERM';
    this.events.fault(
      denied
        ? new EchoStoreError('NOPERM', `the user may not use the channels of the queue: ${fault.message}`, false, error)
        : fault,
    );
  }
}
