import { assertInteger, assertKnownKeys, show } from '../../kernel/arguments.js';
import { assertJobBackoff } from '../../kernel/backoff.js';
import type { TravellingOptions } from '../../kernel/codec.js';
import { EchoArgumentError } from '../../kernel/errors.js';
import { isAsymmetricMatcher } from './partial-match.js';

type Check = (value: unknown, name: string) => void;

const wholeFrom =
  (min: number): Check =>
  (value, name) =>
    assertInteger(value, name, min);

/** What a payload can say, and what of it. The compiler keeps it complete. */
const CHECKS: Record<keyof TravellingOptions, Check> = {
  attempts: wholeFrom(1),
  backoff: assertPartOfBackoff,
  timeoutMs: wholeFrom(0),
  keepMs: wholeFrom(0),
  schedule: assertText,
  slot: wholeFrom(0),
};
const KNOWN = new Set(Object.keys(CHECKS));
/** A backoff that makes sense, for the parts that are not said. */
const SOME_BACKOFF: Readonly<Record<string, unknown>> = { type: 'exponential', delayMs: 0 };

/**
 * Options that a job may have come with, or some of them, or matchers.
 * @throws EchoArgumentError naming the one that does not travel with a job, or cannot be of that value
 */
export function assertMatchableOptions(opts: unknown, method: string): void {
  if (isAsymmetricMatcher(opts)) return;
  assertKnownKeys(opts, KNOWN, `${method} opts`);
  for (const [name, value] of Object.entries(opts)) {
    if (!isOpen(value)) CHECKS[name as keyof TravellingOptions](value, `opts.${name}`);
  }
}

export function assertText(value: unknown, name: string): void {
  if (typeof value !== 'string') throw new EchoArgumentError(`${name} must be a string, got ${show(value)}`);
}

function assertPartOfBackoff(value: unknown): void {
  if (typeof value !== 'object' || value === null) assertJobBackoff(value);
  const parts = Object.entries(value).map(([part, given]) => [part, isOpen(given) ? SOME_BACKOFF[part] : given]);
  assertJobBackoff({ ...SOME_BACKOFF, ...Object.fromEntries(parts) });
}

/** Says nothing of the value, or judges it itself. */
function isOpen(value: unknown): boolean {
  return value === undefined || isAsymmetricMatcher(value);
}
