import { afterEach, beforeEach } from '@jest/globals';
import { until } from './until.js';

export { until } from './until.js';

/** What keeps a Node process awake and is easily forgotten: timers, sockets, listening ports, child processes, threads. */
const GUARDED = ['Timeout', 'TCPSocketWrap', 'TCPServerWrap', 'TLSWrap', 'PipeWrap', 'ProcessWrap', 'MessagePort'];

const GRACE_MS = 1_000;

type Census = Map<string, number>;

/**
 * After each test of the file, fails unless all timers and sockets that came up during the test are gone. Closing takes a few turns
 * of the event loop, so they are given up to a second.
 *
 * Call it after `useServer()`: hooks run in the order of declaration, and the server's own hook closes the clients it handed
 * out. What was unref'd is not seen: it keeps nobody awake.
 */
export function guardLeaks(): void {
  let before: Census = new Map();
  beforeEach(() => {
    before = census();
  });
  afterEach(async () => {
    await expectNoLeaks(before);
  });
}

/** Counts what is open now; hand the result to {@link expectNoLeaks} later. */
export function census(): Census {
  const counts: Census = new Map();
  for (const kind of process.getActiveResourcesInfo()) {
    if (GUARDED.includes(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/**
 * Resolves once no more is open than at `before`.
 *
 * @param graceMs how long to wait for it. Default 1,000.
 * @throws Error that lists what is left, with the far end of sockets.
 */
export async function expectNoLeaks(before: Census, graceMs = GRACE_MS): Promise<void> {
  // Our own waiting must not be counted: between two looks `until` holds no timer, and neither does a synchronous condition.
  await until(() => surplus(before).length === 0, { timeoutMs: graceMs, what: 'leaks to close' }).catch(() => {
    const left = surplus(before).map(([kind, count]) => `${count} ${kind}`);
    if (left.length > 0) throw new Error(`left open by the test: ${left.join(', ')}${addresses()}`);
  });
}

function surplus(before: Census): [string, number][] {
  return [...census()]
    .map(([kind, count]): [string, number] => [kind, count - (before.get(kind) ?? 0)])
    .filter(([, count]) => count > 0);
}

/** Node has no public way to name the sockets behind the counts; the old one is good enough for a message. */
function addresses(): string {
  const handles = (process as unknown as { _getActiveHandles?(): { remotePort?: number; localPort?: number }[] })
    ._getActiveHandles;
  const ends = (handles?.call(process) ?? [])
    .filter((handle) => handle.remotePort !== undefined)
    .map((handle) => `${handle.localPort} -> ${handle.remotePort}`);
  return ends.length > 0 ? ` (open sockets: ${ends.join(', ')})` : '';
}
