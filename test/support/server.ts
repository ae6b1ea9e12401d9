import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { RedisProcess, type RedisProcessOptions } from '../../scripts/server/redis-process.js';
import { foundServer } from './found-server.js';
import { claimSharedDb } from './shared-db.js';

/**
 * How long a closing client waits for the server's side to close, in ms. The library's 2 s would show as a leak whenever a test
 * closes a client whose server is paused, or one that is between two connections.
 */
const DISCONNECT_MS = 50;

/** A spec file's own server, usable from its first `beforeAll` on. */
export interface TestServer {
  /** `redis://...`; with a database number where the server is shared with others. */
  readonly url: string;
  /** The server as a process to kill, pause and restart. Throws where the tests were given a server by URL or container. */
  readonly process: RedisProcess;
  /** A plain client. It is closed after the test that opened it, or after the file when opened in a `beforeAll`. */
  client(options?: Omit<RedisOptions, 'replyMapping'>): Redis;
  /** Removes all data; loaded scripts stay. Runs before each test by itself. Use it, never FLUSHALL: the server may be shared. */
  flush(): Promise<void>;
}

/**
 * Gives the calling `describe` (or file) an empty server before each test.
 *
 * Where a server program is installed, that is a private process, started once (about 20 ms) and stopped at the end. With ECHOMQ_URL
 * or a container it is a database of the shared server, one per jest worker, which must be empty at the start.
 *
 * @param options start a private process with these; then a server program must be installed.
 */
export function useServer(options?: RedisProcessOptions): TestServer {
  let url: string | undefined;
  let owned: RedisProcess | undefined;
  let control: Redis | undefined;
  let inTest = false;
  const ofFile: Redis[] = [];
  const ofTest: Redis[] = [];

  const needUrl = () => {
    if (url === undefined) throw new Error('useServer(): the server is there only inside hooks and tests');
    return url;
  };
  const server: TestServer = {
    get url() {
      return needUrl();
    },
    get process() {
      if (!owned) throw new Error('this spec needs a server process of its own: install redis-server or valkey-server');
      return owned;
    },
    client(clientOptions) {
      const client = new Redis(needUrl(), { disconnectTimeout: DISCONNECT_MS, ...clientOptions });
      // Tests that cut connections would otherwise print every error that nobody listens to.
      client.on('error', () => {});
      (inTest ? ofTest : ofFile).push(client);
      return client;
    },
    async flush() {
      await (owned ? control?.flushall() : control?.flushdb());
    },
  };

  beforeAll(async () => {
    const found = foundServer();
    if (options || found.kind === 'process') {
      owned = await RedisProcess.start(options);
      url = owned.url;
    } else {
      url = await claimSharedDb(found.url);
    }
    control = new Redis(url, { disconnectTimeout: DISCONNECT_MS });
    control.on('error', () => {});
  });
  beforeEach(async () => {
    inTest = true;
    await server.flush();
  });
  afterEach(async () => {
    inTest = false;
    await closeAll(ofTest);
  });
  afterAll(async () => {
    if (!owned) await server.flush();
    await closeAll([...ofTest, ...ofFile, ...(control ? [control] : [])]);
    await owned?.stop();
  });
  return server;
}

/** Disconnects clients and resolves once their sockets are closed; `quit()` resolves before that. */
export async function closeAll(clients: Redis[]): Promise<void> {
  await Promise.all(clients.splice(0).map(close));
}

async function close(client: Redis): Promise<void> {
  // On a client that has ended already, the library would start a timer for a socket that will never close again.
  if (client.status === 'end') return;
  const open = ['connecting', 'connect', 'ready', 'monitoring'].includes(client.status);
  const ended = open ? new Promise((resolve) => client.once('end', resolve)) : undefined;
  client.disconnect();
  await ended;
}
