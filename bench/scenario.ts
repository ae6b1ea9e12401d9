/** What a scenario is: a question, the figures that answer it, and one measurement of one library in a fresh process. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Adapter, LibraryName } from './adapters/adapter.js';
import { serverCpuUs } from './server.js';

export interface Scenario {
  name: string;
  title: string;
  figures: readonly Figure[];
  /** Fewer rounds than asked for suffice: it counts rather than times. */
  maxRounds?: number;
  /** It only waits: all rounds of all libraries run at once, on queues of their own. */
  atOnce?: boolean;
  /** It is about these only. */
  libraries?: readonly LibraryName[];
  /** `--quick` leaves the others out: with their defaults it takes them too long. */
  quickLibraries?: readonly LibraryName[];
  measure(bench: Bench): Promise<Record<string, number>>;
}

export interface Figure {
  key: string;
  label: string;
  /** A ratio of it would mean nothing. */
  incomparable?: true;
  unit: 'jobs/s' | 'flows/s' | 'us' | 'ms' | 's' | 'bytes' | 'connections' | 'commands/s';
}

/** What a measurement is given. */
export interface Bench {
  adapter: Adapter;
  url: string;
  /** The benchmark's own connection. */
  redis: Redis;
  /** Counted from 0. */
  round: number;
  quick: boolean;
}

export const RATE: Figure = { key: 'rate', label: 'jobs per second', unit: 'jobs/s' };
export const SERVER_CPU: Figure = { key: 'serverCpu', label: 'server CPU per job', unit: 'us' };
export const NODE_CPU: Figure = { key: 'nodeCpu', label: 'Node CPU per job', unit: 'us' };

export interface CpuPerJob {
  serverCpu: number;
  nodeCpu: number;
}

/** Starts both CPU clocks; call the answer to read them, divided by the number of jobs. */
export async function startCpu(redis: Redis): Promise<(jobs: number) => Promise<CpuPerJob>> {
  const serverStart = await serverCpuUs(redis);
  const nodeStart = process.cpuUsage();
  return async (jobs) => {
    const node = process.cpuUsage(nodeStart);
    const server = (await serverCpuUs(redis)) - serverStart;
    return { serverCpu: server / jobs, nodeCpu: (node.user + node.system) / jobs };
  };
}

/** Waits until the server holds exactly `expected` jobs of the queue; anything else for 10 s fails the measurement. */
export async function expectRemaining(bench: Bench, queue: string, expected: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const remaining = await bench.adapter.remaining(bench.redis, queue);
    if (remaining === expected) return;
    if (performance.now() > deadline) {
      throw new Error(`the server holds ${remaining} jobs of the queue instead of ${expected}`);
    }
    await sleep(5);
  }
}

/** Rejects when the promise has not settled in time, naming what was awaited. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const abort = new AbortController();
  const late = sleep(ms, undefined, { signal: abort.signal }).then(() => {
    throw new Error(`${what}: not within ${ms / 1000} s`);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    late.catch(() => {});
    abort.abort();
  }
}
