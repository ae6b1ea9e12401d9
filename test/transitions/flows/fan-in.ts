import type { Arg } from '../../../lib/wire/reply.js';
import { type Changes, counted, fields, gone, job } from '../changes.js';
import { type Family, familyChanges, give, moved, type Places } from '../family.js';
import { FAR, type Fields, type Hand } from '../hand.js';
import type { Table } from '../state-table.js';
import { ARRIVALS, type Arrival, C, type How, P, type ParentState, type Policy, S } from './arrivals.js';

type Place = readonly [set: string, score: unknown];

/** One way in which a child ends, or comes back: what a transition does to the child itself. */
export interface Ending {
  /** As a title begins: 'a completion', 'a burial'. */
  what: string;
  how: How;
  /** The child's result, or its error. */
  text: string;
  /** The queue the child is in. Default: its parent's. */
  from?: string;
  /** Builds the child; its ties to the parent are among the fields. Left out where the call tells of another queue's child. */
  child?: (queue: Hand, fields: Fields) => Promise<unknown>;
  call: readonly Arg[] | ((policy: Policy) => readonly Arg[]);
  answer: unknown;
  /** Where the child stands, before and after. */
  places: readonly [before: Place | undefined, after: Place | undefined];
  /** The child's row, and whatever else changes. */
  changes: Changes;
  /** By how much the counters go up. */
  counts: Record<string, number>;
  /** Is somebody woken for the child itself? */
  wakes?: boolean;
  /** Only under these policies: a second way to the same end. Default: all. */
  policies?: readonly Policy[];
}

const PRIORITY = 3;
const PLACE: Record<ParentState, Place | undefined> = {
  waiting: ['waiting', 0],
  pending: ['pending', PRIORITY],
  active: ['active', FAR],
  scheduled: ['schedule', FAR],
  dead: ['dead', 0],
  done: undefined,
  gone: undefined,
};

/** A child's ties to its parent, as the client writes them: what goes without saying is left out. */
export function tiesTo(policy: Policy, parentQueue?: string): Fields {
  return {
    parent: P,
    ...(parentQueue === undefined ? {} : { parent_queue: parentQueue }),
    ...(policy === 'fail' ? {} : { parent_policy: policy }),
  };
}

/** Declares a row per rule of fan-in and policy: whatever step ends a child, its parent in the same queue takes it alike. */
export function fansIn(table: Table, ending: Ending): void {
  for (const arrival of ARRIVALS.filter(({ how }) => how === ending.how)) {
    for (const policy of arrival.policies) {
      if (ending.policies?.includes(policy) !== false) declare(table, ending, arrival, policy);
    }
  }
}

function declare(table: Table, ending: Ending, arrival: Arrival, policy: Policy): void {
  const { from = 'q', text } = ending;
  const child = from === 'q' ? C : `${from}|${C}`;
  const children = arrival.knows === false ? [S] : [child, ...(arrival.sibling === false ? [] : [S])];
  const before: Family = { children, ...arrival.records };
  const after: Family = { ...before, ...arrival.leaves?.(text) };
  const standing = arrival.parent !== 'gone' && arrival.parent !== 'done';
  const falls = arrival.goes === 'falls';
  const released = arrival.goes === 'released';
  const error = `child ${from}|${C}: ${text}`;
  const attempts = arrival.fields?.attempts ?? (arrival.parent === 'active' || arrival.parent === 'dead' ? 1 : 0);

  const stands: Record<NonNullable<Arrival['goes']>, [state: ParentState, field: string]> = {
    released: ['pending', 'pending'],
    falls: ['dead', 'dead'],
    waits: ['waiting', 'awaiting_children'],
  };
  const [to, state] = arrival.goes ? stands[arrival.goes] : [arrival.parent, undefined];
  const places = (of: 0 | 1, parent: ParentState): Places => ({ [C]: ending.places[of], [P]: PLACE[parent] });
  const parentRow = {
    ...(state === undefined ? {} : { state }),
    ...(falls
      ? { died_of: 'children', last_error: error, errors: String(attempts), [`error:${attempts}`]: error }
      : {}),
    ...arrival.changed,
  };
  const counts = { ...ending.counts, failed: (ending.counts.failed ?? 0) + (falls ? 1 : 0) };
  const wakes = released || ending.wakes === true;
  const hears: [channel: string, message: string][] = [];
  if (wakes) hears.push(['w:p1', '']);
  if (falls) hears.push(['beat', `died:${P}`]);

  table.it(`under ${policy}, ${ending.what} ${arrival.title}`, {
    given: async (queue) => {
      await ending.child?.(queue, tiesTo(policy, from === 'q' ? undefined : 'q'));
      if (arrival.parent !== 'gone') await queue[arrival.parent](P, { priority: PRIORITY, ...arrival.fields });
      if (standing) await give(queue, P, before);
      await queue.hungry('p1');
    },
    call: typeof ending.call === 'function' ? ending.call(policy) : ending.call,
    answer: ending.answer,
    changes: {
      ...ending.changes,
      ...moved(places(0, arrival.parent), places(1, to)),
      ...(standing ? { [job(P)]: fields(parentRow), ...familyChanges('q', P, before, after) } : {}),
      ...metrics(counts, arrival.parent === 'done'),
      ...(wakes ? { hungry: gone } : {}),
    },
    hears,
  });
}

/** Counters that change; one completion is there already where the parent has been completed. */
function metrics(counts: Record<string, number>, parentDone: boolean): Changes {
  const changed = Object.entries(counts).filter(([, n]) => n > 0);
  return Object.fromEntries(
    changed.map(([name, n]) => [`metrics:${name}`, counted(n + (name === 'completed' && parentDone ? 1 : 0))]),
  );
}
