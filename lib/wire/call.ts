import { Command } from 'ioredis';
import type { Arg } from './reply.js';

/**
 * A command of the client library, put into bytes by us: the library would copy the arguments, of which there may be thousands, and
 * look at each of them three times. Answers come as bytes.
 */
export class Call extends Command {
  constructor(name: string, args: Arg[]) {
    super(name, [], { replyEncoding: null } as ConstructorParameters<typeof Command>[2]);
    this.args = args; // a cluster's client finds the slot by them
  }

  override toWritable(): string | Buffer {
    const { name, args } = this;
    const parts: Buffer[] = []; // only where bytes are among the arguments
    let text = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`;
    for (let i = 0; i < args.length; i++) {
      const arg = args[i] as Arg;
      if (typeof arg === 'object') {
        parts.push(Buffer.from(`${text}$${arg.length}\r\n`), arg);
        text = '\r\n';
      } else {
        const said = String(arg);
        text += `$${Buffer.byteLength(said)}\r\n${said}\r\n`;
      }
    }
    return parts.length === 0 ? text : Buffer.concat([...parts, Buffer.from(text)]);
  }
}
