import type { QueueDump } from './dump.js';
import { type FamilyView, QueueView, RECORDS, type Row } from './queue-view.js';

/** I5: what a parent has recorded of its children adds up, and its own state follows from it. */
export function families(view: QueueView): string[] {
  const childless = [...view.rows].filter(
    ([id, row]) => row.flow !== undefined && row.state !== 'done' && !view.families.has(id),
  );
  return [
    ...childless.map(([id]) => `I5 ${id} is a parent and knows no children`),
    ...[...view.rows].flatMap(([id, row]) => causeOfDeath(id, row)),
    ...[...view.families].flatMap(([id, family]) => {
      const row = view.rows.get(id);
      return row === undefined ? [] : [...recorded(id, family), ...standing(id, row, family)];
    }),
  ];
}

function causeOfDeath(id: string, row: Row): string[] {
  return row.died_of === undefined || row.state === 'dead'
    ? []
    : [`I5 ${id} is ${row.state} and died of ${row.died_of}`];
}

/** Each child once, in at most one record, and the rest counted. */
function recorded(id: string, family: FamilyView): string[] {
  const wrong: string[] = [];
  const ids = new Set(family.children.map(idOf));
  if (ids.size < family.children.length) wrong.push(`I5 ${id} has two children of one id`);
  const seen = new Set<string>();
  for (const record of RECORDS) {
    for (const child of Object.keys(family[record])) {
      if (!ids.has(child)) wrong.push(`I5 ${id} has ${child} in ${record}, which is no child of it`);
      if (seen.has(child)) wrong.push(`I5 ${id} has ${child} in ${record} and in another record`);
      seen.add(child);
    }
  }
  const outstanding = outstandingOf(family);
  if (family.dependencies !== String(outstanding)) {
    wrong.push(`I5 ${id} counts ${family.dependencies} outstanding children, and ${outstanding} are`);
  }
  return wrong;
}

function standing(id: string, row: Row, family: FamilyView): string[] {
  const wrong: string[] = [];
  if (row.flow !== '1') wrong.push(`I5 ${id} has children and no field flow`);
  // Marked by a removal of its tree, a parent stays where it is, whatever becomes of its children.
  if (row.removing !== undefined) return wrong;
  const ofChildren = row.state === 'dead' && row.died_of === 'children';
  const failed = Object.keys(family.failed);
  if (ofChildren && failed.length === 0) wrong.push(`I5 ${id} is dead of its children, and none of them failed it`);
  if (!ofChildren && failed.length > 0) wrong.push(`I5 ${id} is ${row.state}, and was failed by ${failed.join(', ')}`);
  if (row.state === 'awaiting_children' && outstandingOf(family) === 0) wrong.push(`I5 ${id} waits for nothing`);
  return wrong;
}

function outstandingOf({ children, processed, unsuccessful }: FamilyView): number {
  return children.length - Object.keys(processed).length - Object.keys(unsuccessful).length;
}

/**
 * I6, from the dumps of all queues at one moment: what a parent has not recorded of a child is still to come, because the child
 * has not settled, or has not landed, or its end stands in an outbox and is not yet applied.
 */
export function checkOwed(dumps: Readonly<Record<string, QueueDump>>): string[] {
  const views = new Map(Object.entries(dumps).map(([queue, dump]) => [queue, new QueueView(dump)]));
  const owed = [...views].flatMap(([queue, view]) => owedBy(queue, view, views));
  return [...views].flatMap(([queue, view]) =>
    [...view.families].flatMap(([parent, family]) => {
      const row = view.rows.get(parent);
      if (row === undefined || row.state === 'done') return [];
      return family.children.flatMap((member) => {
        const [childQueue, child] = [member.slice(0, -15), idOf(member)];
        const other = views.get(childQueue);
        if (other === undefined) return []; // a queue that was not dumped
        const settles = owed.filter((one) => one.settles(queue, parent, child));
        const fate = fateOf(other.rows.get(child), parent, queue === childQueue ? undefined : queue);
        const to = `I6 ${queue}|${parent} and its child ${member}:`;
        if (child in family.failed) {
          const back = settles.some(({ how }) => how === 'back' || how === 'done');
          return fate === 'alive' && !back ? [`${to} it lives again, and nobody says so`] : [];
        }
        if (child in family.processed || child in family.unsuccessful || fate === 'alive' || fate === 'held') return [];
        if (settles.length > 0 || owed.some((one) => one.lands(child))) return [];
        return [`${to} its end is neither recorded nor owed`];
      });
    }),
  );
}

/** `ended`: no longer there, dead or done, or a stranger that has the id. `held`: dead, and its parent waits all the same. */
function fateOf(row: Row | undefined, parent: string, parentQueue: string | undefined): 'alive' | 'held' | 'ended' {
  if (row === undefined || row.state === 'done') return 'ended';
  if (row.parent !== parent || row.parent_queue !== parentQueue) return 'ended';
  if (row.state !== 'dead') return 'alive';
  return row.parent_policy === 'hold' ? 'held' : 'ended';
}

/** An entry of an outbox that its target has not applied. */
interface Owed {
  readonly how: string | undefined;
  settles(queue: string, parent: string, child: string): boolean;
  lands(id: string): boolean;
}

function owedBy(source: string, view: QueueView, views: ReadonlyMap<string, QueueView>): Owed[] {
  const outbox = view.dump.outbox;
  if (outbox === undefined || !('stream' in outbox)) return [];
  return outbox.stream.flatMap(([id, entry]): Owed[] => {
    const relayed = views.get(entry.to!)?.dump.relayed;
    const applied = relayed && 'hash' in relayed ? relayed.hash[source] : undefined;
    if (applied !== undefined && !isLater(id, applied)) return [];
    const nodes = entry.kind === 'land' ? bytesOf(entry.nodes!) : undefined;
    const results = entry.kind === 'results' ? bytesOf(entry.results!) : undefined;
    return [
      {
        how: results ? 'done' : entry.how,
        settles: (queue, parent, child) =>
          entry.to === queue &&
          entry.parent === parent &&
          (entry.kind === 'settle' ? entry.child === child : results?.includes(child) === true),
        // In the entry itself, or in one that its landing will owe.
        lands: (child) => nodes?.includes(child) === true,
      },
    ];
  });
}

function isLater(a: string, b: string): boolean {
  const [aMs, aSeq] = a.split('-').map(BigInt);
  const [bMs, bSeq] = b.split('-').map(BigInt);
  return aMs! > bMs! || (aMs === bMs && aSeq! > bSeq!);
}

/** As a dump shows them. */
function bytesOf(shown: string): Buffer {
  return shown.startsWith('base64!') ? Buffer.from(shown.slice(7), 'base64') : Buffer.from(shown);
}

function idOf(member: string): string {
  return member.slice(-14);
}
