import { afterEach } from '@jest/globals';
import { EchoMq, type EchoMqOptions } from '../../lib/core.js';
import type { EchoError } from '../../lib/kernel/errors.js';
import type { TestServer } from '../support/server.js';

/** Engines of a spec file: closed after the test that opened them. */
export interface Rig {
  /** What the engines complained of during this test, the oldest first. */
  readonly complaints: EchoError[];
  /** Connects to the spec's server, or to what the options say. */
  connect(options?: Partial<EchoMqOptions>): Promise<EchoMq>;
  /** The same without connecting. */
  create(options?: Partial<EchoMqOptions>): EchoMq;
}

/** Call it after `useServer()` and before `guardLeaks()`. */
export function useRig(server: Pick<TestServer, 'url'>): Rig {
  const opened: EchoMq[] = [];
  const complaints: EchoError[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((echo) => echo.close()));
    complaints.length = 0;
  });
  const create = (options: Partial<EchoMqOptions> = {}): EchoMq => {
    const echo = EchoMq.create({ connection: server.url, onError: (error) => complaints.push(error), ...options });
    opened.push(echo);
    return echo;
  };
  return {
    complaints,
    create,
    async connect(options) {
      const echo = create(options);
      await echo.open();
      return echo;
    },
  };
}
