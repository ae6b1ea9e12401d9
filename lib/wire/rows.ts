import type { QueueKeys } from '../kernel/keyspace.js';
import type { Connection } from './connection.js';
import { array, type Reply, text } from './reply.js';

const BATCH = 500;

/** The ids of all rows of a queue, also those in no set, in batches. Walks the whole keyspace, in small steps. */
export function everyRow(connection: Connection, keys: QueueKeys): AsyncGenerator<string[]> {
  return everyNamed(connection, keys, keys.row(''));
}

/** Frees the deduplication keys that are held by time: no row names them. Likewise. */
export async function freeEveryKey(connection: Connection, keys: QueueKeys): Promise<void> {
  const start = `${keys.base}dedup:`;
  for await (const names of everyNamed(connection, keys, start)) {
    await connection.call('UNLINK', [...names.map((name) => start + name)], { resend: true });
  }
}

/** What follows `start` in the names of keys, in batches. */
async function* everyNamed(connection: Connection, keys: QueueKeys, start: string): AsyncGenerator<string[]> {
  const pattern = `${start.replace(/[\\*?[\]^-]/g, '\\$&')}*`;
  let cursor = '0';
  do {
    const [next, found] = array(await connection.scan(keys, cursor, pattern, BATCH)) as [Reply, Reply];
    const names = array(found).map((key) => text(key).slice(start.length));
    if (names.length > 0) yield names;
    cursor = text(next);
  } while (cursor !== '0');
}
