import type { Cluster, Redis } from 'ioredis';
import { dumpQueue, type QueueDump } from './dump.js';
import { checkOwed, families } from './family-invariants.js';
import { floorOf, lanes } from './lane-invariants.js';
import { QueueView, type Row, stateOf } from './queue-view.js';
import { schedules } from './schedule-invariants.js';

/** What a check may be told about a queue that was tampered with on purpose. */
export interface InvariantOptions {
  /** Ids whose rows the test deleted by hand after they were enqueued: excused in I2, and counted as one job each in I7. */
  ghosts?: readonly string[];
}

type Check = (view: QueueView, ghosts: ReadonlySet<string>) => string[];

/**
 * The invariants of the wire that one queue shows, a function each; the outbox (I6) needs several queues: see
 * {@link expectInvariantsOf}.
 */
const CHECKS: readonly Check[] = [
  types,
  rows,
  onePlace,
  membersAndRows,
  claims,
  families,
  deduplication,
  counters,
  schedules,
  lanes,
];

/**
 * Every way in which a dump of one queue breaks the wire's invariants, as sentences that begin with the invariant's number;
 * empty when all is well. What needs history (I3) is {@link InvariantWatch}'s.
 */
export function checkInvariants(dump: QueueDump, options: InvariantOptions = {}): string[] {
  const view = new QueueView(dump);
  const ghosts = new Set(options.ghosts);
  return CHECKS.flatMap((check) => check(view, ghosts));
}

/** Dumps a queue and throws an Error listing all violations, if there are any. Resolves with the dump. */
export async function expectInvariants(
  client: Redis | Cluster,
  queue: string,
  options: InvariantOptions & { prefix?: string; watch?: InvariantWatch } = {},
): Promise<QueueDump> {
  const dump = await dumpQueue(client, queue, options.prefix);
  const violations = options.watch ? options.watch.see(dump, options) : checkInvariants(dump, options);
  if (violations.length > 0) throw new Error(`queue ${queue}:\n  ${violations.join('\n  ')}`);
  return dump;
}

/**
 * Dumps several queues, which nobody must be using, and throws an Error listing all violations in each of them and of what they
 * owe each other (I6).
 */
export async function expectInvariantsOf(client: Redis | Cluster, queues: readonly string[]): Promise<void> {
  const dumps: Record<string, QueueDump> = {};
  for (const queue of queues) dumps[queue] = await expectInvariants(client, queue);
  const violations = checkOwed(dumps);
  if (violations.length > 0) throw new Error(`queues ${queues.join(', ')}:\n  ${violations.join('\n  ')}`);
}

/**
 * Remembers the dumps of one queue it was shown, and adds what only a history can show: I3, a token never goes down while its row
 * exists; I8, nor does the virtual time of the lanes. A row that vanished between two dumps is forgotten: its id may land again.
 */
export class InvariantWatch {
  private attempts = new Map<string, number>();
  private floor: number | undefined;

  /** All violations of this dump, including those against the dumps seen before. */
  see(dump: QueueDump, options: InvariantOptions = {}): string[] {
    const violations = checkInvariants(dump, options);
    const now = new Map<string, number>();
    const floor = floorOf(new QueueView(dump));
    if (floor !== undefined && floor < (this.floor ?? 0)) {
      violations.push(`I8 virtual time went from ${this.floor} down to ${floor}`);
    }
    this.floor = floor;
    for (const [id, row] of new QueueView(dump).rows) {
      const attempts = Number(row.attempts);
      const before = this.attempts.get(id) ?? 0;
      if (attempts < before) violations.push(`I3 ${id}: attempts went from ${before} down to ${attempts}`);
      now.set(id, Math.max(attempts, before));
    }
    this.attempts = now;
    return violations;
  }
}

function types(view: QueueView): string[] {
  return view.wrongTypes.map((key) => `row ${key} has the wrong type`);
}

/** Section 4: the fields that every row has, and an expiry only when done (any other row would lose its job). */
function rows(view: QueueView): string[] {
  return [...view.rows].flatMap(([id, row]) => {
    const wrong: string[] = [];
    if (!isCount(row.attempts)) wrong.push(`row ${id}: attempts is ${row.attempts}`);
    if (row.payload === undefined && row.state !== 'done') wrong.push(`row ${id} has no payload`);
    if (view.expiring.has(id) && row.state !== 'done') wrong.push(`row ${id} is ${row.state} and will expire`);
    for (const place of view.places.get(id) ?? []) {
      const score = scoreAt(place.key, row);
      if (score !== undefined && place.score !== score) {
        wrong.push(`row ${id} has score ${place.score} in ${place.key}, not ${score}`);
      }
    }
    return wrong;
  });
}

function onePlace(view: QueueView): string[] {
  return [...view.places].flatMap(([id, places]) => {
    if (places.length > 1) return [`I1 ${id} stands in ${places.map((place) => place.key).join(' and ')}`];
    const row = view.rows.get(id);
    const key = places[0]!.key;
    if (!row) return [];
    if (row.state !== stateOf(key)) return [`I1 ${id} stands in ${key} and its state is ${row.state}`];
    const home = row.lane === undefined ? 'pending' : `lane:${row.lane}`;
    if (row.state === 'pending' && key !== home) return [`I1 ${id} belongs in ${home} and stands in ${key}`];
    return [];
  });
}

function membersAndRows(view: QueueView, ghosts: ReadonlySet<string>): string[] {
  const ghostly = [...view.places].filter(([id]) => !view.rows.has(id) && !ghosts.has(id));
  const lost = [...view.rows].filter(([id, row]) => !view.places.has(id) && row.state !== 'done');
  const orphans = [...view.flowKeys].filter(([id]) => (view.rows.get(id)?.state ?? 'done') === 'done');
  return [
    ...ghostly.map(([id, places]) => `I2 ${id} stands in ${places[0]!.key} and has no row`),
    ...lost.map(([id, row]) => `I2 ${id} has a row (${row.state}) and stands nowhere`),
    ...orphans.filter(([id]) => !ghosts.has(id)).map(([id, keys]) => `I2 ${id} has ended but left ${keys.join(', ')}`),
  ];
}

/**
 * I4 as far as one moment shows it: what is claimed has a token, and what a reap requeued still carries the token that may
 * settle it. A later claim outgrows `lapsed`, every settle removes it, and a reap that buries may leave it.
 */
function claims(view: QueueView): string[] {
  return [...view.rows].flatMap(([id, row]) => {
    if (row.state === 'active' && row.attempts === '0') return [`I4 ${id} is active but was never claimed`];
    if (row.lapsed === undefined || row.state === 'dead') return [];
    const right =
      row.state === 'pending'
        ? row.lapsed === row.attempts
        : row.state === 'active' && Number(row.lapsed) < Number(row.attempts);
    return right ? [] : [`I4 ${id} is ${row.state} with attempts ${row.attempts} and lapsed ${row.lapsed}`];
  });
}

/** Section 6: a key is given up at every end of its owner; one that is held by time alone, which no row names, with the time. */
function deduplication(view: QueueView, ghosts: ReadonlySet<string>): string[] {
  return Object.entries(view.dump).flatMap(([key, held]) => {
    if (!key.startsWith('dedup:')) return [];
    const owner = 'string' in held ? held.string : '';
    const row = view.rows.get(owner);
    if (!('dedups' in view.dump)) return [`dedup ${key} is held, and the queue does not know of keys`];
    if (ghosts.has(owner) || (held.expires && row?.dedup !== key.slice('dedup:'.length))) return [];
    if (!row || row.state === 'done' || row.state === 'dead')
      return [`dedup ${key} is held by ${owner}, which has ended`];
    return row.dedup === key.slice('dedup:'.length)
      ? []
      : [`dedup ${key} is held by ${owner}, which does not claim it`];
  });
}

function counters(view: QueueView, ghosts: ReadonlySet<string>): string[] {
  const [enqueued, completed, removed] = ['enqueued', 'completed', 'removed'].map((name) => view.counter(name));
  const members = [...view.places.keys()].filter((id) => !ghosts.has(id)).length;
  const accounted = completed! + removed! + members + ghosts.size;
  if (enqueued === accounted) return [];
  const ghostly = ghosts.size > 0 ? ` + ghosts ${ghosts.size}` : '';
  return [`I7 enqueued ${enqueued} is not completed ${completed} + removed ${removed} + members ${members}${ghostly}`];
}

/** The score a member must have; undefined where it is a time. */
function scoreAt(key: string, row: Row): number | undefined {
  if (key === 'dead' || key === 'waiting') return 0;
  return stateOf(key) === 'pending' ? Number(row.priority ?? 0) : undefined;
}

function isCount(value: string | undefined): boolean {
  return value !== undefined && /^(0|[1-9]\d*)$/.test(value);
}
