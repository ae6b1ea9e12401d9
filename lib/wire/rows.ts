import type { QueueKeys } from '../kernel/keyspace.js';
import type { Connection } from './connection.js';
import { array, type Reply, text } from './reply.js';

const BATCH = 500;

/** The ids of all rows of a queue, also those in no set, in batches. Walks the whole keyspace, in small steps. */
export async function* everyRow(connection: Connection, keys: QueueKeys): AsyncGenerator<string[]> {
  const start = keys.row('');
  const pattern = `${start.replace(/[\\*?[\]^-]/g, '\\$&')}*`;
  let cursor = '0';
  do {
    const [next, found] = array(await connection.scan(keys, cursor, pattern, BATCH)) as [Reply, Reply];
    const ids = array(found).map((key) => text(key).slice(start.length));
    if (ids.length > 0) yield ids;
    cursor = text(next);
  } while (cursor !== '0');
}
