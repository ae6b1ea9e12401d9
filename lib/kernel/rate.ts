import { assertInteger, assertKnownKeys, show } from './arguments.js';
import { EchoArgumentError } from './errors.js';

/**
 * At most `limit` jobs begin in any `perMs`, evenly spaced: one every `perMs / limit`. With a `burst` (default 1) so many may begin
 * at once after a quiet time, and any `perMs` sees at most `limit + burst - 1`.
 */
export interface Rate {
  /** From 1. */
  limit: number;
  /** Milliseconds, from 1. */
  perMs: number;
  /** From 1. */
  burst?: number | undefined;
}

const KNOWN = new Set(['limit', 'perMs', 'burst']);

/** Flat, as the wire wants it; null takes it back. @throws EchoArgumentError naming the part */
export function rateSettings(rate: Rate | null, what: string): string[] {
  if (rate === null) return ['interval', '', 'burst', ''];
  assertKnownKeys(rate, KNOWN, what);
  const { limit, perMs, burst = 1 } = rate as Rate;
  if (perMs === undefined) throw new EchoArgumentError(`${what} needs perMs: a limit without a time limits nothing`);
  assertInteger(limit, `${what}.limit`, 1);
  assertInteger(perMs, `${what}.perMs`, 1);
  assertInteger(burst, `${what}.burst`, 1);
  const interval = perMs / limit;
  if (interval < 0.001)
    throw new EchoArgumentError(`${what}: ${show(limit)} in ${perMs} ms are more than the server can count`);
  return ['interval', String(Number(interval.toFixed(6))), 'burst', String(burst)];
}
