import type { QueueView } from './queue-view.js';

/** Where a paused schedule stands. */
const NEVER = Number.MAX_SAFE_INTEGER;
const ROW = 'schedule:';

/** Every repeating schedule has a row and stands at its next slot, behind the one that fired last; a paused one at none. */
export function schedules({ dump }: QueueView): string[] {
  const held = dump.schedules;
  if (held !== undefined && !('zset' in held)) return ['row schedules has the wrong type'];
  const slots = new Map(held?.zset ?? []);
  const rows = Object.keys(dump).filter((key) => key.startsWith(ROW));
  const faults = [...slots.keys()]
    .filter((key) => !rows.includes(ROW + key))
    .map((key) => `schedule ${key} stands at a slot and has no row`);
  for (const name of rows) {
    const key = name.slice(ROW.length);
    const row = dump[name]!;
    const slot = slots.get(key);
    if (!('hash' in row)) faults.push(`row ${name} has the wrong type`);
    else if (slot === undefined) faults.push(`schedule ${key} has a row and stands nowhere`);
    else if ((slot === NEVER) !== (row.hash.paused === '1'))
      faults.push(`schedule ${key} stands at ${slot}, paused or not`);
    else if (!(Number(row.hash.last_slot ?? -1) < slot)) faults.push(`schedule ${key} has fired the slot it stands at`);
  }
  return faults;
}
