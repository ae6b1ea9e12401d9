/** What the server sends back, with every string as its bytes. */
export type Reply = Buffer | number | null | Reply[];

/** What is sent: strings go out as UTF-8. */
export type Arg = string | number | Buffer;

export function text(reply: Reply | undefined): string {
  if (Buffer.isBuffer(reply)) return reply.toString();
  return reply === null || reply === undefined ? '' : String(reply);
}

/** Ids, states and numbers are ASCII; this is the fastest way to them. */
export function ascii(reply: Reply | undefined): string {
  return Buffer.isBuffer(reply) ? reply.toString('latin1') : text(reply);
}

export function integer(reply: Reply | undefined): number {
  return typeof reply === 'number' ? reply : Number(ascii(reply));
}

/** A count that a row says; what is none (somebody wrote to it by hand) is 0. */
export function countOf(reply: Reply | undefined): number {
  const count = integer(reply);
  return Number.isSafeInteger(count) && count >= 0 ? count : 0;
}

/** Absent is -1 on the wire. */
export function fromZero(value: number): number | undefined {
  return value < 0 ? undefined : value;
}

export function array(reply: Reply | undefined): Reply[] {
  return Array.isArray(reply) ? reply : [];
}
