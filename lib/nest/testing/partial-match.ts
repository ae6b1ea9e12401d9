import { isDeepStrictEqual } from 'node:util';

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
  if (isDeepStrictEqual(actual, expected)) return true;
  const plain = spelt(expected);
  if (plain !== expected) return matchesPartially(actual, plain);
  if (typeof expected !== 'object' || expected === null || typeof actual !== 'object' || actual === null) return false;
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

export function isAsymmetricMatcher(value: unknown): value is AsymmetricMatcher {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<AsymmetricMatcher>).asymmetricMatch === 'function'
  );
}

/** As JSON takes it. */
function spelt(value: unknown): unknown {
  const { toJSON } = (value ?? {}) as { toJSON?: unknown };
  return typeof toJSON === 'function' ? toJSON.call(value) : value;
}
