import { array, ascii, type Reply } from '../reply.js';

/** A row as it stands: field names and their bytes. */
export type Row = Map<string, Buffer>;

export function row(reply: Reply | undefined): Row | undefined {
  const flat = array(reply);
  if (flat.length === 0) return undefined;
  const fields: Row = new Map();
  for (let i = 0; i < flat.length; i += 2) fields.set(ascii(flat[i]), flat[i + 1] as Buffer);
  return fields;
}
