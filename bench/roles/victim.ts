/** A worker that takes one job and never finishes it; it waits to be killed. */

import { loadAdapter } from '../adapters/index.js';
import type { RoleTask } from '../role.js';

const task = JSON.parse(process.argv[2] ?? '{}') as RoleTask;
process.on('disconnect', () => process.exit(1));

const adapter = await loadAdapter(task.library);
const session = await adapter.connect(task.url);
await session.consume(task.queue, 1, () => {
  process.send?.('running');
  return new Promise<void>(() => {});
});
