import { Cluster, type ClusterNode, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { show } from '../kernel/arguments.js';
import { EchoConfigError } from '../kernel/errors.js';
import { Call } from './call.js';
import { tagOf } from './faults.js';
import { type Arg, type Reply, text } from './reply.js';
import { Exchange } from './resp/exchange.js';

/** A cluster, by some of its nodes. `options` are those of the client library. */
export interface ClusterSource {
  cluster: ClusterNode[];
  options?: ClusterOptions;
}

/**
 * Where the server is: a `redis://` or `rediss://` URL, options of the client library (host, port, tls, sentinels, ...),
 * the nodes of a cluster, or a client whose settings are taken over; that client itself is neither used nor closed.
 */
export type ConnectionSource = string | RedisOptions | ClusterSource | Redis | Cluster;

/** One step through the keyspace of one node. */
export type Scan = (cursor: string, pattern: string, count: number) => Promise<Reply>;

/** One life of one connection. It does not reconnect, queue, or send anything twice: that is decided above it. */
export interface Client {
  readonly cluster: boolean;
  connect(): Promise<void>;
  /** Answers strings as bytes. Rejects with what the server said, or with another error when the socket has ended. */
  call(command: string, args: Arg[]): Promise<Reply>;
  /** The same for the hot path, without a promise: one of the two is called, later. */
  send(command: string, args: Arg[], answer: (reply: Reply) => void, failure: (error: Error) => void): void;
  /** `INFO <section>` of the node that holds `key`. */
  info(section: string, key: string): Promise<string>;
  /** `SCAN` on the node that holds `key`. */
  scan(key: string, cursor: string, pattern: string, count: number): Promise<Reply>;
  /** `SCAN` of each node that holds keys. */
  scans(): Scan[];
  subscribe(channels: string[]): Promise<void>;
  unsubscribe(channels: string[]): Promise<void>;
  /** What is published, as bytes: not all of it is text. */
  onMessage(listener: (channel: string, message: Buffer) => void): void;
  /** Called once, when the connection is over for whatever reason. */
  onEnd(listener: () => void): void;
  onError(listener: (error: Error) => void): void;
  /** Cluster only: a node has come or gone. The connection as a whole lives on, what is known of its nodes does not. */
  onNodes(listener: () => void): void;
  /** Bytes written between the two go out together. */
  cork(): void;
  uncork(): void;
  /** Ends it now, also when the other side is silent. */
  destroy(): void;
}

export interface ClientFactory {
  readonly cluster: boolean;
  make(role: 'commands' | 'subscriber'): Client;
}

/**
 * What makes a client safe here: a command is sent once, fails when its socket does, and is never held back. Time limits
 * of the library would end only its own side of a command.
 */
const OURS: RedisOptions = {
  lazyConnect: true,
  retryStrategy: () => null,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  maxRetriesPerRequest: null,
  reconnectOnError: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  disconnectTimeout: 100,
  stringNumbers: false,
  monitor: false,
  readOnly: false,
};

/** @throws EchoConfigError when the source is malformed, or has a `keyPrefix` */
export function clientFactory(source: ConnectionSource): ClientFactory {
  if (typeof source === 'string') return fromUrl(source);
  if (typeof source !== 'object' || source === null) {
    throw new EchoConfigError(`option 'connection' must be a URL, options or a client, got ${show(source)}`);
  }
  if (isCluster(source)) return fromClusterClient(source);
  if (isRedis(source)) {
    refuseKeyPrefix(source.options);
    return standalone((overrides) => source.duplicate(overrides));
  }
  if ('cluster' in source) return fromClusterSource(source);
  refuseKeyPrefix(source);
  return standalone((overrides) => new Redis({ ...source, ...overrides }));
}

function fromUrl(url: string): ClientFactory {
  let protocol: string;
  try {
    protocol = new URL(url).protocol;
  } catch {
    throw new EchoConfigError("option 'connection' is not a URL like redis://host:6379");
  }
  if (protocol !== 'redis:' && protocol !== 'rediss:') {
    throw new EchoConfigError(`option 'connection' must begin with redis:// or rediss://, not ${protocol}`);
  }
  if (/[?&]keyPrefix=/i.test(url)) refuseKeyPrefix({ keyPrefix: 'x' });
  return standalone((overrides) => new Redis(url, overrides));
}

function standalone(open: (overrides: RedisOptions) => Redis): ClientFactory {
  return {
    cluster: false,
    make: (role) => new RedisClient(open({ ...OURS, connectionName: `echomq:${role}` }), role === 'commands'),
  };
}

function fromClusterSource({ cluster, options = {} }: ClusterSource): ClientFactory {
  if (!Array.isArray(cluster) || cluster.length === 0) {
    throw new EchoConfigError("option 'connection.cluster' must list at least one node");
  }
  refuseKeyPrefix(options);
  refuseKeyPrefix(options.redisOptions ?? {});
  return clustered((overrides) => new Cluster(cluster, { ...options, ...overrides }), options);
}

function fromClusterClient(client: Cluster): ClientFactory {
  refuseKeyPrefix(client.options);
  refuseKeyPrefix(client.options.redisOptions ?? {});
  return clustered((overrides) => client.duplicate([], overrides), client.options);
}

function clustered(open: (overrides: ClusterOptions) => Cluster, given: ClusterOptions): ClientFactory {
  const { lazyConnect, retryStrategy, maxRetriesPerRequest, ...forNodes } = OURS;
  return {
    cluster: true,
    make: (role) =>
      new ClusterClient(
        open({
          lazyConnect: true,
          clusterRetryStrategy: () => null,
          enableOfflineQueue: false,
          enableAutoPipelining: false,
          shardedSubscribers: true,
          redisOptions: { ...given.redisOptions, ...forNodes, connectionName: `echomq:${role}` },
        } as ClusterOptions),
      ),
  };
}

function refuseKeyPrefix(options: { keyPrefix?: string | Buffer | undefined }): void {
  if (options.keyPrefix) {
    throw new EchoConfigError(
      "option 'connection' has a keyPrefix: it would be put before some keys and not before others. Use option 'prefix'",
    );
  }
}

function isRedis(source: object): source is Redis {
  return 'duplicate' in source && typeof source.duplicate === 'function' && 'options' in source;
}

function isCluster(source: object): source is Cluster {
  return isRedis(source) && 'isCluster' in source && source.isCluster === true;
}

abstract class LibraryClient<C extends Redis | Cluster> {
  /** Of a copy of the library that is not ours, perhaps of another version: it takes only commands that it has made. */
  private readonly foreign: boolean;

  constructor(protected readonly client: C) {
    this.foreign = !(client instanceof Redis || client instanceof Cluster);
    // The library prints errors that nobody listens to.
    client.on('error', () => undefined);
  }

  connect(): Promise<void> {
    return this.client.connect() as Promise<void>;
  }

  call(command: string, args: Arg[]): Promise<Reply> {
    if (this.foreign) return this.client.callBuffer(command, args as string[]) as Promise<Reply>;
    return this.client.sendCommand(new Call(command, args)) as Promise<Reply>;
  }

  send(command: string, args: Arg[], answer: (reply: Reply) => void, failure: (error: Error) => void): void {
    this.call(command, args).then(answer, failure);
  }

  onEnd(listener: () => void): void {
    this.client.once('end', listener);
  }

  onError(listener: (error: Error) => void): void {
    this.client.on('error', listener);
  }
}

class RedisClient extends LibraryClient<Redis> implements Client {
  readonly cluster = false;
  private ending = false;
  private exchange: Exchange | undefined;

  constructor(
    client: Redis,
    /** It sends nothing but calls. */
    private readonly callsOnly: boolean,
  ) {
    super(client);
  }

  override async connect(): Promise<void> {
    await super.connect();
    // The library selects the database too, but goes on in database 0 when that is refused.
    const { db } = this.client.options;
    if (db) await this.client.select(db);
    if (this.callsOnly) await this.takeOver();
  }

  override call(command: string, args: Arg[]): Promise<Reply> {
    if (this.exchange === undefined) return super.call(command, args);
    return new Promise((answer, failure) => this.send(command, args, answer, failure));
  }

  override send(command: string, args: Arg[], answer: (reply: Reply) => void, failure: (error: Error) => void): void {
    if (this.exchange === undefined) super.send(command, args, answer, failure);
    else this.exchange.send(command, args, answer, failure);
  }

  async info(section: string): Promise<string> {
    return text(await this.call('INFO', [section]));
  }

  /**
   * The library has connected and greeted, and goes on watching over the socket; from here on requests and answers are ours. What it
   * does for each of them would be half of what a call costs a process that has just been asleep.
   */
  private async takeOver(): Promise<void> {
    // Behind whatever it has sent by itself. Refused, it is answered too.
    await this.client.ping().catch((error) => {
      if (!tagOf(error)) throw error;
    });
    const { socket } = this;
    if (socket === undefined) return; // ended meanwhile, or a library that keeps it elsewhere: then it goes on as it is
    const theirs = socket.listeners('data');
    this.exchange = new Exchange(socket);
    for (const listener of theirs) socket.off('data', listener as () => void);
    // Whatever a version of it may yet want to say by itself: its answer would be taken for that of a call.
    this.client.sendCommand = (command) => {
      command.reject(new Error('this connection takes no commands of the client library any more'));
      return command.promise;
    };
  }

  scan(_key: string, cursor: string, pattern: string, count: number): Promise<Reply> {
    return this.call('SCAN', [cursor, 'MATCH', pattern, 'COUNT', count]);
  }

  scans(): Scan[] {
    return [(...step) => this.scan('', ...step)];
  }

  async subscribe(channels: string[]): Promise<void> {
    await this.client.subscribe(...channels);
  }

  async unsubscribe(channels: string[]): Promise<void> {
    await this.client.unsubscribe(...channels);
  }

  onMessage(listener: (channel: string, message: Buffer) => void): void {
    this.client.on('messageBuffer', (channel: Buffer, message: Buffer) => listener(channel.toString(), message));
  }

  onNodes(): void {
    // one node, which comes and goes with the client
  }

  cork(): void {
    this.socket?.cork();
  }

  uncork(): void {
    this.socket?.uncork();
  }

  destroy(): void {
    // An ended client would only start the timer that waits for its socket to close, and each call listens to the socket anew.
    if (this.client.status === 'end') return;
    if (!this.ending) this.client.disconnect();
    this.ending = true;
    // disconnect() says goodbye and waits for the other side; a silent one would keep the socket for minutes.
    this.socket?.destroy();
  }

  private get socket(): import('node:net').Socket | undefined {
    return (this.client as unknown as { stream?: import('node:net').Socket }).stream;
  }
}

class ClusterClient extends LibraryClient<Cluster> implements Client {
  readonly cluster = true;
  private subscribed = false;

  override async connect(): Promise<void> {
    await super.connect();
    if (this.client.status !== 'ready') {
      await new Promise<void>((resolve, reject) => {
        this.client.once('ready', resolve);
        this.client.once('end', () => reject(new Error('no node of the cluster answered')));
      });
    }
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
