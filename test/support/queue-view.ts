import type { QueueDump } from './dump.js';

/** Where an id stands: the key (`pending`, `lane:vip`, `active`, ...) and its score there. */
export interface Place {
  key: string;
  score: number;
}

/** The fields of a row, as text. */
export type Row = Record<string, string>;

/** The records a parent keeps of its children: child id to result, or to error. */
export const RECORDS = ['processed', 'unsuccessful', 'failed'] as const;

/** What stands in the flow keys of a parent. */
export interface FamilyView extends Record<(typeof RECORDS)[number], Record<string, string>> {
  /** `queue|id` of each child. */
  children: string[];
  dependencies: string | undefined;
}

/** The sets a job can stand in, and the state its row must then have; lanes count as pending. */
const STATE_OF: Record<string, string> = {
  pending: 'pending',
  active: 'active',
  schedule: 'scheduled',
  dead: 'dead',
  waiting: 'awaiting_children',
};

/** A dump seen as jobs: which rows there are, and where every id stands. Reads only. */
export class QueueView {
  /** id -> fields. */
  readonly rows = new Map<string, Row>();
  /** Ids of rows with an expiry. */
  readonly expiring = new Set<string>();
  /** id -> the sets it is a member of; several is a violation. */
  readonly places = new Map<string, Place[]>();
  /** id -> names of its flow keys (`dependencies`, `children`, ...). */
  readonly flowKeys = new Map<string, string[]>();
  /** id -> what its flow keys hold. */
  readonly families = new Map<string, FamilyView>();
  /** Keys that hold another type than the wire says. */
  readonly wrongTypes: string[] = [];

  constructor(readonly dump: QueueDump) {
    for (const key of Object.keys(dump)) {
      if (isPlace(key)) this.readPlace(key);
      else if (key.startsWith('job:')) this.readJob(key);
    }
  }

  /** The `count` of a counter such as `metrics:enqueued`; 0 when the counter was never written. */
  counter(name: string): number {
    const held = this.dump[`metrics:${name}`];
    if (held === undefined) return 0;
    return 'hash' in held ? Number(held.hash.count ?? 0) : Number.NaN;
  }

  private readPlace(key: string): void {
    const held = this.dump[key]!;
    if (!('zset' in held)) return void this.wrongTypes.push(key);
    for (const [id, score] of held.zset) {
      const places = this.places.get(id) ?? [];
      places.push({ key, score });
      this.places.set(id, places);
    }
  }

  private readJob(key: string): void {
    const [, id, flowKey] = key.split(':') as [string, string, string | undefined];
    if (flowKey !== undefined) return void this.readFlowKey(key, id, flowKey);
    const held = this.dump[key]!;
    if (!('hash' in held)) return void this.wrongTypes.push(key);
    this.rows.set(id, held.hash);
    if (held.expires) this.expiring.add(id);
  }

  private readFlowKey(key: string, id: string, name: string): void {
    this.flowKeys.set(id, [...(this.flowKeys.get(id) ?? []), name]);
    const none: FamilyView = { children: [], dependencies: undefined, processed: {}, unsuccessful: {}, failed: {} };
    const family = this.families.get(id) ?? none;
    this.families.set(id, family);
    const held = this.dump[key]!;
    const record = RECORDS.find((one) => one === name);
    if (name === 'children' && 'set' in held) family.children = held.set;
    else if (name === 'dependencies' && 'string' in held) family.dependencies = held.string;
    else if (record && 'hash' in held) family[record] = held.hash;
    else this.wrongTypes.push(key);
  }
}

/** The state that the row of a member of `key` must have. */
export function stateOf(key: string): string {
  return STATE_OF[key] ?? 'pending';
}

function isPlace(key: string): boolean {
  return Object.hasOwn(STATE_OF, key) || key.startsWith('lane:');
}
