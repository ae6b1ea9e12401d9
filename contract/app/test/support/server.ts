import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach } from '@jest/globals';
import { Redis } from 'ioredis';
import type { EchoMqModuleOptions } from 'nestjs-echomq';

/** The server that was found for all specs, which may be somebody's: each test keeps to a prefix of its own. */
export interface TestServer {
  readonly prefix: string;
  /** Of EchoMqModule. */
  options(more?: Partial<EchoMqModuleOptions>): EchoMqModuleOptions;
  /** A plain client, for looking at keys. */
  readonly client: Redis;
}

/** Sets CONTRACT_PREFIX, which the app's own settings read; at the end of the file its tests' keys are removed. */
export function useServer(): TestServer {
  const url = process.env.ECHOMQ_URL;
  if (url === undefined) throw new Error('set ECHOMQ_URL: `npm run contract` does');
  const file = `contract-${randomUUID().slice(0, 8)}`;
  let tests = 0;
  let client: Redis | undefined;
  const prefix = () => `${file}-${tests}`;
  beforeEach(() => {
    tests += 1;
    process.env.CONTRACT_PREFIX = prefix();
    client = new Redis(url);
  });
  afterEach(async () => {
    if (client !== undefined) await end(client);
  });
  afterAll(async () => {
    const cleaner = new Redis(url);
    for await (const keys of cleaner.scanStream({ match: `*${file}-*` })) {
      if (keys.length > 0) await cleaner.del(keys);
    }
    await end(cleaner);
  });
  return {
    get prefix() {
      return prefix();
    },
    options: (more) => ({ connection: url, prefix: prefix(), ...more }),
    get client() {
      if (client === undefined) throw new Error('the client is there only inside tests');
      return client;
    },
  };
}

/** Resolves once the socket is closed, so that it does not count as left open. */
async function end(client: Redis): Promise<void> {
  const ended = new Promise((resolve) => client.once('end', resolve));
  client.disconnect();
  await ended;
}
