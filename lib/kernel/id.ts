import { EchoArgumentError } from './errors.js';

/**
 * A job id is `JOB` and 11 base-62 digits: a 64-bit number whose high 42 bits are milliseconds since 2024, then 12 bits
 * of node, then 10 bits of sequence. Byte order is mint order.
 */
export type JobId = string;

export const ID_EPOCH_MS = Date.UTC(2024, 0, 1);
export const NODE_COUNT = 4096;
export const SEQUENCES_PER_MS = 1024;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID = /^JOB[0-9A-Za-z]{11}$/;
const LARGEST_BODY = 'LygHa16AHYF'; // 2^64 - 1

/** Two digits at a time: half the divisions. */
const PAIRS: readonly string[] = Array.from(
  { length: 62 * 62 },
  (_, n) => DIGITS.charAt(Math.floor(n / 62)) + DIGITS.charAt(n % 62),
);
const BASE_5 = 62 ** 5;
const LOW_BITS = 2 ** 22;

function threeDigits(n: number): string {
  return PAIRS[Math.floor(n / 62)]! + DIGITS.charAt(n % 62);
}

function fiveDigits(n: number): string {
  return threeDigits(Math.floor(n / 3844)) + PAIRS[n % 3844]!;
}

/** All but the last two digits of the id spelt last: those of one millisecond mostly differ in nothing else. */
const stem = { high: -1, low: -1, text: '' };

/**
 * Spells an id. `ms` counts from {@link ID_EPOCH_MS}.
 * Long division in doubles, every step below 2^53: BigInt would cost ten times as much per minted job.
 */
export function spellId(ms: number, node: number, sequence: number): JobId {
  const quotient = Math.floor(ms / BASE_5);
  const rest = (ms - quotient * BASE_5) * LOW_BITS + node * SEQUENCES_PER_MS + sequence;
  const carry = Math.floor(rest / BASE_5);
  const low = rest - carry * BASE_5;
  const high = quotient * LOW_BITS + carry;
  const lowHead = Math.floor(low / 3844);
  if (stem.high !== high || stem.low !== lowHead) {
    const first = Math.floor(high / BASE_5);
    stem.text = `JOB${DIGITS.charAt(first)}${fiveDigits(high - first * BASE_5)}${threeDigits(lowHead)}`;
    stem.high = high;
    stem.low = lowHead;
  }
  return stem.text + PAIRS[low - lowHead * 3844]!;
}

/** A number in base 62, without padding. */
export function base62(value: bigint): string {
  let digits = '';
  for (let rest = value; rest > 0n; rest /= 62n) digits = DIGITS.charAt(Number(rest % 62n)) + digits;
  return digits || '0';
}

export function isJobId(value: unknown): value is JobId {
  return typeof value === 'string' && ID.test(value) && value.slice(3) <= LARGEST_BODY;
}

/** What an id says about its minting. @throws EchoArgumentError when it is no id */
export function readId(id: JobId): { mintedAt: Date; node: number; sequence: number } {
  assertJobId(id);
  let value = 0n;
  for (const digit of id.slice(3)) value = value * 62n + BigInt(DIGITS.indexOf(digit));
  return {
    mintedAt: new Date(Number(value >> 22n) + ID_EPOCH_MS),
    node: Number((value >> 10n) & 4095n),
    sequence: Number(value & 1023n),
  };
}

/** @throws EchoArgumentError when `value` was not minted */
export function assertJobId(value: unknown): asserts value is JobId {
  if (!isJobId(value)) {
    throw new EchoArgumentError(`not a job id: ${quote(value)}. Ids come from enqueue or jobs.mintId()`);
  }
}

function quote(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : typeof value;
}
