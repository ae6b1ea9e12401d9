import { isDelay } from './arguments.js';
import { EchoArgumentError } from './errors.js';

/** Waits the same time before every retry. `jitter` (0 to 1) takes up to that share off at random. */
export interface FixedBackoff {
  type: 'fixed';
  delayMs: number;
  jitter?: number | undefined;
}

/** Doubles the wait with every failure, up to `maxMs` (default one hour). */
export interface ExponentialBackoff {
  type: 'exponential';
  delayMs: number;
  maxMs?: number | undefined;
  jitter?: number | undefined;
}

/** A wait that can travel with a job. */
export type JobBackoff = FixedBackoff | ExponentialBackoff;

/** Milliseconds to wait after the `failures`-th failure (from 1) with this error. */
export type BackoffFunction = (failures: number, error: unknown) => number;

/** Functions cannot travel with a job: they belong to a consumer's options. */
export type Backoff = JobBackoff | BackoffFunction;

const HOUR_MS = 3_600_000;

export const DEFAULT_BACKOFF: ExponentialBackoff = { type: 'exponential', delayMs: 1000, maxMs: HOUR_MS };

/** Milliseconds, whole, to wait after the `failures`-th failure. Nonsense from a function waits the longest: an hour. */
export function waitAfter(backoff: Backoff, failures: number, error: unknown, random: () => number): number {
  if (typeof backoff === 'function') {
    const ms = backoff(failures, error);
    return Number.isFinite(ms) && ms >= 0 ? Math.min(Math.round(ms), Number.MAX_SAFE_INTEGER) : HOUR_MS;
  }
  const full =
    backoff.type === 'fixed'
      ? backoff.delayMs
      : Math.min(backoff.delayMs * 2 ** Math.min(failures - 1, 52), backoff.maxMs ?? HOUR_MS);
  return Math.round(full * (1 - (backoff.jitter ?? 0) * random()));
}

const KNOWN = new Set(['type', 'delayMs', 'maxMs', 'jitter']);

/** @throws EchoArgumentError naming the part that makes no sense */
export function assertJobBackoff(value: unknown): asserts value is JobBackoff {
  if (typeof value !== 'object' || value === null) throw fault('must be { type, delayMs }');
  const { type, delayMs, maxMs, jitter } = value as Record<string, unknown>;
  for (const key of Object.keys(value)) if (!KNOWN.has(key)) throw fault(`has an unknown part '${key}'`);
  if (type !== 'fixed' && type !== 'exponential') throw fault("type must be 'fixed' or 'exponential'");
  if (!isDelay(delayMs)) throw fault('delayMs must be whole milliseconds from 0');
  if (maxMs !== undefined && (type === 'fixed' || !isDelay(maxMs))) throw fault('maxMs must be whole milliseconds');
  if (jitter !== undefined && !(typeof jitter === 'number' && jitter >= 0 && jitter <= 1)) {
    throw fault('jitter must be a number from 0 to 1');
  }
}

/** The same as a question. */
export function isJobBackoff(value: unknown): value is JobBackoff {
  try {
    assertJobBackoff(value);
    return true;
  } catch {
    return false;
  }
}

function fault(what: string): EchoArgumentError {
  return new EchoArgumentError(`backoff ${what}`);
}
