import type { Redis } from 'ioredis';
import { type KeyName, Keyspace, type QueueKeys } from '../../lib/kernel/keyspace.js';
import type { Executor } from '../../lib/wire/executor.js';
import type { Arg, Reply } from '../../lib/wire/reply.js';
import type { ScriptName } from '../../lib/wire/transition.js';
import * as transitions from '../../lib/wire/transitions/index.js';
import { dumpQueue, type QueueDump } from '../support/dump.js';

/** A time long past and one far ahead, in ms: leases that lapsed or hold, delays that are due or not. */
export const PAST = 1_600_000_000_000;
export const FAR = 4_000_000_000_000;

export type Fields = Record<string, string | number>;

const keyspace = new Keyspace();
/** The keys of steps that concern the whole prefix. */
const PREFIX_KEYS = {
  node: [keyspace.nodes, keyspace.nodeOwners],
  node_return: [keyspace.nodes, keyspace.nodeOwners],
  brand: [keyspace.version, keyspace.nodes],
};

/** By the name of the script. */
const DESCRIBED: ReadonlyMap<string, { readonly keys: readonly KeyName[] }> = new Map(
  Object.values({ ...transitions, list: transitions.list.pending }).map((step) => [step.name, step]),
);

/** The n-th id of a spec; ids sort by n. */
export function id(n: number): string {
  return `JOB${String(n).padStart(11, '0')}`;
}

/** The hand that builds a queue by plain commands, and calls scripts as the library does. */
export class Hand {
  readonly keys: QueueKeys;

  constructor(
    readonly client: Redis,
    readonly executor: Executor,
    readonly queue = 'q',
  ) {
    this.keys = keyspace.queue(queue);
  }

  /** Calls one script; `keys` only where the descriptor does not say. @throws EchoError */
  run(name: ScriptName, args: readonly Arg[], keys = this.keysOf(name)): Promise<Reply> {
    return this.executor.script(name, keys, [...args], { resend: false });
  }

  keysOf(name: ScriptName): string[] {
    if (name in PREFIX_KEYS) return PREFIX_KEYS[name as keyof typeof PREFIX_KEYS];
    if (name === 'lead' || name === 'resign') return [this.keys.leader, this.keys.base];
    return DESCRIBED.get(name)!.keys.map((key) => this.keys[key]);
  }

  dump(): Promise<QueueDump> {
    return dumpQueue(this.client, this.queue);
  }

  pending(jobId: string, fields: Fields = {}): Promise<void> {
    return this.put('pending', 'pending', jobId, fields, Number(fields.priority ?? 0));
  }

  scheduled(jobId: string, fields: Fields = {}, runAt = FAR): Promise<void> {
    return this.put('schedule', 'scheduled', jobId, fields, runAt);
  }

  active(jobId: string, fields: Fields = {}, deadline = FAR): Promise<void> {
    return this.put('active', 'active', jobId, { attempts: 1, lease_epoch: '-', ...fields }, deadline);
  }

  /** Lapsed, reaped, and not claimed again: its holder may still settle it. */
  lapsed(jobId: string, fields: Fields = {}): Promise<void> {
    return this.pending(jobId, { attempts: 1, lease_epoch: '-', stalls: 1, lapsed: fields.attempts ?? 1, ...fields });
  }

  dead(jobId: string, fields: Fields = {}): Promise<void> {
    const text = { last_error: 'boom', errors: 1, 'error:1': 'boom' };
    return this.put('dead', 'dead', jobId, { attempts: 1, lease_epoch: '-', ...text, ...fields }, 0);
  }

  /** Held for its children: see family.ts. */
  waiting(jobId: string, fields: Fields = {}): Promise<void> {
    return this.put('waiting', 'awaiting_children', jobId, fields, 0);
  }

  /** Completed and kept for a while. */
  async done(jobId: string, fields: Fields = {}): Promise<void> {
    const row = { state: 'done', attempts: 1, payload: 'p', lease_epoch: '-', result: 'r', ...fields };
    await this.client
      .pipeline()
      .hset(this.keys.row(jobId), row)
      .pexpire(this.keys.row(jobId), 600_000)
      .hincrby(`${this.keys.base}metrics:enqueued`, 'count', 1)
      .hincrby(`${this.keys.base}metrics:completed`, 'count', 1)
      .exec();
  }

  /** A member without a row. */
  async ghost(set: string, jobId: string, score = 0): Promise<void> {
    await this.client.zadd(this.keys.base + set, score, jobId);
    await this.client.hincrby(`${this.keys.base}metrics:enqueued`, 'count', 1);
  }

  async paused(): Promise<void> {
    await this.client.set(this.keys.paused, 1);
  }

  /** Processes that wait for work, the first for the longest. */
  async hungry(...processes: string[]): Promise<void> {
    await this.client.zadd(`${this.keys.base}hungry`, ...processes.flatMap((name, i) => [i + 1, name]));
  }

  private async put(set: string, state: string, jobId: string, fields: Fields, score: number): Promise<void> {
    await this.client
      .pipeline()
      .hset(this.keys.row(jobId), { state, attempts: 0, payload: 'p', ...fields })
      .zadd(this.keys.base + set, score, jobId)
      .hincrby(`${this.keys.base}metrics:enqueued`, 'count', 1)
      .exec();
  }
}
