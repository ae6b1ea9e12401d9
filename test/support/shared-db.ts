import { Redis } from 'ioredis';

/**
 * The URL of this jest worker's own database on a shared server: the URL's database (default 0) plus the worker's number, so that the
 * first worker never touches the database the URL names.
 *
 * @throws Error when that database holds keys: tests flush it, and those keys may be somebody's.
 */
export async function claimSharedDb(url: string): Promise<string> {
  const own = new URL(url);
  const db = Number(own.pathname.slice(1) || 0) + Number(process.env.JEST_WORKER_ID ?? 1);
  own.pathname = `/${db}`;
  const client = new Redis(own.href, { lazyConnect: true, maxRetriesPerRequest: 1 });
  client.on('error', () => {});
  try {
    await client.connect();
    const keys = await client.dbsize();
    if (keys > 0) {
      throw new Error(
        `database ${db} of the test server holds ${keys} keys; tests would flush it. Empty it, then run again`,
      );
    }
    return own.href;
  } finally {
    client.disconnect();
  }
}
