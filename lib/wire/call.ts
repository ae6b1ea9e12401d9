import { Command } from 'ioredis';
import type { Arg } from './reply.js';

/** How an argument of so many bytes begins. */
const HEADS = Array.from({ length: 512 }, (_, bytes) => head(bytes));

/**
 * A command of the client library, put into bytes by us: the library would copy the arguments, of which there may be thousands, and
 * look at each of them three times. Answers come as bytes.
 */
export class Call extends Command {
  constructor(name: string, args: Arg[]) {
    super(name, [], { replyEncoding: null } as ConstructorParameters<typeof Command>[2]);
    this.args = args;
  }

  /** By its key a cluster's client finds the node. */
  override getKeys(): (string | Buffer)[] {
    const key = this.args[this.name.startsWith('eval') ? 2 : 0];
    return key === undefined ? [] : [key as string | Buffer];
  }

  override toWritable(): string | Buffer {
    const args = this.args as Arg[];
    const start = `*${args.length + 1}${head(this.name.length)}${this.name}`;
    return inOne(start, args) ?? inParts(start, args);
  }
}

/** Up to here the length in bytes is taken for that of the text: ids, tokens and numbers are ASCII. */
const SHORT = 64;

/**
 * Most calls: no bytes among the arguments, and no short one that is not ASCII, which is seen in the whole. Long ones are measured
 * one by one: that also makes one piece of a text that was put together of many, which would otherwise burden the garbage collection
 * with all of them.
 */
function inOne(start: string, args: readonly Arg[]): Buffer | undefined {
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
  return Buffer.from(text, beyond === 0 ? 'latin1' : 'utf8');
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
