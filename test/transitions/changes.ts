import type { QueueDump } from '../support/dump.js';

/** The key is no longer there. */
export const gone = Symbol('gone');

/** What one call does to a queue: keys to their new contents; every key that is not named must stay as it was. */
export type Changes = Record<string, object | typeof gone>;

class FieldChanges {
  constructor(
    readonly fields: Record<string, unknown>,
    readonly expires: boolean,
  ) {}
}

/** A hash whose other fields stay as they were; `undefined` is a field that goes. */
export function fields(changed: Record<string, unknown>): FieldChanges {
  return new FieldChanges(changed, false);
}

/** The same, and the key has got an expiry. */
export function expiring(changed: Record<string, unknown>): FieldChanges {
  return new FieldChanges(changed, true);
}

export function zset(...members: [member: string, score: unknown][]): object {
  return { zset: members };
}

/** A counter's new value. */
export function counted(count: number): object {
  return { hash: { count: String(count) } };
}

export function job(id: string): string {
  return `job:${id}`;
}

/** The dump that must be found after a call. */
export function applied(before: QueueDump, changes: Changes): Record<string, unknown> {
  const after: Record<string, unknown> = { ...before };
  for (const [key, change] of Object.entries(changes)) {
    if (change === gone) {
      if (!(key in before)) throw new Error(`the table says that ${key} goes, and it was not there`);
      delete after[key];
    } else if (change instanceof FieldChanges) {
      after[key] = changedHash(before[key], change);
    } else {
      after[key] = change;
    }
  }
  return after;
}

function changedHash(before: QueueDump[string] | undefined, change: FieldChanges): object {
  const hash: Record<string, unknown> = before && 'hash' in before ? { ...before.hash } : {};
  for (const [name, value] of Object.entries(change.fields)) {
    if (value === undefined) delete hash[name];
    else hash[name] = value;
  }
  return change.expires || before?.expires ? { hash, expires: true } : { hash };
}
