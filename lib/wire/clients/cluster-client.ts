import type { Cluster, Redis } from 'ioredis';
import type { Client, Scan } from '../client.js';
import type { Arg, Reply } from '../reply.js';
import { LibraryClient } from './library-client.js';

/** Of the nodes of a cluster. */
export class ClusterClient extends LibraryClient<Cluster> implements Client {
  readonly cluster = true;
  private subscribed = false;
  /** How many connections to nodes have been lost so far. */
  private losses = 0;

  constructor(client: Cluster) {
    super(client);
    client.on('+node', (node: Redis) => {
      node.on('connect', () => {
        node.once('close', () => {
          this.losses += 1;
        });
      });
    });
  }

  override async connect(): Promise<void> {
    await super.connect();
    if (this.client.status !== 'ready') {
      await new Promise<void>((resolve, reject) => {
        this.client.once('ready', resolve);
        this.client.once('end', () => reject(new Error('no node of the cluster answered')));
      });
    }
  }

  /** Which calls were on their way to a node that is lost is not asked: few are on their way at all. */
  override send(
    command: string,
    args: Arg[],
    answer: (reply: Reply) => void,
    failure: (error: Error) => void,
    resent?: () => void,
  ): void {
    const { losses } = this;
    const told =
      <Outcome>(tell: (outcome: Outcome) => void) =>
      (outcome: Outcome) => {
        if (this.losses > losses) resent?.();
        tell(outcome);
      };
    super.send(command, args, told(answer), told(failure));
  }

  async info(section: string, key: string): Promise<string> {
    return (await (await this.nodeOf(key)).info(section)) as string;
  }

  async scan(key: string, ...step: Parameters<Scan>): Promise<Reply> {
    return scanOf(await this.nodeOf(key))(...step);
  }

  scans(): Scan[] {
    return this.client.nodes('master').map(scanOf);
  }

  async subscribe(channels: string[]): Promise<void> {
    if (!this.subscribed) {
      this.subscribed = true;
      // The library would subscribe again by itself and say nothing, and what was published meanwhile would be missed.
      this.client.once('-node', () => this.destroy());
    }
    await this.client.ssubscribe(...channels);
  }

  async unsubscribe(channels: string[]): Promise<void> {
    await this.client.sunsubscribe(...channels);
  }

  onMessage(listener: (channel: string, message: Buffer) => void): void {
    this.client.on('smessageBuffer', (channel: Buffer, message: Buffer) => listener(channel.toString(), message));
  }

  onNodes(listener: () => void): void {
    this.client.on('+node', listener);
    this.client.on('-node', listener);
  }

  cork(): void {
    // many sockets: nothing to gather
  }

  uncork(): void {
    // see cork
  }

  movedSince(): number {
    return Number.NEGATIVE_INFINITY;
  }

  destroy(): void {
    if (this.client.status !== 'end') this.client.disconnect();
  }

  /** For commands that name no key and so cannot be routed. */
  private async nodeOf(key: string): Promise<Redis> {
    const slot = integerOf(await this.client.call('CLUSTER', 'KEYSLOT', key));
    const master = (this.client as unknown as { slots: string[][] }).slots[slot]?.[0];
    const node = this.client.nodes('master').find((n) => `${n.options.host}:${n.options.port}` === master);
    if (node === undefined) throw new Error(`no node of the cluster holds slot ${slot}`);
    return node;
  }
}

function scanOf(node: Redis): Scan {
  return (cursor, pattern, count) =>
    node.callBuffer('SCAN', [cursor, 'MATCH', pattern, 'COUNT', String(count)]) as Promise<Reply>;
}

function integerOf(reply: unknown): number {
  return typeof reply === 'number' ? reply : Number(String(reply));
}
