/** One measurement: forked by the runner with a task, answers over IPC, ends. */

import { loadAdapter } from './adapters/index.js';
import type { Answer, Task } from './runner.js';
import { scenarios } from './scenarios/index.js';
import { control } from './server.js';

const task = JSON.parse(process.argv[2] ?? '{}') as Task;
process.on('disconnect', () => process.exit(1));

const answer = await measure().catch((error: unknown): Answer => ({ error: describe(error) }));
process.send?.(answer, () => process.exit(0));

async function measure(): Promise<Answer> {
  const scenario = scenarios.find(({ name }) => name === task.scenario);
  if (!scenario) throw new Error(`no scenario is called '${task.scenario}'`);
  const adapter = await loadAdapter(task.library);
  const redis = control(task.url);
  return { values: await scenario.measure({ ...task, adapter, redis }) };
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
