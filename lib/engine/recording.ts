import { show } from '../kernel/arguments.js';
import type { Codec } from '../kernel/codec.js';
import { EchoArgumentError, EchoConfigError } from '../kernel/errors.js';
import { BEGINNING, type StreamId } from '../kernel/stream-id.js';
import type { CompletionsPage, Row } from '../wire/transitions/index.js';
import { seenOf } from './results.js';

/** Settled jobs, as consumers with the option `record` leave them in a stream of the queue. */

interface Settled {
  /** Where the entry stands in the stream. */
  at: StreamId;
  id: string;
  /** Claims of the job. */
  attempts: number;
  /** When it settled, by the server's clock, milliseconds since 1970. */
  atMs: number;
}

/** The end of a job. */
export type Completion =
  /** `result`: what the handler returned; the bytes where the codec cannot read them. */
  | (Settled & { outcome: 'completed'; result: unknown })
  /** `error`: why it is dead; of an error its stack, cut to 4,096 bytes. */
  | (Settled & { outcome: 'dead'; error: string });

export interface CompletionPage {
  /** Oldest first. */
  entries: Completion[];
  /** Give it as `after` to go on; also when there was nothing new. */
  next: StreamId;
  /** The server no longer knew `after`, because it was flushed or has lost the stream: this page is the first of a new one. */
  restarted: boolean;
}

const ENTRIES_BY_DEFAULT = 10_000;
/** What the wire calls a stream that no step trims. */
const UNTRIMMED = 1;
const STREAM_ID = /^(0|[1-9]\d{0,15})-(0|[1-9]\d{0,15})$/;

/** @throws EchoConfigError naming the option */
export function assertRecord(record: unknown, name: string): asserts record is boolean | number {
  if (typeof record === 'boolean' || record === Number.POSITIVE_INFINITY) return;
  if (Number.isSafeInteger(record) && (record as number) > UNTRIMMED) return;
  throw new EchoConfigError(
    `option '${name}' must be true or false, a whole number of entries from 2, or Infinity, got ${show(record)}`,
  );
}

/** As the wire wants it. */
export function recordArg(record: boolean | number): number {
  if (typeof record === 'boolean') return record ? ENTRIES_BY_DEFAULT : 0;
  return record === Number.POSITIVE_INFINITY ? UNTRIMMED : record;
}

/** @throws EchoArgumentError */
export function readAfter(after: unknown = BEGINNING): StreamId {
  if (typeof after === 'string' && STREAM_ID.test(after) && after.split('-').every(isExact)) return after;
  throw new EchoArgumentError(`after must be the 'next' of a page, or an entry's 'at', got ${show(after)}`);
}

export function completionPage({ restarted, entries }: CompletionsPage, after: StreamId, codec: Codec): CompletionPage {
  return {
    entries: entries.map(({ at, fields }) => completionOf(at, fields, codec)),
    next: entries.at(-1)?.at ?? (restarted ? BEGINNING : after),
    restarted,
  };
}

function completionOf(at: StreamId, fields: Row, codec: Codec): Completion {
  const word = (field: string) => fields.get(field)?.toString() ?? '';
  const settled = { at, id: word('id'), attempts: Number(word('attempts')), atMs: Number(word('at')) };
  if (word('outcome') === 'dead') return { ...settled, outcome: 'dead', error: word('error') };
  // One that the codec cannot read must not keep the reader from those behind it.
  return { ...settled, outcome: 'completed', result: seenOf(fields.get('result'), codec) };
}

function isExact(digits: string): boolean {
  return Number.isSafeInteger(Number(digits));
}
