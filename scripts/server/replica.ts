import { RedisProcess, type RedisProcessOptions } from './redis-process.js';
import { until } from './until.js';

/**
 * Starts a replica of `primary` and resolves once it has the primary's data and follows its writes.
 *
 * @throws Error when it does not come up, or has not synchronised within 10 s.
 */
export async function startReplica(primary: RedisProcess, options: RedisProcessOptions = {}): Promise<RedisProcess> {
  // Without a disk and without the pause in which a primary waits for more replicas, a first copy takes milliseconds.
  await primary.command('CONFIG', 'SET', 'repl-diskless-sync', 'yes');
  await primary.command('CONFIG', 'SET', 'repl-diskless-sync-delay', '0');
  const replica = await RedisProcess.start({
    ...options,
    config: { replicaof: `${primary.host} ${primary.port}`, ...options.config },
  });
  try {
    await until(async () => /master_link_status:up/.test(String(await replica.command('INFO', 'replication'))), {
      timeoutMs: 10_000,
      what: `the replica on port ${replica.port} to follow port ${primary.port}`,
    });
    return replica;
  } catch (error) {
    await replica.stop();
    throw error;
  }
}
