import type { Arg } from './reply.js';

const ARRAY_32 = 0xdd;
const RAW_32 = 0xdb;
const HEADER = 5;

/** A list of byte strings in MessagePack, which the server's scripts can unpack. */
export function packed(tokens: readonly Arg[]): Buffer {
  const texts: (string | Buffer)[] = [];
  const lengths: number[] = [];
  let size = HEADER;
  for (const token of tokens) {
    const text = typeof token === 'number' ? String(token) : token;
    const length = Buffer.byteLength(text);
    texts.push(text);
    lengths.push(length);
    size += HEADER + length;
  }
  const all = Buffer.allocUnsafe(size);
  let at = header(all, 0, ARRAY_32, tokens.length);
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i]!;
    at = header(all, at, RAW_32, lengths[i]!);
    at += typeof text === 'string' ? all.write(text, at) : text.copy(all, at);
  }
  return all;
}

function header(all: Buffer, at: number, kind: number, n: number): number {
  all[at] = kind;
  return all.writeUInt32BE(n, at + 1);
}
