import { afterEach, beforeEach } from '@jest/globals';
import type { ClusterSource } from '../../lib/wire/client-factory.js';
import type { RedisProcess } from '../../scripts/server/redis-process.js';
import type { ProxiedConnection } from '../support/proxied-connection.js';
import { FaultProxy } from '../support/proxy.js';
import type { ClusterStage } from './cluster-stage.js';

/** A fault proxy before each node of a cluster, new ones for each test of a spec. */
export interface ProxiedCluster {
  readonly connection: ClusterSource;
  /** Past the proxies. */
  readonly direct: ClusterSource;
  /** The one before the node that holds a queue. */
  proxyOf(queue: string): Promise<FaultProxy>;
  /** Lets the network before that node go dark behind every connection that is open now, both ways, for good. */
  darken(queue: string): Promise<void>;
}

/** The node of three that holds a queue. */
export async function nodeOf({ set }: ClusterStage, queue: string): Promise<RedisProcess> {
  const slot = Number(await set.nodes[0]!.command('CLUSTER', 'KEYSLOT', `emq:{${queue}}:pending`));
  return set.nodes[Math.floor((slot * 3) / 16_384)]!;
}

/** Call it after `useRig()`, so that engines are closed while the proxies still work, and before `guardLeaks()`. */
export function useProxiedCluster(stage: ClusterStage): ProxiedCluster {
  const proxies = new Map<RedisProcess, FaultProxy>();
  const seen = new Map<FaultProxy, Set<ProxiedConnection>>();
  beforeEach(async () => {
    for (const node of stage.set.nodes) {
      const proxy = await FaultProxy.listen(node);
      const connections = new Set<ProxiedConnection>();
      proxy.onRequest((_command, connection) => {
        connections.add(connection);
        return undefined;
      });
      proxies.set(node, proxy);
      seen.set(proxy, connections);
    }
  });
  afterEach(async () => {
    await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
    proxies.clear();
    seen.clear();
  });
  const proxyOf = async (queue: string) => proxies.get(await nodeOf(stage, queue))!;
  return {
    get connection() {
      const at = ({ port }: { port: number }) => ({ host: '127.0.0.1', port });
      const ends = new Map([...proxies].map(([node, proxy]) => [`${node.host}:${node.port}`, at(proxy)]));
      // One that knows of no other address: what is mapped already is not to be mapped again.
      const natMap = (address: string) => ends.get(address) ?? at({ port: 1 });
      return { cluster: [...proxies.values()].map(at), options: { natMap } };
    },
    get direct() {
      return { cluster: stage.set.nodes.map(({ host, port }) => ({ host, port })) };
    },
    proxyOf,
    async darken(queue) {
      for (const { toServer, toClient } of seen.get(await proxyOf(queue))!) {
        toServer.setShut(true);
        toClient.setShut(true);
      }
    },
  };
}
