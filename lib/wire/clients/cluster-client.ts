import type { Cluster, Redis } from 'ioredis';
import type { Client, Scan } from '../client.js';
import type { Arg, Reply } from '../reply.js';
import { Call } from './call.js';
import { LibraryClient } from './library-client.js';
import { NodeSilence } from './node-silence.js';

/** What the client library keeps to itself. */
interface Kept {
  /** Of each slot the addresses of its nodes, the primary's first. */
  readonly slots: string[][];
  natMapper(address: string): Address;
}

interface Address {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

/** Of the nodes of a cluster. */
export class ClusterClient extends LibraryClient<Cluster> implements Client {
  readonly cluster = true;
  private subscribed = false;
  /** How many connections to nodes have been lost so far. */
  private losses = 0;
  private readonly silences = new Map<Redis, NodeSilence>();

  constructor(client: Cluster) {
    super(client);
    client.on('+node', (node: Redis) => {
      this.silences.set(node, new NodeSilence(node));
      node.once('end', () => this.silences.delete(node));
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
    return (await this.nodeOf(key).info(section)) as string;
  }

  async scan(key: string, ...step: Parameters<Scan>): Promise<Reply> {
    return scanOf(this.nodeOf(key))(...step);
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

  nodesSilentMs(now: number): number {
    let longest = 0;
    for (const silence of this.silences.values()) {
      silence.look(now);
      longest = Math.max(longest, silence.ms);
    }
    return longest;
  }

  endSilent(limitMs: number): void {
    for (const silence of this.silences.values()) if (silence.ms > limitMs) silence.end();
  }

  destroy(): void {
    if (this.client.status !== 'end') this.client.disconnect();
  }

  /** For commands that name no key and so cannot be routed. */
  private nodeOf(key: string): Redis {
    const { slots, natMapper } = this.client as unknown as Kept;
    const slot = new Call('INFO', [key]).getSlot();
    const master = slots[slot]?.[0];
    const nodes = this.client.nodes('master');
    const at = (address: string) => nodes.find(({ options }) => addressOf(options) === address);
    // Where a node has told that a slot has moved, the library keeps the address as it was told, elsewhere as it is mapped.
    const node = master === undefined ? undefined : (at(master) ?? at(addressOf(natMapper.call(this.client, master))));
    if (node === undefined) throw new Error(`no node of the cluster holds slot ${slot}`);
    return node;
  }
}

function addressOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

function scanOf(node: Redis): Scan {
  return (cursor, pattern, count) =>
    node.callBuffer('SCAN', [cursor, 'MATCH', pattern, 'COUNT', String(count)]) as Promise<Reply>;
}
