import { afterEach, beforeEach } from '@jest/globals';
import { systemClock } from '../../lib/kernel/clock.js';
import { clientFactory } from '../../lib/wire/client-factory.js';
import { Connection } from '../../lib/wire/connection.js';
import { Executor } from '../../lib/wire/executor.js';
import type { Edition } from '../../lib/wire/script-text.js';
import type { TestServer } from '../support/server.js';

/** Never takes the plain edition of a script. */
class WholeExecutor extends Executor {
  protected override takesPlain(): boolean {
    return false;
  }
}

/**
 * Opens the library's own executor for each test: it takes the plain edition of a script where that does, or always the whole one.
 * No brand is stamped, so that no key but the queue's appears.
 */
export function useExecutor(server: TestServer, edition: Edition = 'plain'): { readonly current: Executor } {
  let connection: Connection | undefined;
  let executor: Executor | undefined;
  beforeEach(async () => {
    connection = new Connection(clientFactory(server.url), systemClock, async () => undefined);
    await connection.open(5_000);
    executor = edition === 'whole' ? new WholeExecutor(connection) : new Executor(connection);
  });
  afterEach(() => connection?.close());
  return {
    get current() {
      if (!executor) throw new Error('useExecutor(): there is one only inside tests');
      return executor;
    },
  };
}
