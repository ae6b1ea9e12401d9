import { isDeepStrictEqual } from 'node:util';
import { EchoArgumentError } from '../../kernel/errors.js';

/** What `expect.any(String)`, `expect.objectContaining({})` and their like are in jest and vitest. */
interface AsymmetricMatcher {
  asymmetricMatch(actual: unknown): boolean;
}

/**
 * Is everything that is expected there? Of objects only what is expected is looked at, at any depth; arrays have the same
 * length; `undefined` stands for what is not there; what JSON spells as text, as a Date, may be expected as it was given.
 */
export function matchesPartially(actual: unknown, expected: unknown): boolean {
  if (isAsymmetricMatcher(expected)) return expected.asymmetricMatch(actual);
  return isDeepStrictEqual(actual, expected) || holds(actual, spelt(expected));
}

function holds(actual: unknown, expected: unknown): boolean {
  if (typeof expected !== 'object' || expected === null) return Object.is(actual, expected);
  if (typeof actual !== 'object' || actual === null) return false;
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return false;
    return expected.every((item, i) => matchesPartially(actual[i], item));
  }
  if (Array.isArray(actual) || ArrayBuffer.isView(expected) || ArrayBuffer.isView(actual)) return false;
  return Object.keys(expected).every((key) =>
    matchesPartially(
      Object.hasOwn(actual, key) ? (actual as Record<string, unknown>)[key] : undefined,
      (expected as Record<string, unknown>)[key],
    ),
  );
}

/**
 * What no job can hold would never match, and be refuted always.
 * @throws EchoArgumentError naming the place of a function or a symbol, or of what holds itself
 */
export function assertMatchable(expected: unknown, place: string, around: readonly unknown[] = []): void {
  if (isAsymmetricMatcher(expected)) return;
  if (around.includes(expected)) throw new EchoArgumentError(`${place} is what it stands in: no job holds itself`);
  const plain = spelt(expected);
  if (typeof plain === 'function' || typeof plain === 'symbol') {
    throw new EchoArgumentError(
      `${place} is a ${typeof plain}, which no job holds: leave it out, or give a matcher like expect.any(String)`,
    );
  }
  if (typeof plain !== 'object' || plain === null || ArrayBuffer.isView(plain)) return;
  for (const [key, part] of Object.entries(plain)) assertMatchable(part, `${place}.${key}`, [...around, expected]);
}

export function isAsymmetricMatcher(value: unknown): value is AsymmetricMatcher {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<AsymmetricMatcher>).asymmetricMatch === 'function'
  );
}

/** As JSON takes it, which asks once: what the answer's own toJSON says counts for nothing. */
function spelt(value: unknown): unknown {
  const { toJSON } = (value ?? {}) as { toJSON?: unknown };
  return typeof toJSON === 'function' ? toJSON.call(value) : value;
}
