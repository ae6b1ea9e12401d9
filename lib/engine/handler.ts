import { AsyncLocalStorage } from 'node:async_hooks';
import type { Job } from './job.js';
import { inOwnContext } from './own-context.js';

/** Runs one job. Its return value, or what its promise resolves to, is the job's result. */
// biome-ignore lint/suspicious/noExplicitAny: a handler may be written for the data it expects; and with `unknown` the compiler would look into one that closes its own consumer for the type of that very consumer
export type Handler<Data = any> = (job: Job<Data>) => any;

const NOBODY: readonly Job[] = [];

/** Which jobs' handler the current code was called from: close() inside a handler must not wait for that handler. */
const running = new AsyncLocalStorage<Job | readonly Job[]>();

/** What the handler answers: a value, or a promise of this realm. @throws what the handler throws */
export function callHandler(handler: Handler, job: Job): unknown {
  return asked(inOwnContext(() => running.run(job, handler, job)));
}

/**
 * What was answered, and for what can be awaited a promise of this realm: query builders do nothing until they are asked. Foreign
 * ones may throw then; the promise around one rejects instead.
 */
export function asked(answer: unknown): unknown {
  return !(answer instanceof Promise) && isThenable(answer) ? Promise.resolve(answer) : answer;
}

/** What a handler answers that is called once for all of them. @throws what the handler throws */
export function callTogether(jobs: readonly Job[], call: () => unknown): unknown {
  return inOwnContext(() => running.run(jobs, call));
}

/** The jobs whose handler called, however many awaits ago, and that have not ended. */
export function callingJobs(): readonly Job[] {
  const jobs = running.getStore();
  if (jobs === undefined) return NOBODY;
  return (Array.isArray(jobs) ? (jobs as readonly Job[]) : [jobs as Job]).filter(({ finished }) => !finished);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
