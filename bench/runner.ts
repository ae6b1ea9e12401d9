/**
 * Runs scenario by scenario, in each the rounds one after the other, and in each round every library in turn (A B C,
 * A B C, ...), so that whatever changes on the machine meanwhile meets all of them. Each measurement is a fresh process
 * against the same server, emptied before.
 */

import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LibraryName } from './adapters/adapter.js';
import type { Scenario } from './scenario.js';
import { control, flush } from './server.js';

export interface Task {
  scenario: string;
  library: LibraryName;
  url: string;
  round: number;
  quick: boolean;
}

export type Answer = { values: Record<string, number>; error?: never } | { error: string; values?: never };

export interface Measurement {
  scenario: string;
  library: LibraryName;
  round: number;
  answer: Answer;
}

export interface Plan {
  scenarios: readonly Scenario[];
  libraries: readonly LibraryName[];
  rounds: number;
  quick: boolean;
  url: string;
  onMeasured(measurement: Measurement, done: number, total: number): void;
}

const LIMIT_MS = 240_000;
/** Between the starts of processes that run at once. */
const STAGGER_MS = 400;

export async function run(plan: Plan): Promise<Measurement[]> {
  const tasks = plan.scenarios.map((scenario) => ({ scenario, tasks: tasksOf(plan, scenario) }));
  const total = tasks.reduce((sum, entry) => sum + entry.tasks.length, 0);
  const measurements: Measurement[] = [];
  const measure = async (task: Task): Promise<void> => {
    const answer = await forked(task);
    const measurement = { scenario: task.scenario, library: task.library, round: task.round, answer };
    measurements.push(measurement);
    plan.onMeasured(measurement, measurements.length, total);
  };
  for (const entry of tasks) {
    if (entry.scenario.atOnce) {
      await emptyServer(plan.url);
      await Promise.all(entry.tasks.map((task, index) => sleep(index * STAGGER_MS).then(() => measure(task))));
      continue;
    }
    for (const task of entry.tasks) {
      await emptyServer(plan.url);
      await measure(task);
    }
  }
  return measurements;
}

function tasksOf(plan: Plan, scenario: Scenario): Task[] {
  const rounds = Math.min(plan.rounds, scenario.maxRounds ?? plan.rounds);
  const about = [scenario.libraries, plan.quick ? scenario.quickLibraries : undefined];
  const libraries = plan.libraries.filter((library) => about.every((names) => names?.includes(library) ?? true));
  return Array.from({ length: rounds }, (_, round) =>
    libraries.map((library) => ({ scenario: scenario.name, library, url: plan.url, round, quick: plan.quick })),
  ).flat();
}

function forked(task: Task): Promise<Answer> {
  return new Promise((resolve) => {
    const child = fork(new URL('./measure.js', import.meta.url), [JSON.stringify(task)]);
    let answer: Answer | undefined;
    const timer = setTimeout(() => {
      answer = { error: `not finished after ${LIMIT_MS / 1000} s` };
      child.kill('SIGKILL');
    }, LIMIT_MS);
    child.on('message', (message) => {
      answer = message as Answer;
    });
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      resolve(answer ?? { error: `the process ended without an answer (${signal ?? `code ${code}`})` });
    });
  });
}

async function emptyServer(url: string): Promise<void> {
  const redis = control(url);
  await flush(redis);
  redis.disconnect();
}
