import type { Arg } from './reply.js';

const ARRAY_32 = 0xdd;
const RAW_32 = 0xdb;

/** A list of byte strings in MessagePack, which the server's scripts can unpack. */
export function packed(tokens: readonly Arg[]): Buffer {
  const parts: Buffer[] = [header(ARRAY_32, tokens.length)];
  for (const token of tokens) {
    const bytes = Buffer.isBuffer(token) ? token : Buffer.from(String(token));
    parts.push(header(RAW_32, bytes.length), bytes);
  }
  return Buffer.concat(parts);
}

function header(kind: number, n: number): Buffer {
  const bytes = Buffer.allocUnsafe(5);
  bytes.writeUInt8(kind, 0);
  bytes.writeUInt32BE(n, 1);
  return bytes;
}
