import type { Arg } from '../reply.js';

/** How an argument of so many bytes begins. */
const HEADS = Array.from({ length: 512 }, (_, bytes) => head(bytes));

/** Up to here the length in bytes is taken for that of the text: ids, tokens and numbers are ASCII. */
const SHORT = 64;

/**
 * A command and its arguments as the server reads them: text of one byte a character, or bytes. Thousands of arguments are looked at
 * once each.
 */
export function request(command: string, args: readonly Arg[]): string | Buffer {
  const start = `*${args.length + 1}${head(command.length)}${command}`;
  return inOne(start, args) ?? inParts(start, args);
}

/**
 * Most requests: no bytes among the arguments, and no short one that is not ASCII, which is seen in the whole. Long ones are measured
 * one by one: that also makes one piece of a text that was put together of many, which would otherwise burden the garbage collection
 * with all of them.
 */
function inOne(start: string, args: readonly Arg[]): string | Buffer | undefined {
  let text = start;
  let beyond = 0; // bytes that are more than characters
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (typeof arg === 'object') return undefined;
    const said = typeof arg === 'string' ? arg : String(arg);
    const bytes = said.length > SHORT ? Buffer.byteLength(said) : said.length;
    beyond += bytes - said.length;
    text += (HEADS[bytes] ?? head(bytes)) + said;
  }
  text += '\r\n';
  if (Buffer.byteLength(text) !== text.length + beyond) return undefined;
  return beyond === 0 ? text : Buffer.from(text);
}

function inParts(start: string, args: readonly Arg[]): Buffer {
  const parts: Buffer[] = [];
  let text = start;
  for (const arg of args) {
    if (typeof arg === 'object') {
      parts.push(Buffer.from(text + head(arg.length)), arg);
      text = '';
    } else {
      const said = String(arg);
      text += head(Buffer.byteLength(said)) + said;
    }
  }
  parts.push(Buffer.from(`${text}\r\n`));
  return Buffer.concat(parts);
}

function head(bytes: number): string {
  return `\r\n$${bytes}\r\n`;
}
