import { Command } from 'ioredis';
import type { Arg } from '../reply.js';
import { request } from '../resp/request.js';

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
    const bytes = request(this.name, this.args as Arg[]);
    return typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
  }
}
