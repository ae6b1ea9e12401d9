import { afterEach } from '@jest/globals';
import { type Clock, systemClock } from '../../lib/kernel/clock.js';
import { type ConnectionSource, clientFactory } from '../../lib/wire/client-factory.js';
import { Connection } from '../../lib/wire/connection.js';

/** Connections of a spec file, which stamp no brand: closed after the test that opened them. */
export function useConnections(): { open(source: ConnectionSource, clock?: Clock): Promise<Connection> } {
  const opened: Connection[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((connection) => connection.close()));
  });
  return {
    async open(source, clock = systemClock) {
      const connection = new Connection(clientFactory(source), clock, async () => undefined);
      opened.push(connection);
      await connection.open(5_000);
      return connection;
    },
  };
}
