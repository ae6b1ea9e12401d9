import { RedisProcess, type RedisProcessOptions } from './redis-process.js';
import { startReplica } from './replica.js';
import { until } from './until.js';

/** What {@link startSentinel} may be told. */
export interface SentinelOptions {
  /** The name the primary is known by. Default `echomq`. */
  name?: string;
  /** Silence, in ms, after which the primary counts as down. Default 300. */
  downAfterMs?: number;
  /** Options of the two data servers. */
  server?: RedisProcessOptions;
}

/** One Sentinel over a primary and its replica. */
export interface SentinelSet {
  readonly name: string;
  readonly sentinel: RedisProcess;
  readonly primary: RedisProcess;
  readonly replica: RedisProcess;
  /** The port Sentinel names as the primary's now. */
  primaryPort(): Promise<number>;
  /** Stops all three. */
  stop(): Promise<void>;
}

/**
 * Starts a primary, a replica and one Sentinel (quorum 1) that knows both.
 *
 * A failover takes `downAfterMs` and, because Sentinels start their elections at random moments, up to 2 s more.
 *
 * @throws Error when one of the three does not come up; the others are stopped.
 */
export async function startSentinel(options: SentinelOptions = {}): Promise<SentinelSet> {
  const name = options.name ?? 'echomq';
  const started: RedisProcess[] = [];
  const stop = async () => {
    await Promise.all(started.map((server) => server.stop()));
  };
  const keep = (server: RedisProcess) => {
    started.push(server);
    return server;
  };
  try {
    const primary = keep(await RedisProcess.start(options.server));
    const replica = keep(await startReplica(primary, options.server));
    const sentinel = keep(await watch(name, primary, options.downAfterMs ?? 300));
    await until(async () => replicasSeen(await sentinel.command('SENTINEL', 'MASTER', name)) === 1, {
      timeoutMs: 10_000,
      what: 'Sentinel to discover the replica',
    });
    const primaryPort = async () => {
      const address = await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name);
      return Array.isArray(address) ? Number(address[1]) : Number.NaN;
    };
    return { name, sentinel, primary, replica, primaryPort, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function watch(name: string, primary: RedisProcess, downAfterMs: number): Promise<RedisProcess> {
  return RedisProcess.start({
    sentinel: true,
    config: {
      sentinel: [
        `monitor ${name} ${primary.host} ${primary.port} 1`,
        `down-after-milliseconds ${name} ${downAfterMs}`,
        `failover-timeout ${name} 3000`,
      ],
    },
  });
}

function replicasSeen(master: unknown): number {
  const fields = Array.isArray(master) ? master : [];
  return Number(fields[fields.indexOf('num-slaves') + 1]);
}
