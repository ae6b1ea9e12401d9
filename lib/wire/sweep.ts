import type { QueueKeys } from '../kernel/keyspace.js';
import type { Connection } from './connection.js';
import { array, type Reply, text } from './reply.js';

const BATCH = 500;
const REPEATABLE = { resend: true };

/** Deletes every key of a queue that is left, also those in no set. Walks the whole keyspace, in small steps. */
export async function sweep(connection: Connection, keys: QueueKeys): Promise<void> {
  const pattern = `${keys.base.replace(/[\\*?[\]^-]/g, '\\$&')}*`;
  let cursor = '0';
  do {
    const [next, found] = array(await connection.scan(keys, cursor, pattern, BATCH)) as [Reply, Reply];
    const left = array(found) as Buffer[];
    if (left.length > 0) await connection.call('UNLINK', left, REPEATABLE);
    cursor = text(next);
  } while (cursor !== '0');
}
