import type { QueueKeys } from '../kernel/keyspace.js';
import type { Connection } from './connection.js';
import { array, ascii, countOf, type Reply, text } from './reply.js';

const PER_STEP = '500';

/** A child as its parent knows it. */
export interface Member {
  readonly queue: string;
  readonly id: string;
}

/** What of a child its parent records: its result, or why it counts as settled, or why it holds the parent dead. */
export type FamilyRecord = 'processed' | 'unsuccessful' | 'failed';

/** What is recorded of a parent's children, read in bounded steps. */
export class Family {
  private readonly row: string;

  constructor(
    private readonly connection: Connection,
    keys: QueueKeys,
    id: string,
    private readonly timeoutMs: number,
  ) {
    this.row = keys.row(id);
  }

  /** Children that have not settled; 0 when the job is no parent, or not any more. */
  async outstanding(): Promise<number> {
    return countOf(await this.call('GET', `${this.row}:dependencies`));
  }

  async size(): Promise<number> {
    return countOf(await this.call('SCARD', `${this.row}:children`));
  }

  /** Per child. Read while children settle, it holds what was there at the start, and perhaps more. */
  async record(kind: FamilyRecord): Promise<Map<string, Buffer>> {
    const found = new Map<string, Buffer>();
    for await (const page of this.scan('HSCAN', `${this.row}:${kind}`)) {
      for (let i = 0; i < page.length; i += 2) found.set(ascii(page[i]), page[i + 1] as Buffer);
    }
    return found;
  }

  /** In pages, each child once or more. */
  async *members(): AsyncGenerator<Member[]> {
    for await (const page of this.scan('SSCAN', `${this.row}:children`)) yield page.map(memberOf);
  }

  private async *scan(command: 'HSCAN' | 'SSCAN', key: string): AsyncGenerator<Reply[]> {
    let cursor = '0';
    do {
      const [next, page] = array(await this.call(command, key, cursor, 'COUNT', PER_STEP)) as [Reply, Reply];
      yield array(page);
      cursor = text(next);
    } while (cursor !== '0');
  }

  private call(command: string, ...args: string[]): Promise<Reply> {
    return this.connection.call(command, args, { resend: true, timeoutMs: this.timeoutMs });
  }
}

/** `queue|id`, read from its end: an id has 14 bytes, and a queue's name may hold a bar. */
function memberOf(reply: Reply): Member {
  const member = text(reply);
  return { queue: member.slice(0, -15), id: member.slice(-14) };
}
