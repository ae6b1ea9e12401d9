import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { Cluster } from 'ioredis';
import { type ClusterSet, startCluster } from '../../scripts/server/cluster.js';
import { until } from '../support/until.js';

/** Three nodes for the specs of a file, empty before each test, and a client of their own to look at them. */
export interface ClusterStage {
  readonly set: ClusterSet;
  readonly client: Cluster;
}

/** `config`: settings of each node. */
export function useCluster(config: Record<string, string> = {}): ClusterStage {
  let set: ClusterSet;
  let client: Cluster;
  beforeAll(async () => {
    set = await startCluster(3, { config });
    client = new Cluster(set.nodes.map(({ host, port }) => ({ host, port })));
    client.on('error', () => {});
    await until(() => client.status === 'ready', { what: 'the cluster client' });
  });
  afterAll(async () => {
    client.disconnect();
    await set.stop();
  });
  beforeEach(async () => {
    await Promise.all(set.nodes.map((node) => node.command('FLUSHALL')));
    // A test may have killed this client's connections too. It makes them anew on use, and the leak guard would count them.
    const masters = () => client.nodes('master').filter(({ status }) => status !== 'end');
    const answered = () => Promise.all(masters().map((node) => node.ping())).catch(() => []);
    await until(async () => (await answered()).length === set.nodes.length, {
      what: 'the cluster client on all nodes',
    });
  });
  return {
    get set() {
      return set;
    },
    get client() {
      return client;
    },
  };
}
