import type { QueueKeys } from '../kernel/keyspace.js';
import type { StreamId } from '../kernel/stream-id.js';
import type { Connection } from './connection.js';
import { array, ascii, type Reply, text } from './reply.js';

/** What a queue owes another one: an entry of its outbox. */
export interface OwedEffect {
  readonly id: StreamId;
  readonly target: string;
  readonly kind: string;
  /** As `apply` takes them. */
  readonly values: readonly Buffer[];
}

const OPTIONS = { resend: true } as const;
const MOST_PER_DROP = 1000;
/** Longer than any entry stays in an outbox after it was applied: a second look, and the outage of whoever makes it. */
const REMEMBERED_MS = 86_400_000;

/** The outbox of one queue, read and swept by whoever relays it. Effects are written by the steps that cause them. */
export class Outbox {
  constructor(
    private readonly connection: Connection,
    private readonly keys: QueueKeys,
  ) {}

  /** Up to `count` entries behind one, in order. */
  async read(after: StreamId, count: number): Promise<OwedEffect[]> {
    const reply = await this.call('XRANGE', this.keys.outbox, `(${after}`, '+', 'COUNT', String(count));
    return array(reply).map(effectOf);
  }

  /** Per queue, the last entry known to be applied there. */
  async acknowledged(): Promise<Map<string, StreamId>> {
    const flat = array(await this.call('HGETALL', this.keys.acknowledged));
    const known = new Map<string, StreamId>();
    for (let i = 0; i < flat.length; i += 2) known.set(text(flat[i]), ascii(flat[i + 1]));
    return known;
  }

  async acknowledge(target: string, id: StreamId): Promise<void> {
    await this.call('HSET', this.keys.acknowledged, target, id);
  }

  async drop(ids: readonly StreamId[]): Promise<void> {
    for (let i = 0; i < ids.length; i += MOST_PER_DROP) {
      await this.call('XDEL', this.keys.outbox, ...ids.slice(i, i + MOST_PER_DROP));
    }
  }

  /**
   * Forgets what was owed: the queue is no more. What others owed it is remembered for a day: as long as they keep an entry
   * that was applied, forgetting would have it applied again, and jobs that were removed, or have run, would land once more.
   */
  async erase(): Promise<void> {
    await this.call('UNLINK', this.keys.outbox, this.keys.acknowledged);
    await this.call('PEXPIRE', this.keys.relayed, String(REMEMBERED_MS));
  }

  private call(command: string, ...args: string[]): Promise<Reply> {
    return this.connection.call(command, args, OPTIONS);
  }
}

/** Fields in the order they were written: to, kind, then names and values. */
function effectOf(entry: Reply): OwedEffect {
  const [id, fields] = array(entry);
  const flat = array(fields);
  const values = flat.filter((_, i) => i > 4 && i % 2 === 1) as Buffer[];
  return { id: ascii(id), target: text(flat[1]), kind: ascii(flat[3]), values };
}
