import { assertInteger, assertKnownKeys, show } from './arguments.js';
import { EchoArgumentError } from './errors.js';
import { assertName } from './keyspace.js';

/**
 * - `until-settled`: while the job that holds the key has not ended, no other lands under it; at most for `ttlMs`, if given.
 * - `throttle`: for `ttlMs` from its landing no other lands, whatever becomes of it.
 * - `debounce`: the job waits `ttlMs`; as long as it waits, a later one gives it its data, and the wait begins anew.
 * - `latest-wins`: as long as it waits to run, a later one gives it its data; it keeps its place.
 *
 * Attempts that a job has failed before it was given other data count no more.
 */
export type DedupMode = 'until-settled' | 'throttle' | 'debounce' | 'latest-wins';

export interface Dedup {
  /** 1 to 200 bytes of UTF-8 without control characters: what users elsewhere call "my own job id". */
  key: string;
  /** Default `until-settled`. */
  mode?: DedupMode | undefined;
  /** Milliseconds from 1; `throttle` and `debounce` need it. */
  ttlMs?: number | undefined;
}

const KNOWN = new Set(['key', 'mode', 'ttlMs']);
const LETTER: Record<DedupMode, string> = { 'until-settled': 'u', throttle: 't', debounce: 'd', 'latest-wins': 'l' };

/** As the wire wants it. @throws EchoArgumentError naming the part */
export function dedupText(dedup: Dedup): string {
  assertKnownKeys(dedup, KNOWN, 'dedup');
  const { key, mode = 'until-settled', ttlMs } = dedup as Dedup;
  assertName(key, 'dedup.key');
  if (typeof mode !== 'string' || !Object.hasOwn(LETTER, mode)) {
    throw new EchoArgumentError(`dedup.mode must be one of ${Object.keys(LETTER).join(', ')}, got ${show(mode)}`);
  }
  if (ttlMs !== undefined) assertInteger(ttlMs, 'dedup.ttlMs', 1);
  else if (mode === 'throttle' || mode === 'debounce') throw new EchoArgumentError(`dedup: mode '${mode}' needs ttlMs`);
  return `${LETTER[mode]}${ttlMs ?? ''}:${key}`;
}
