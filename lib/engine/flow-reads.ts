import { assertInteger, assertKnownKeys } from '../kernel/arguments.js';
import type { Codec } from '../kernel/codec.js';
import { assertJobId } from '../kernel/id.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';
import type { Executor } from '../wire/executor.js';
import { Family, type FamilyRecord } from '../wire/family.js';
import { get } from '../wire/transitions/index.js';
import type { ChildrenReport, FlowTree } from './flow-calls.js';
import { viewOf } from './job-view.js';
import { resultOf } from './results.js';

export interface FlowReadsParts {
  readonly executor: Executor;
  readonly keyspace: Keyspace;
  readonly codec: Codec;
  readonly requestTimeoutMs: number;
}

const TREE_KEYS = new Set(['depth', 'limit']);
const MOST_OF_A_TREE = 1000;

/** What of Flows only looks. Everything is read in bounded steps. */
export abstract class FlowReads {
  /** @internal */
  constructor(protected readonly parts: FlowReadsParts) {}

  /** What the children answered, by the child's id. */
  async childrenValues(queue: string | Queue, id: string): Promise<Record<string, unknown>> {
    return this.values(this.family(queue, id));
  }

  /** How many children are outstanding; 0 when the job has none, or is gone. */
  async dependencies(queue: string | Queue, id: string): Promise<number> {
    return this.family(queue, id).outstanding();
  }

  /** By the child's id, the errors of children that count as settled although they died, or went. */
  async ignoredFailures(queue: string | Queue, id: string): Promise<Record<string, string>> {
    return texts(this.family(queue, id), 'unsuccessful');
  }

  /** By the child's id, the errors that a parent died of. */
  async failures(queue: string | Queue, id: string): Promise<Record<string, string>> {
    return texts(this.family(queue, id), 'failed');
  }

  /** All of the above. */
  async children(queue: string | Queue, id: string): Promise<ChildrenReport> {
    const family = this.family(queue, id);
    const [outstanding, values, ignored, failed] = await Promise.all([
      family.outstanding(),
      this.values(family),
      texts(family, 'unsuccessful'),
      texts(family, 'failed'),
    ]);
    return { outstanding, values, ignored, failed };
  }

  /** A job with its descendants: `depth` levels below it (default 10), and at most `limit` jobs (default and most 1,000). */
  async tree(
    queue: string | Queue,
    id: string,
    options: { depth?: number | undefined; limit?: number | undefined } = {},
  ): Promise<FlowTree> {
    assertKnownKeys(options, TREE_KEYS, 'tree options');
    const { depth = 10, limit = MOST_OF_A_TREE } = options;
    assertInteger(depth, 'depth', 0);
    assertInteger(limit, 'limit', 1, MOST_OF_A_TREE);
    const budget = { left: limit };
    return this.branch(this.keys(queue), id, depth, budget);
  }

  private async branch(keys: QueueKeys, id: string, depth: number, budget: { left: number }): Promise<FlowTree> {
    assertJobId(id);
    budget.left -= 1;
    const family = this.familyOf(keys, id);
    const [[row], size] = await Promise.all([
      this.parts.executor.run(get, keys, [id], this.parts.requestTimeoutMs),
      family.size(),
    ]);
    const children: FlowTree[] = [];
    if (size > 0 && depth > 0) {
      const seen = new Set<string>();
      pages: for await (const page of family.members()) {
        for (const member of page) {
          if (seen.has(member.id)) continue;
          if (budget.left <= 0) break pages;
          seen.add(member.id);
          children.push(await this.branch(this.parts.keyspace.queue(member.queue), member.id, depth - 1, budget));
        }
      }
    }
    children.sort((a, b) => (a.id < b.id ? -1 : 1));
    const job = row && viewOf(id, row, this.parts.codec);
    return { queue: keys.queue, id, job, children, more: size - children.length };
  }

  private async values(family: Family): Promise<Record<string, unknown>> {
    const record = await family.record('processed');
    return sorted(record, (bytes) => resultOf(bytes, this.parts.codec));
  }

  private family(queue: string | Queue, id: string): Family {
    assertJobId(id);
    return this.familyOf(this.keys(queue), id);
  }

  protected familyOf(keys: QueueKeys, id: string): Family {
    const { executor, requestTimeoutMs } = this.parts;
    return new Family(executor.connection, keys, id, requestTimeoutMs);
  }

  protected keys(queue: string | Queue): QueueKeys {
    return this.parts.keyspace.queue(queueName(queue));
  }
}

async function texts(family: Family, record: FamilyRecord): Promise<Record<string, string>> {
  return sorted(await family.record(record), (bytes) => bytes.toString());
}

/** In mint order. */
function sorted<T>(record: ReadonlyMap<string, Buffer>, read: (bytes: Buffer) => T): Record<string, T> {
  const entries = [...record].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([id, bytes]) => [id, read(bytes)]));
}
