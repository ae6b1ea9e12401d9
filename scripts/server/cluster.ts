import { RedisProcess, type RedisProcessOptions } from './redis-process.js';
import { until } from './until.js';

/** Hash slots of every cluster. */
const SLOTS = 16_384;

/** Primaries that share all slots between them; no replicas. */
export interface ClusterSet {
  readonly nodes: readonly RedisProcess[];
  /** Stops all nodes. */
  stop(): Promise<void>;
}

/**
 * Starts a cluster of `size` primaries (default 3) and resolves once every node says that all slots are served.
 * Takes about 2 s: a fresh primary refuses to call a cluster healthy before that.
 *
 * @throws Error when a node does not come up or the nodes do not agree within 20 s; all are stopped.
 */
export async function startCluster(size = 3, options: RedisProcessOptions = {}): Promise<ClusterSet> {
  const config = { 'cluster-enabled': 'yes', 'cluster-node-timeout': '2000', ...options.config };
  const starts = await Promise.allSettled(
    Array.from({ length: size }, () => RedisProcess.start({ ...options, config })),
  );
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    await Promise.all(nodes.map((node, index) => assignSlots(node, index, size)));
    const [first, ...others] = nodes;
    await Promise.all(others.map((node) => first?.command('CLUSTER', 'MEET', node.host, node.port)));
    await until(async () => (await Promise.all(nodes.map((node) => agrees(node, size)))).every(Boolean), {
      timeoutMs: 20_000,
      what: `${size} nodes to form a cluster`,
    });
    return { nodes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** ADDSLOTSRANGE would be shorter, but servers before 7.0 do not know it. */
async function assignSlots(node: RedisProcess, index: number, size: number): Promise<void> {
  const from = Math.floor((SLOTS * index) / size);
  const to = Math.floor((SLOTS * (index + 1)) / size);
  await node.command('CLUSTER', 'ADDSLOTS', ...Array.from({ length: to - from }, (_, offset) => from + offset));
  // Different epochs from the start: equal ones are settled by an election that takes seconds.
  await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
}

async function agrees(node: RedisProcess, size: number): Promise<boolean> {
  const info = String(await node.command('CLUSTER', 'INFO'));
  const says = (line: string) => info.includes(`${line}\r\n`);
  return says('cluster_state:ok') && says(`cluster_slots_ok:${SLOTS}`) && says(`cluster_known_nodes:${size}`);
}
