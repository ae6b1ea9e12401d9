import type { Keyspace } from '../kernel/keyspace.js';
import type { Connection } from './connection.js';
import { array, type Reply, text } from './reply.js';

const BATCH = 500;

/** Every key under a prefix, in batches: those of its queues, and its own. Walks the whole keyspace, in small steps. */
export async function* everyKey(connection: Connection, { prefix }: Keyspace): AsyncGenerator<string[]> {
  // A prefix has no character that means something in a pattern.
  for (const pattern of [`${prefix}:{*`, `{${prefix}}:*`]) {
    for (const scan of await connection.scans()) {
      let cursor = '0';
      do {
        const [next, found] = array(await scan(cursor, pattern, BATCH)) as [Reply, Reply];
        const keys = array(found).map((key) => text(key));
        if (keys.length > 0) yield keys;
        cursor = text(next);
      } while (cursor !== '0');
    }
  }
}
