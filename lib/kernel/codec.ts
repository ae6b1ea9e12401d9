import { isJobBackoff, type JobBackoff } from './backoff.js';
import { EchoArgumentError } from './errors.js';

/** Per-job options that travel inside the payload; the server has no need of them. */
export interface TravellingOptions {
  /** Failed attempts before the job is buried. */
  attempts?: number | undefined;
  backoff?: JobBackoff | undefined;
  timeoutMs?: number | undefined;
  keepMs?: number | undefined;
  /** Of a job that a repeating schedule has landed: the schedule's key ... */
  schedule?: string | undefined;
  /** ... and the slot it stands for, milliseconds since 1970; absent when it was run by hand. */
  slot?: number | undefined;
}

/** What a payload says to a consumer. */
export interface Envelope {
  /** Empty when the payload is no envelope. */
  name: string;
  data: unknown;
  opts: TravellingOptions | undefined;
}

/** Turns jobs into bytes and back. Replace it to encrypt, compress, or use another format. */
export interface Codec {
  /**
   * At once, no promise. A string is sent as UTF-8. @throws anything: becomes an EchoArgumentError, nothing is sent; so does any
   * other answer
   */
  encode(name: string, data: unknown, opts: TravellingOptions | undefined): string | Buffer;
  /**
   * Undefined when the bytes are no envelope; the handler then gets them as they are. @throws anything: fails the attempt;
   * whoever only looks gets the bytes
   */
  decode(payload: Buffer): Envelope | undefined;
  /** A handler's return value, or what it says of its progress; answers, or throws, as `encode` does: the attempt then fails. */
  encodeResult(result: unknown): string | Buffer;
  /** Reads a result back, for parents and those who wait for it. Absent: they get the bytes. */
  decodeResult?: ((result: Buffer) => unknown) | undefined;
}

const OPENING_BRACE = 0x7b;
const ENVELOPE_KEYS = new Set(['name', 'data', 'opts']);
const NOTHING = 'null';
const BYTES = 'a Buffer or Uint8Array (encode it as base64, or set a codec)';

/** The default envelope: JSON `{"name","data","opts"}`, absent parts left out. */
export const jsonCodec: Codec = {
  encode(name, data, opts) {
    let text = headFor(name);
    if (data !== undefined) text += `,"data":${json(data, 'data')}`;
    if (opts !== undefined) text += `,"opts":${JSON.stringify(opts)}`;
    return `${text}}`;
  },

  decode(payload) {
    if (payload[0] !== OPENING_BRACE) return undefined;
    let value: Record<string, unknown>;
    try {
      value = JSON.parse(payload.toString());
    } catch {
      return undefined; // not JSON, so not ours: the bytes themselves are the data
    }
    if (typeof value.name !== 'string') return undefined;
    for (const key in value) if (!ENVELOPE_KEYS.has(key)) return undefined;
    return { name: value.name, data: value.data, opts: optionsOf(value.opts) };
  },

  encodeResult(result) {
    return result === undefined ? NOTHING : json(result, 'result');
  },

  decodeResult(result) {
    return JSON.parse(result.toString());
  },
};

let lastName = '';
let lastHead = headOf(lastName);

/** How the envelope of a job of this name begins. One after the other mostly have the same. */
function headFor(name: string): string {
  if (name !== lastName) {
    lastHead = headOf(name);
    lastName = name;
  }
  return lastHead;
}

function headOf(name: string): string {
  return `{"name":${JSON.stringify(name)}`;
}

function optionsOf(value: unknown): TravellingOptions | undefined {
  return typeof value === 'object' && value !== null ? (value as TravellingOptions) : undefined;
}

/** A payload may come from anybody: only options that make sense are taken from it, one by one. */
export function travellingOptions(value: unknown): TravellingOptions | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { attempts, backoff, timeoutMs, keepMs, schedule, slot } = value as Record<string, unknown>;
  return {
    attempts: isWhole(attempts, 1) ? attempts : undefined,
    backoff: isJobBackoff(backoff) ? backoff : undefined,
    timeoutMs: isWhole(timeoutMs, 0) ? timeoutMs : undefined,
    keepMs: isWhole(keepMs, 0) ? keepMs : undefined,
    schedule: typeof schedule === 'string' ? schedule : undefined,
    slot: isWhole(slot, 0) ? slot : undefined,
  };
}

function isWhole(value: unknown, min: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min;
}

/**
 * JSON. What would not come back at all is refused: bytes anywhere, and at the top NaN, functions and symbols. Inside
 * objects JSON's own rules hold (NaN becomes null, a function vanishes, a Date becomes its text).
 */
function json(value: unknown, what: string): string {
  if (typeof value === 'number' && !Number.isFinite(value)) throw refused(what, `${value}`);
  if (value instanceof Uint8Array) throw refused(what, BYTES);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new EchoArgumentError(`${what} cannot be serialised: ${(error as Error).message}`, error);
  }
  if (text === undefined) {
    throw refused(what, typeof value === 'object' ? 'an object whose toJSON answers nothing' : `a ${typeof value}`);
  }
  if ((text.includes(BUFFER_SPELT) || text.includes(BYTES_SPELT)) && holdsBytes(value))
    throw refused(what, `around ${BYTES}`);
  return text;
}

/** What JSON makes of a Buffer, and of other bytes. Data that merely looks like it is told apart by a second look. */
const BUFFER_SPELT = 'Buffer"'; // of `"type":"Buffer"` what is found fastest
const BYTES_SPELT = '{"0":';

function holdsBytes(value: unknown): boolean {
  if (value instanceof Uint8Array) return true;
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return false;
  return Object.values(value).some(holdsBytes);
}

function refused(what: string, kind: string): EchoArgumentError {
  return new EchoArgumentError(`${what} cannot be serialised as JSON: it is ${kind}`);
}
