import type { Redis } from 'ioredis';

/** The server's clock just before and just after the last call, in microseconds. */
const window = { from: 0, to: 0 };

/** Runs one call between two looks at the server's clock, for {@link inMs} and {@link nowUs}. */
export async function timed<T>(client: Redis, call: () => Promise<T>): Promise<T> {
  window.from = await serverUs(client);
  try {
    return await call();
  } finally {
    window.to = await serverUs(client);
  }
}

async function serverUs(client: Redis): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000_000 + Number(micros);
}

/** Equal to any time, as number or text, that the server could have computed during the call. */
class DuringCall {
  readonly $$typeof = Symbol.for('jest.asymmetricMatcher');

  constructor(
    private readonly what: string,
    private readonly unitUs: number,
    private readonly offset: number,
  ) {}

  asymmetricMatch(found: unknown): boolean {
    if (typeof found === 'string' ? !/^\d+$/.test(found) : typeof found !== 'number') return false;
    const time = Number(found) - this.offset;
    return time >= Math.floor(window.from / this.unitUs) && time <= Math.floor(window.to / this.unitUs);
  }

  toAsymmetricMatcher(): string {
    return this.what;
  }

  toString(): string {
    return this.what;
  }
}

/** So many milliseconds after the server's now. */
export function inMs(ms: number): unknown {
  return new DuringCall(`now + ${ms} ms`, 1000, ms);
}

/** The server's now in microseconds. */
export function nowUs(): unknown {
  return new DuringCall('now, us', 1, 0);
}

/** Text or number: milliseconds that were left until `at` during the call. */
export function msUntil(at: number): unknown {
  return {
    $$typeof: Symbol.for('jest.asymmetricMatcher'),
    asymmetricMatch: (left: unknown) =>
      Number(left) <= at - Math.floor(window.from / 1000) && Number(left) >= at - Math.floor(window.to / 1000),
    toAsymmetricMatcher: () => `ms until ${at}`,
    toString: () => `ms until ${at}`,
  };
}

/** Microseconds that were left until `at` (milliseconds) during the call. */
export function usUntil(at: number): unknown {
  return {
    $$typeof: Symbol.for('jest.asymmetricMatcher'),
    asymmetricMatch: (left: unknown) =>
      Number(left) <= at * 1000 - window.from && Number(left) >= at * 1000 - window.to,
    toAsymmetricMatcher: () => `us until ${at}`,
    toString: () => `us until ${at}`,
  };
}

/** Text or number: so many milliseconds after the server's now, exactly, or rounded up. */
export function exactlyIn(ms: number): unknown {
  return {
    $$typeof: Symbol.for('jest.asymmetricMatcher'),
    asymmetricMatch: (found: unknown) =>
      Number(found) - ms >= Math.floor(window.from / 1000) && Number(found) - ms < window.to / 1000 + 1,
    toAsymmetricMatcher: () => `now + ${ms} ms, exactly`,
    toString: () => `now + ${ms} ms, exactly`,
  };
}

/** A message of so many milliseconds behind a word, give or take one. */
export function aboutMs(word: string, ms: number): unknown {
  return {
    $$typeof: Symbol.for('jest.asymmetricMatcher'),
    asymmetricMatch: (said: unknown) =>
      String(said).startsWith(word) && Math.abs(Number(String(said).slice(word.length)) - ms) <= 1,
    toAsymmetricMatcher: () => `${word}${ms}`,
    toString: () => `${word}${ms}`,
  };
}
