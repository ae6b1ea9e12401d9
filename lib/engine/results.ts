import type { Codec } from '../kernel/codec.js';

/** What a handler answered, read back. Of a codec that cannot read results, the bytes. */
export function resultOf(bytes: Buffer | undefined, codec: Codec): unknown {
  if (bytes === undefined || bytes.length === 0) return undefined;
  return codec.decodeResult === undefined ? bytes : codec.decodeResult(bytes);
}

/** The same for whoever only looks: also of what the codec refuses to read, the bytes. */
export function seenOf(bytes: Buffer | undefined, codec: Codec): unknown {
  try {
    return resultOf(bytes, codec);
  } catch {
    return bytes;
  }
}
