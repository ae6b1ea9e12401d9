import { EchoArgumentError, EchoConfigError } from './errors.js';

/** Checks of what users hand in; each names the argument and throws before anything is sent. */

const NONE: ReadonlySet<string> = new Set();

/** What other queues call it, and what it may be here: people come from somewhere. */
const ELSEWHERE: ReadonlyMap<string, readonly string[]> = new Map([
  ['delay', ['delayMs']],
  ['timeout', ['timeoutMs', 'waitMs']],
  ['deduplication', ['dedup']],
  ['ttl', ['ttlMs']],
  ['max', ['limit']],
  ['duration', ['perMs']],
  ['group', ['lane']],
  ['limiter', ['rate', 'jobs.limit(queue, { rate })']],
  ['repeat', ['jobs.schedule()']],
  ['jobId', ['id, from jobs.mintId()']],
  ['redis', ['connection']],
  ['removeOnComplete', ['keepMs']],
  ['lockDuration', ['leaseMs']],
  ['maxStalledCount', ['maxStalls']],
  ['defaultJobOptions', ["the consumer's options"]],
]);

const OPTION = /^\w+$/;

type Fault = new (message: string) => Error;

/** A whole number within bounds. The largest there is goes without saying, unless it is what was exceeded. */
export function assertInteger(
  value: unknown,
  name: string,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
  Fault: Fault = EchoArgumentError,
): asserts value is number {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return;
  const unsaid = max === Number.MAX_SAFE_INTEGER && !(typeof value === 'number' && value > max);
  const range = unsaid ? `from ${min}` : `from ${min} to ${max}`;
  throw new Fault(`${name} must be a whole number ${range}, got ${show(value)}`);
}

/** Milliseconds that can be waited for. */
export function isDelay(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function assertObject(value: unknown, what: string, Fault: Fault = EchoArgumentError): asserts value is object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
  throw new Fault(`${what} must be an object, got ${show(value)}`);
}

/** An object whose keys are all known: a misspelt option must not be passed over. */
export function assertKnownKeys(
  value: unknown,
  known: ReadonlySet<string>,
  what: string,
  Fault: Fault = EchoArgumentError,
  unsaid: ReadonlySet<string> = NONE,
): asserts value is Record<string, unknown> {
  assertObject(value, what, Fault);
  for (const key of Object.keys(value)) {
    if (known.has(key)) continue;
    const hint = ELSEWHERE.get(key)?.find((here) => known.has(here) || !OPTION.test(here));
    const said = [...known].filter((name) => !unsaid.has(name)).join(', ');
    throw new Fault(`${what}: unknown option '${key}'${hint ? ` (here: ${hint})` : ''}. Known are ${said}`);
  }
}

/** The same for options, whose faults are configuration errors. */
export function assertOption(value: unknown, name: string, min: number, max?: number): asserts value is number {
  assertInteger(value, `option '${name}'`, min, max, EchoConfigError);
}

export function assertBoolean(value: unknown, name: string, Fault: Fault = EchoConfigError): asserts value is boolean {
  if (typeof value !== 'boolean') throw new Fault(`option '${name}' must be true or false, got ${show(value)}`);
}

/** Bytes as they would be sent. A UTF-16 unit becomes at most three: only what might be too large is measured. */
export function assertSize(text: string | Buffer, maxBytes: number, what: string): void {
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) {
    throw new EchoArgumentError(`${what} is larger than maxPayloadBytes (${maxBytes})`);
  }
}

/**
 * How what a function has answered is shown where it must answer at once. A promise is nobody's from here on: one that rejects
 * would otherwise end the process.
 */
export function showAnswer(answer: unknown): string {
  if (!(answer instanceof Promise)) return show(answer);
  answer.catch(() => undefined);
  return 'a promise';
}

export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}...` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'object' || typeof value === 'function') return value === null ? 'null' : typeof value;
  return String(value);
}
