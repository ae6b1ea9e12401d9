import { assertBoolean, assertKnownKeys, assertOption, show } from '../kernel/arguments.js';
import { assertJobBackoff, type Backoff, DEFAULT_BACKOFF } from '../kernel/backoff.js';
import type { Complete } from '../kernel/complete.js';
import { EchoConfigError } from '../kernel/errors.js';
import { assertRecord } from './recording.js';

/** How one queue is consumed in this process. A job's own options are stronger where both speak. */
export interface ConsumerOptions {
  /** Handlers that run at the same time, 1 to 10,000. Default 1. */
  concurrency?: number | undefined;
  /** A claim is ours for so long and is renewed at a third of it, 100 ms or more. Default 15 s. */
  leaseMs?: number | undefined;
  /** Failed attempts before a job is buried, 1 or more. Default 3. */
  attempts?: number | undefined;
  /** Wait between attempts. Default exponential from 1 s, capped at one hour. */
  backoff?: Backoff | undefined;
  /** Time a handler may take before its attempt fails and its slot is freed; 0 is no limit. Default 0. */
  timeoutMs?: number | undefined;
  /** How long a completed job's row is kept with its result; 0 deletes it. Default 0. */
  keepMs?: number | undefined;
  /** Lapsed leases a job survives; one more buries it. Default 2, so three starts. */
  maxStalls?: number | undefined;
  /** Time handlers have to finish when the consumer closes. Default 10 s. */
  drainMs?: number | undefined;
  /** Claim a few jobs more than there are slots where handlers are fast. Default true. */
  claimAhead?: boolean | undefined;
  /**
   * Record every completion and every death, for `jobs.completions`: `true` keeps about the newest 10,000, a number, 2 or more,
   * about so many, `Infinity` all. Default false.
   */
  record?: boolean | number | undefined;
}

export type ConsumerSettings = Complete<ConsumerOptions>;

const DEFAULTS: ConsumerSettings = {
  concurrency: 1,
  leaseMs: 15_000,
  attempts: 3,
  backoff: DEFAULT_BACKOFF,
  timeoutMs: 0,
  keepMs: 0,
  maxStalls: 2,
  drainMs: 10_000,
  claimAhead: true,
  record: false,
};

const KNOWN = new Set(Object.keys(DEFAULTS));

/** @throws EchoConfigError naming the option */
export function consumerSettings(options: ConsumerOptions, what: string): ConsumerSettings {
  assertKnownKeys(options, KNOWN, what, EchoConfigError);
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings: ConsumerSettings = { ...DEFAULTS, ...given };
  assertOption(settings.concurrency, `${what}.concurrency`, 1, 10_000);
  assertOption(settings.leaseMs, `${what}.leaseMs`, 100);
  assertOption(settings.attempts, `${what}.attempts`, 1);
  assertOption(settings.timeoutMs, `${what}.timeoutMs`, 0);
  assertOption(settings.keepMs, `${what}.keepMs`, 0);
  assertOption(settings.maxStalls, `${what}.maxStalls`, 0);
  assertOption(settings.drainMs, `${what}.drainMs`, 0);
  assertBoolean(settings.claimAhead, `${what}.claimAhead`);
  assertRecord(settings.record, `${what}.record`);
  if (typeof settings.backoff !== 'function') {
    try {
      assertJobBackoff(settings.backoff);
    } catch (error) {
      throw new EchoConfigError(`option '${what}.backoff': ${(error as Error).message}, got ${show(settings.backoff)}`);
    }
  }
  return settings;
}
