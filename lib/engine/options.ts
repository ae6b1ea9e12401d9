import { assertKnownKeys, assertOption, show } from '../kernel/arguments.js';
import { type Clock, systemClock } from '../kernel/clock.js';
import { type Codec, jsonCodec } from '../kernel/codec.js';
import type { Complete } from '../kernel/complete.js';
import { EchoConfigError, type EchoError } from '../kernel/errors.js';
import { assertPrefix, DEFAULT_PREFIX } from '../kernel/keyspace.js';
import type { ConnectionSource } from '../wire/client-factory.js';
import { BRANDS, type Wire } from '../wire/fence.js';

export interface EchoMqOptions {
  /** A `redis://` or `rediss://` URL, client options (also Sentinel), `{ cluster: [...] }`, or a client to copy. */
  connection: ConnectionSource;
  /** What every key begins with, 1 to 64 of `[A-Za-z0-9_.:-]`. Default `emq`. */
  prefix?: string | undefined;
  /** Generation of the wire: 6, or 4 for keys shared with older clients. Default 6. */
  wire?: Wire | undefined;
  /** Time for the first connection. Default 10 s. */
  connectTimeoutMs?: number | undefined;
  /**
   * When the server cannot be reached at the start: 'fail' goes on trying for `connectTimeoutMs` and then gives up; 'wait'
   * starts all the same and joins when the server is there. What the server refuses for good fails the start either way.
   * Default 'fail'.
   */
  onBoot?: 'fail' | 'wait' | undefined;
  /** Time for the answer to a call; then it rejects with a retryable EchoTimeoutError. Default 5 s. */
  requestTimeoutMs?: number | undefined;
  /** The same for enqueue. `Infinity` buffers jobs until the server is back. Default `requestTimeoutMs`. */
  enqueueTimeoutMs?: number | undefined;
  /** Jobs that may wait while the server cannot be reached; more are refused at once. Default 100,000. */
  enqueueBufferLimit?: number | undefined;
  /**
   * Largest payload, result and progress; a handler whose result is larger, kept or not, fails its attempt. Default
   * 10 MiB.
   */
  maxPayloadBytes?: number | undefined;
  /** How jobs become bytes. Default JSON. */
  codec?: Codec | undefined;
  /**
   * Told of trouble nobody asked about: a lost connection, a refused renewal, a listener that threw. The same words are
   * repeated at most every 30 s. Default: a process warning.
   */
  onError?: ((error: EchoError) => void) | undefined;
  /** Told when the server is reached again after a loss, or after a first attempt that failed. Default: nothing. */
  onReconnected?: ((awayMs: number) => void) | undefined;
  /** @internal */
  clock?: Clock | undefined;
}

export type EchoMqSettings = Complete<EchoMqOptions>;

const DEFAULTS = {
  prefix: DEFAULT_PREFIX,
  wire: 6,
  connectTimeoutMs: 10_000,
  onBoot: 'fail',
  requestTimeoutMs: 5000,
  enqueueBufferLimit: 100_000,
  maxPayloadBytes: 10 * 1024 * 1024,
  codec: jsonCodec,
  onError: (error: EchoError) => process.emitWarning(error),
  onReconnected: () => undefined,
  clock: systemClock,
} satisfies Partial<EchoMqOptions>;

const KNOWN = new Set(['connection', 'enqueueTimeoutMs', ...Object.keys(DEFAULTS)]);
const UNSAID = new Set(['clock']);

/** @throws EchoConfigError naming the option */
export function echoMqSettings(options: EchoMqOptions): EchoMqSettings {
  assertKnownKeys(options, KNOWN, 'EchoMq options', EchoConfigError, UNSAID);
  if (options.connection === undefined) {
    throw new EchoConfigError("option 'connection' is missing: say where the server is, it is never guessed");
  }
  const given = Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as Partial<EchoMqSettings> & Pick<EchoMqSettings, 'connection'>;
  const merged = { ...DEFAULTS, ...given };
  const settings: EchoMqSettings = { ...merged, enqueueTimeoutMs: merged.enqueueTimeoutMs ?? merged.requestTimeoutMs };
  assertPrefix(settings.prefix);
  if (typeof settings.wire !== 'number' || !Object.hasOwn(BRANDS, settings.wire))
    throw new EchoConfigError(`option 'wire' is 4 or 6, got ${show(settings.wire)}`);
  assertOption(settings.connectTimeoutMs, 'connectTimeoutMs', 1);
  if (settings.onBoot !== 'fail' && settings.onBoot !== 'wait') {
    throw new EchoConfigError(`option 'onBoot' is 'fail' or 'wait', got ${show(settings.onBoot)}`);
  }
  assertOption(settings.requestTimeoutMs, 'requestTimeoutMs', 1);
  if (settings.enqueueTimeoutMs !== Number.POSITIVE_INFINITY)
    assertOption(settings.enqueueTimeoutMs, 'enqueueTimeoutMs', 1);
  assertOption(settings.enqueueBufferLimit, 'enqueueBufferLimit', 0);
  assertOption(settings.maxPayloadBytes, 'maxPayloadBytes', 1);
  assertCodec(settings.codec);
  for (const name of ['onError', 'onReconnected'] as const) {
    if (typeof settings[name] === 'function') continue;
    throw new EchoConfigError(`option '${name}' must be a function, got ${show(settings[name])}`);
  }
  return settings;
}

function assertCodec(codec: unknown): asserts codec is Codec {
  for (const method of ['encode', 'decode', 'encodeResult']) {
    if (typeof (codec as Record<string, unknown> | null)?.[method] !== 'function') {
      throw new EchoConfigError(`option 'codec' must have a method ${method}, got ${show(codec)}`);
    }
  }
}
