import { expect } from '@jest/globals';
import { type Changes, gone, job } from './changes.js';
import type { Hand } from './hand.js';

/** A parent's children, and what it has recorded of them. A child is named `queue|id`, one of its own queue by its id alone. */
export interface Family {
  children: readonly string[];
  processed?: Record<string, string>;
  unsuccessful?: Record<string, string>;
  failed?: Record<string, string>;
}

const RECORDS = ['processed', 'unsuccessful', 'failed'] as const;

export function outstanding({ children, processed = {}, unsuccessful = {} }: Family): number {
  return children.length - Object.keys(processed).length - Object.keys(unsuccessful).length;
}

/** Makes a job the parent of a family. */
export async function give(queue: Hand, parent: string, family: Family): Promise<void> {
  const row = queue.keys.row(parent);
  const writes = queue.client.pipeline().hset(row, 'flow', 1);
  writes.sadd(`${row}:children`, ...family.children.map((child) => memberOf(queue.queue, child)));
  writes.set(`${row}:dependencies`, outstanding(family));
  for (const record of RECORDS) if (size(family[record]) > 0) writes.hset(`${row}:${record}`, family[record]!);
  await writes.exec();
}

/** A parent that waits for its children. */
export async function waiting(
  queue: Hand,
  parent: string,
  family: Family,
  fields: Record<string, string | number> = {},
): Promise<void> {
  await queue.waiting(parent, fields);
  await give(queue, parent, family);
}

/** The flow keys of a family, as a dump shows them. */
export function familyKeys(queue: string, parent: string, family: Family): Changes {
  const keys: Changes = {
    [`${job(parent)}:children`]: { set: family.children.map((child) => memberOf(queue, child)).sort() },
    [`${job(parent)}:dependencies`]: { string: String(outstanding(family)) },
  };
  for (const record of RECORDS)
    if (size(family[record]) > 0) keys[`${job(parent)}:${record}`] = { hash: family[record]! };
  return keys;
}

/** How the flow keys change with the family; `gone`: the parent has ended. */
export function familyChanges(queue: string, parent: string, before: Family, after: Family | typeof gone): Changes {
  const changes: Changes = after === gone ? {} : familyKeys(queue, parent, after);
  for (const key of Object.keys(familyKeys(queue, parent, before))) changes[key] ??= gone;
  return changes;
}

/** Where jobs stand: a set, and the score in it. */
export type Places = Record<string, readonly [set: string, score: unknown] | undefined>;

/** What the sets of these jobs hold afterwards. */
export function moved(before: Places, after: Places): Changes {
  const sets = new Set(
    [...Object.values(before), ...Object.values(after)].flatMap((place) => (place ? [place[0]] : [])),
  );
  const changes: Changes = {};
  for (const set of sets) {
    const members = Object.entries(after).flatMap(([id, place]): [string, unknown][] =>
      place?.[0] === set ? [[id, place[1]]] : [],
    );
    members.sort(([a, x], [b, y]) => Number(x) - Number(y) || (a < b ? -1 : 1));
    changes[set] = members.length > 0 ? { zset: members } : gone;
  }
  return changes;
}

export interface Settled {
  to: string;
  parent: string;
  child: string;
  how: 'done' | 'dead' | 'gone' | 'back';
  policy?: string;
  text: string;
}

/** The outbox, holding word of these ends. */
export function owing(...ends: readonly Settled[]): { stream: unknown[] } {
  return { stream: ends.map((end) => [STREAM_ID, { kind: 'settle', policy: 'fail', ...end }]) };
}

export const STREAM_ID = expect.stringMatching(/^\d+-\d+$/);

function memberOf(queue: string, child: string): string {
  return child.includes('|') ? child : `${queue}|${child}`;
}

function size(record: Record<string, string> | undefined): number {
  return Object.keys(record ?? {}).length;
}
