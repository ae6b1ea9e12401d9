/** Adds one job every few milliseconds, with the time of sending in it, and ends. */

import { setTimeout as sleep } from 'node:timers/promises';
import { loadAdapter } from '../adapters/index.js';
import { jobData } from '../payload.js';
import type { RoleTask } from '../role.js';

const task = JSON.parse(process.argv[2] ?? '{}') as RoleTask;
process.on('disconnect', () => process.exit(1));

const adapter = await loadAdapter(task.library);
const session = await adapter.connect(task.url);
const producer = await session.producer(task.queue);
const everyMs = task.everyMs ?? 5;

let next = performance.now();
for (let index = 0; index < (task.count ?? 0); index++) {
  next += everyMs;
  await sleep(Math.max(1, next - performance.now()));
  await producer.add({ ...jobData(index), at: String(process.hrtime.bigint()) });
}
await session.close();
process.exit(0);
