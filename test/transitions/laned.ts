import { groupOf } from '../support/lane-invariants.js';
import { type Changes, gone } from './changes.js';
import { FAR, type Fields, type Hand } from './hand.js';

/** Stands between a group and its lane. */
export const SEP = '\u001f';
/** The member of `lanes:parked` that stands for the whole queue. */
export const QUEUE_HELD = SEP;

/** A lane as a table means it. */
export interface Lane {
  /** Ids that wait, with their scores. */
  waits?: Readonly<Record<string, number>>;
  /** Ids that run. */
  runs?: readonly string[];
  tag?: number;
  /** Other fields of its state; `active` is told from what runs where it is not named. */
  state?: Readonly<Record<string, unknown>>;
  /** Where it stands in its ring. Default: at its tag or the floor, unless it is empty, parked or `out`. */
  at?: number;
  /** Its time in `lanes:parked`. */
  parked?: unknown;
  /** Paused, or at its cap. */
  out?: boolean;
  /** Empty, and owes something to the others. */
  idle?: boolean;
  /** Forgotten, but for what it owes to its rate. */
  fading?: boolean;
}

/** The lanes of a queue, by their names; '' is the lane of the jobs without one. */
export interface Lanes {
  floor?: number;
  lanes: Readonly<Record<string, Lane>>;
  /** By their names without the separator. `out`: paused. */
  groups?: Readonly<
    Record<string, { tag?: number; at?: number; state?: Record<string, unknown>; out?: boolean; idle?: boolean }>
  >;
  /** What stands for all of them. */
  defaults?: Record<string, string>;
  /** The sum of those that wait in lanes; undefined where it was never counted. */
  total?: string | undefined;
  /** The time until which the whole queue is held. */
  held?: unknown;
}

type Dumped = Record<string, object>;

/** The keys of these lanes, as a dump shows them; rows are not among them. */
export function laneKeys(all: Lanes): Dumped {
  const keys: Dumped = { 'lanes:floor': { string: String(all.floor ?? 0) } };
  const sets: Record<string, [string, unknown][]> = { lanes: [], 'lanes:parked': [], 'lanes:waiting': [] };
  const active: Record<string, string> = {};
  const counts: Record<string, number> = {};
  const join = (key: string, member: string, score: unknown) => {
    sets[key] ??= [];
    sets[key].push([member, score]);
  };
  for (const [name, lane] of Object.entries(all.lanes)) {
    const waits = Object.entries(lane.waits ?? {});
    const group = groupOf(name);
    const ring = group === '' ? 'lanes' : `lanegroup:${group.slice(0, -1)}`;
    for (const [id, score] of waits) join(name === '' ? 'pending' : `lane:${name}`, id, score);
    for (const id of lane.runs ?? []) if (name !== '') active[id] = name;
    const floor = group === '' ? all.floor : Number(all.groups?.[group.slice(0, -1)]?.state?.floor ?? 0);
    if (lane.parked !== undefined) join('lanes:parked', name, lane.parked);
    else if (waits.length > 0 && !lane.out) join(ring, name, lane.at ?? Math.max(lane.tag ?? 0, floor ?? 0));
    if (lane.idle) join(`laneidle:${group.slice(0, -1)}`, name, lane.tag);
    const running = name !== '' && lane.runs?.length ? { active: lane.runs.length } : {};
    const state = textOf({ ...running, ...(lane.tag === undefined ? {} : { tag: lane.tag }), ...lane.state });
    if (Object.keys(state).length > 0)
      keys[`lanestate:${name}`] = lane.fading ? { hash: state, expires: true } : { hash: state };
    if (name === '' || lane.fading) continue;
    join('lanes:waiting', name, waits.length);
    if (group !== '') counts[group.slice(0, -1)] = (counts[group.slice(0, -1)] ?? 0) + 1;
  }
  for (const name of new Set([...Object.keys(counts), ...Object.keys(all.groups ?? {})])) {
    const { tag, at, state, out, idle } = all.groups?.[name] ?? {};
    join('lanes:waiting', name + SEP, 0);
    const counted = counts[name] === undefined ? {} : { lanes: counts[name] };
    keys[`lanegroupstate:${name}`] = { hash: textOf({ ...counted, ...(tag === undefined ? {} : { tag }), ...state }) };
    if (sets[`lanegroup:${name}`] && !out) join('lanes', name + SEP, at ?? Math.max(tag ?? 0, all.floor ?? 0));
    if (idle) join('laneidle:', name + SEP, tag);
  }
  if (all.held !== undefined) join('lanes:parked', QUEUE_HELD, all.held);
  for (const [key, members] of Object.entries(sets)) {
    members.sort(([a, x], [b, y]) => Number(x) - Number(y) || (a < b ? -1 : 1));
    if (members.length > 0) keys[key] = { zset: members };
  }
  if (Object.keys(active).length > 0) keys['lanes:active'] = { hash: active };
  if (all.defaults) keys['lanes:defaults'] = { hash: all.defaults };
  const waiting = sets['lanes:waiting']!.reduce((sum, [, n]) => sum + Number(n), 0);
  const total = 'total' in all ? all.total : String(waiting);
  if (total !== undefined) keys['lanes:total'] = { string: total };
  return keys;
}

/** How the keys change from these lanes to those; undefined: the queue has none. */
export function laneChanges(before: Lanes | undefined, after: Lanes | undefined): Changes {
  const changes: Changes = after === undefined ? {} : laneKeys(after);
  for (const key of before === undefined ? [] : Object.keys(laneKeys(before))) changes[key] ??= gone;
  return changes;
}

/** Builds these lanes by plain commands, with a row for each job; `rows`: what else stands in some of them. */
export async function laned(queue: Hand, all: Lanes, rows: Record<string, Fields> = {}): Promise<void> {
  for (const [name, { waits = {}, runs = [] }] of Object.entries(all.lanes)) {
    const lane: Fields = name === '' ? {} : { lane: name };
    for (const [id, score] of Object.entries(waits)) {
      await queue.pending(id, { ...(score === 0 ? {} : { priority: score }), ...lane, ...rows[id] });
      if (name !== '') await queue.client.zrem(queue.keys.pending, id);
    }
    for (const id of runs) await queue.active(id, { ...lane, ...rows[id] }, Number(rows[id]?.deadline ?? FAR));
  }
  const writes = queue.client.pipeline();
  for (const [name, held] of Object.entries(laneKeys(all)) as [string, Record<string, never>][]) {
    const key = queue.keys.base + name;
    if ('string' in held) writes.set(key, held.string!);
    else if ('hash' in held) writes.hset(key, held.hash!);
    else writes.zadd(key, ...(held.zset! as [string, number][]).flatMap(([member, score]) => [score, member]));
    if (held.expires) writes.pexpire(key, 600_000);
  }
  await writes.exec();
}

function textOf(fields: Record<string, unknown>): Record<string, string> {
  const text = Object.entries(fields).map(([name, value]) => [name, typeof value === 'number' ? String(value) : value]);
  return Object.fromEntries(text.filter(([, value]) => value !== undefined));
}
