/** The id of a stream's entry, `<ms>-<seq>`. */
export type StreamId = string;

/** Before any entry. */
export const BEGINNING: StreamId = '0-0';

/** Does `a` come before `b`? Both halves are numbers below 2^53 here: milliseconds, and entries of one of them. */
export function isEarlier(a: StreamId, b: StreamId): boolean {
  const [aMs, aSeq] = partsOf(a);
  const [bMs, bSeq] = partsOf(b);
  return aMs < bMs || (aMs === bMs && aSeq < bSeq);
}

function partsOf(id: StreamId): [number, number] {
  const dash = id.indexOf('-');
  return [Number(id.slice(0, dash)), Number(id.slice(dash + 1))];
}
