import { Cluster, type ClusterNode, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { show } from '../kernel/arguments.js';
import { EchoConfigError } from '../kernel/errors.js';
import type { ClientFactory } from './client.js';
import { ClusterClient } from './clients/cluster-client.js';
import { RedisClient } from './clients/redis-client.js';
import { checkClientOptions, checkOptions, checkUrl, refuseKeyPrefix } from './source-checks.js';

/** A cluster, by some of its nodes. `options` are those of the client library. */
export interface ClusterSource {
  cluster: ClusterNode[];
  options?: ClusterOptions | undefined;
}

/**
 * Where the server is: a `redis://` or `rediss://` URL, options of the client library (host, port, tls, sentinels, ...),
 * the nodes of a cluster, or a client whose settings are taken over; that client itself is neither used nor closed.
 */
export type ConnectionSource = string | RedisOptions | ClusterSource | Redis | Cluster;

/** As the constructors of the client library take it, where the compiler is exact about optional properties. */
type RedisSettings = RedisOptions & { replyMapping?: NonNullable<RedisOptions['replyMapping']> };
type ClusterSettings = ClusterOptions & { redisOptions?: RedisSettings };

/**
 * What makes a client safe here: a command is sent once, fails when its socket does, and is never held back. Time limits
 * of the library would end only its own side of a command.
 */
const OURS: RedisSettings = {
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

/** @throws EchoConfigError when the source is malformed, says no place or no database that can be, or has a `keyPrefix` */
export function clientFactory(source: ConnectionSource): ClientFactory {
  if (typeof source === 'string') {
    checkUrl(source);
    return standalone((overrides) => new Redis(source, overrides));
  }
  if (typeof source !== 'object' || source === null) {
    throw new EchoConfigError(`option 'connection' must be a URL, options or a client, got ${show(source)}`);
  }
  if (isCluster(source)) return fromClusterClient(source);
  if (isRedis(source)) {
    checkClientOptions(source.options);
    return standalone((overrides) => source.duplicate(overrides));
  }
  if ('cluster' in source) return fromClusterSource(source);
  checkOptions(source);
  return standalone((overrides) => new Redis({ ...source, ...overrides } as RedisSettings));
}

function standalone(open: (overrides: RedisSettings) => Redis): ClientFactory {
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
  return clustered((overrides) => new Cluster(cluster, { ...options, ...overrides } as ClusterSettings), options);
}

function fromClusterClient(client: Cluster): ClientFactory {
  refuseKeyPrefix(client.options);
  refuseKeyPrefix(client.options.redisOptions ?? {});
  return clustered((overrides) => client.duplicate([], overrides), client.options);
}

function clustered(open: (overrides: ClusterSettings) => Cluster, given: ClusterOptions): ClientFactory {
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
        } as ClusterSettings),
      ),
  };
}

function isRedis(source: object): source is Redis {
  return 'duplicate' in source && typeof source.duplicate === 'function' && 'options' in source;
}

function isCluster(source: object): source is Cluster {
  return isRedis(source) && 'isCluster' in source && source.isCluster === true;
}
