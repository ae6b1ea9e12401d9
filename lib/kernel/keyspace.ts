import { EchoArgumentError, EchoConfigError } from './errors.js';

export const DEFAULT_PREFIX = 'emq';

const PREFIX = /^[A-Za-z0-9_.:-]{1,64}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what a queue name must not hold
const FORBIDDEN_IN_NAME = /[{}\u0000-\u001f\u007f-\u009f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: likewise
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const LONGEST_NAME_BYTES = 200;
const MOST_KEPT = 10_000;

/** The keys of one queue. All of them carry the queue's name in braces and so share a cluster slot. */
export interface QueueKeys {
  readonly queue: string;
  readonly base: string;
  readonly pending: string;
  readonly active: string;
  readonly schedule: string;
  readonly dead: string;
  readonly waiting: string;
  readonly paused: string;
  /** Repeating schedules; score = next slot. */
  readonly schedules: string;
  /** Effects owed to other queues. */
  readonly outbox: string;
  /** Per queue owed to, the last entry known to be applied there. */
  readonly acknowledged: string;
  /** Per queue that owes, the last entry of its outbox applied here. */
  readonly relayed: string;
  /** Settled jobs, where consumers record them. */
  readonly completions: string;
  /** Processes with free slots, to be woken. */
  readonly hungry: string;
  /** Lanes that can give a job now, or their groups; score = virtual start tag. */
  readonly lanes: string;
  /** What holds back the whole queue. */
  readonly limits: string;
  /** Exists while somebody listens for events. */
  readonly heard: string;
  readonly leader: string;
  readonly version: string;
  /** The row of a job. */
  row(id: string): string;
  /** The channel on which one process is woken. */
  wakeChannel(process: string): string;
  /** The channel on which every process that serves the queue hears of new times, freed leadership and cancels. */
  beatChannel: string;
  /** The channel on which the end of jobs is told that somebody waits for. */
  settledChannel: string;
  /** The channel of events, for whoever listens. */
  eventsChannel: string;
}

/** Names of the fixed keys a transition can declare. */
export type KeyName =
  | 'pending'
  | 'active'
  | 'schedule'
  | 'dead'
  | 'waiting'
  | 'paused'
  | 'schedules'
  | 'relayed'
  | 'completions'
  | 'lanes'
  | 'limits'
  | 'leader'
  | 'base';

/** @throws EchoArgumentError unless it is 1 to 200 bytes of UTF-8 without braces, controls or outer blanks */
export function assertQueueName(name: unknown): asserts name is string {
  if (typeof name !== 'string') throw new EchoArgumentError(`queue name must be a string, got ${typeof name}`);
  const fault = faultOfName(name);
  if (fault) throw new EchoArgumentError(`queue name ${JSON.stringify(name.slice(0, 60))} ${fault}`);
}

/** @throws EchoArgumentError unless it is what a queue's name could be */
export function assertScheduleKey(key: unknown): asserts key is string {
  if (typeof key !== 'string') throw new EchoArgumentError(`a schedule's key must be a string, got ${typeof key}`);
  const fault = faultOfName(key);
  if (fault) throw new EchoArgumentError(`a schedule's key, ${JSON.stringify(key.slice(0, 60))}, ${fault}`);
}

/** @throws EchoArgumentError unless it is 1 to 200 bytes of UTF-8 without control characters */
export function assertName(name: unknown, what: string): asserts name is string {
  if (typeof name !== 'string') throw new EchoArgumentError(`${what} must be a string, got ${typeof name}`);
  const fault = faultOfBytes(name) ?? (CONTROL.test(name) ? 'holds a control character' : undefined);
  if (fault) throw new EchoArgumentError(`${what} ${JSON.stringify(name.slice(0, 60))} ${fault}`);
}

function faultOfName(name: string): string | undefined {
  const fault = faultOfBytes(name);
  if (fault) return fault;
  if (FORBIDDEN_IN_NAME.test(name)) return 'holds a brace or a control character';
  if (name !== name.trim()) return 'begins or ends with a blank';
  return undefined;
}

function faultOfBytes(name: string): string | undefined {
  if (name.length === 0) return 'is empty';
  if (!name.isWellFormed()) return 'holds half a surrogate pair, which UTF-8 cannot carry';
  if (Buffer.byteLength(name) > LONGEST_NAME_BYTES) return `is longer than ${LONGEST_NAME_BYTES} bytes`;
  return undefined;
}

/** @throws EchoConfigError unless it is 1 to 64 of `[A-Za-z0-9_.:-]` */
export function assertPrefix(prefix: unknown): asserts prefix is string {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new EchoConfigError("option 'prefix' must be 1 to 64 characters of A-Z a-z 0-9 _ . : -");
  }
}

class Keys implements QueueKeys {
  readonly base: string;
  readonly pending: string;
  readonly active: string;
  readonly schedule: string;
  readonly dead: string;
  readonly waiting: string;
  readonly paused: string;
  readonly schedules: string;
  readonly outbox: string;
  readonly acknowledged: string;
  readonly relayed: string;
  readonly completions: string;
  readonly hungry: string;
  readonly lanes: string;
  readonly limits: string;
  readonly heard: string;
  readonly leader: string;
  readonly version: string;
  readonly beatChannel: string;
  readonly settledChannel: string;
  readonly eventsChannel: string;

  constructor(
    readonly queue: string,
    prefix: string,
  ) {
    const base = `${prefix}:{${queue}}:`;
    this.base = base;
    this.pending = `${base}pending`;
    this.active = `${base}active`;
    this.schedule = `${base}schedule`;
    this.dead = `${base}dead`;
    this.waiting = `${base}waiting`;
    this.paused = `${base}paused`;
    this.schedules = `${base}schedules`;
    this.outbox = `${base}outbox`;
    this.acknowledged = `${base}outbox:acked`;
    this.relayed = `${base}relayed`;
    this.completions = `${base}stream:completions`;
    this.hungry = `${base}hungry`;
    this.lanes = `${base}lanes`;
    this.limits = `${base}limits`;
    this.heard = `${base}heard`;
    this.leader = `${base}leader`;
    this.version = `${base}version`;
    this.beatChannel = `${base}beat`;
    this.settledChannel = `${base}settled`;
    this.eventsChannel = `${base}events`;
  }

  row(id: string): string {
    return `${this.base}job:${id}`;
  }

  wakeChannel(process: string): string {
    return `${this.base}w:${process}`;
  }
}

/** Makes keys from names, once per queue. */
export class Keyspace {
  private readonly made = new Map<string, QueueKeys>();
  /** Keys that belong to the whole prefix: the brand, the node numbers, their owners. */
  readonly version: string;
  readonly nodes: string;
  readonly nodeOwners: string;

  constructor(readonly prefix: string = DEFAULT_PREFIX) {
    assertPrefix(prefix);
    const base = `{${prefix}}:`;
    this.version = `${base}version`;
    this.nodes = `${base}nodes`;
    this.nodeOwners = `${base}nodes:owner`;
  }

  /** The names of queues that keys were made for, unless they were too many to keep. */
  get named(): string[] {
    return [...this.made.keys()];
  }

  /** @throws EchoArgumentError when the name is refused */
  queue(name: string): QueueKeys {
    const known = this.made.get(name);
    if (known !== undefined) return known;
    assertQueueName(name);
    const keys = new Keys(name, this.prefix);
    if (this.made.size >= MOST_KEPT) this.made.clear(); // names may come from tenants without end
    this.made.set(name, keys);
    return keys;
  }
}
