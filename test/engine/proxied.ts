import { afterEach, beforeEach } from '@jest/globals';
import type { ProxiedConnection } from '../support/proxied-connection.js';
import { FaultProxy } from '../support/proxy.js';
import type { TestServer } from '../support/server.js';
import { until } from '../support/until.js';

/** A fault proxy of its own for each test of a spec. */
export interface Proxied {
  readonly proxy: FaultProxy;
  readonly url: string;
  /** Lets the network behind every connection that is open now go dark, both ways, for good; later ones are not touched. */
  darken(): void;
  /** Cuts all connections; the next `count` go dark with their first command that contains `text`. Resolves when they have. */
  cutAndDarken(count: number, text: string): Promise<void>;
  /** How many connections have carried a command so far. */
  readonly connections: number;
}

/** Call it after `useRig()`, so that engines are closed while the proxy still works, and before `guardLeaks()`. */
export function useProxy(server: TestServer): Proxied {
  let proxy: FaultProxy | undefined;
  const seen = new Set<ProxiedConnection>();
  const endings: (() => void)[] = [];
  const current = (): FaultProxy => {
    if (!proxy) throw new Error('useProxy(): there is one only inside tests');
    return proxy;
  };
  beforeEach(async () => {
    seen.clear();
    proxy = await FaultProxy.listen(server.url);
    proxy.onRequest((_command, connection) => {
      seen.add(connection);
      return undefined;
    });
  });
  afterEach(async () => {
    for (const end of endings.splice(0)) end();
    await proxy?.close();
  });
  return {
    get proxy() {
      return current();
    },
    get url() {
      return current().url;
    },
    get connections() {
      return seen.size;
    },
    async cutAndDarken(count, text) {
      const dark = new Set<ProxiedConnection>();
      const end = current().onRequest((command, connection) => {
        if (!dark.has(connection) && (dark.size === count || !command.includes(text))) return undefined;
        dark.add(connection);
        return 'drop';
      });
      endings.push(end);
      current().cut();
      await until(() => dark.size === count, { what: `${count} connections to send ${text}` });
    },
    darken() {
      for (const { toServer, toClient } of seen) {
        toServer.setShut(true);
        toClient.setShut(true);
      }
    },
  };
}
