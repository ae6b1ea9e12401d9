/** The figures that the server keeps of itself, read on the benchmark's own connection. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';

/** Client name of the benchmark's own connections, so that they can be told from those of the library. */
export const OWN_CONNECTION = 'bench-control';

export function control(url: string, options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
  return new Redis(url, { connectionName: OWN_CONNECTION, ...options });
}

/** `INFO <section>` as a map. */
export async function info(redis: Redis, section: string): Promise<Map<string, string>> {
  const lines = (await redis.info(section)).split('\r\n');
  return new Map(
    lines.flatMap((line) => {
      const colon = line.indexOf(':');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
    }),
  );
}

/** CPU the server has used since its start, in microseconds. */
export async function serverCpuUs(redis: Redis): Promise<number> {
  const cpu = await info(redis, 'cpu');
  return (Number(cpu.get('used_cpu_user')) + Number(cpu.get('used_cpu_sys'))) * 1e6;
}

/** `used_memory`, once it has stood still: tables are resized, and the memory of closed clients is freed, a little later. */
export async function usedMemory(redis: Redis): Promise<number> {
  let before = -1;
  for (let look = 0; look < 100; look++) {
    const now = Number((await info(redis, 'memory')).get('used_memory'));
    if (now === before) return now;
    before = now;
    await sleep(100);
  }
  return before;
}

/** Empties the server, all databases. */
export async function flush(redis: Redis): Promise<void> {
  await redis.flushall('SYNC');
}

/** Keys of all databases. */
export async function keyCount(redis: Redis): Promise<number> {
  const keyspace = await info(redis, 'keyspace');
  return [...keyspace.values()].reduce((sum, line) => sum + Number(/keys=(\d+)/.exec(line)?.[1] ?? 0), 0);
}

export async function serverVersion(redis: Redis): Promise<string> {
  const server = await info(redis, 'server');
  const valkey = server.get('valkey_version');
  return valkey ? `Valkey ${valkey}` : `Redis ${server.get('redis_version')}`;
}
