import { findBinary } from '../../scripts/server/binary.js';

/** What the global setup found, as every spec file sees it. */
export type FoundServer = { kind: 'process' } | { kind: 'shared'; url: string };

/** Environment variable by which the global setup tells the workers; `process`, or the URL of a server to share. */
export const FOUND_SERVER = 'ECHOMQ_TEST_FOUND';

/**
 * What spec files may use. Without the global setup (an editor that runs one file) only an installed server counts.
 *
 * @throws Error when there is neither: jest.config must name test/support/global-setup.mjs.
 */
export function foundServer(): FoundServer {
  const found = process.env[FOUND_SERVER] ?? (findBinary() ? 'process' : undefined);
  if (!found) throw new Error('no server was looked for: jest.config needs globalSetup: test/support/global-setup.mjs');
  return found === 'process' ? { kind: 'process' } : { kind: 'shared', url: found };
}
