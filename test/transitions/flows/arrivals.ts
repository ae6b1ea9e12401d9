import type { Family } from '../family.js';
import { type Fields, id } from '../hand.js';

/** A child, its sibling (also a child, of which nothing but the name need be there), and their parent. */
export const [C, S, P] = [id(1), id(2), id(10)];

export type How = 'done' | 'dead' | 'gone' | 'back';
export type Policy = 'fail' | 'ignore' | 'continue' | 'hold';
export type ParentState = 'waiting' | 'pending' | 'active' | 'scheduled' | 'dead' | 'done' | 'gone';

type Records = Omit<Family, 'children'>;

/** What becomes of a parent when word of a child arrives: one rule of fan-in. */
export interface Arrival {
  title: string;
  how: How;
  policies: readonly Policy[];
  parent: ParentState;
  fields?: Fields;
  /** Has it the sibling as well? Default true. */
  sibling?: boolean;
  /** False for a parent that does not know the child. */
  knows?: boolean;
  records?: Records;
  /** The records afterwards, where they change; `text` is the child's result or error. */
  leaves?: (text: string) => Records;
  /** Where the parent goes: released, fallen (dead of the child), or back to wait. Default: nowhere. */
  goes?: 'released' | 'falls' | 'waits';
  /** The parent's fields that change besides. */
  changed?: Record<string, string | undefined>;
}

const ALL: readonly Policy[] = ['fail', 'ignore', 'continue', 'hold'];
const DEAD_OF_CHILDREN: Fields = { died_of: 'children', last_error: `child q|${S}: boom` };
const DEAD_OF_THIS: Fields = { died_of: 'children', last_error: `child q|${C}: boom` };
const ALIVE = { died_of: undefined, last_error: undefined };

/** States in which a parent does not wait: what it hears is recorded, and nothing moves. */
const NOT_WAITING: readonly [title: string, parent: ParentState, fields: Fields, policies: readonly Policy[]][] = [
  ['is pending', 'pending', {}, ['fail']],
  ['runs', 'active', {}, ALL],
  ['is scheduled', 'scheduled', {}, ['continue']],
  ['died of itself', 'dead', { died_of: 'self' }, ['fail']],
  ['is marked for removal and pending', 'pending', { removing: 1 }, ['fail']],
  ['is marked for removal and waits', 'waiting', { removing: 1 }, ALL],
];

/** And those in which nobody is there to hear. */
const ABSENT: readonly [title: string, parent: ParentState][] = [
  ['is done and kept', 'done'],
  ['is gone', 'gone'],
];

const done: readonly Omit<Arrival, 'how' | 'policies'>[] = [
  {
    title: 'is recorded at a parent that waits for others too, and counted',
    parent: 'waiting',
    leaves: (text) => ({ processed: { [C]: text } }),
  },
  {
    title: 'releases a parent that waits for no other, at its own priority',
    parent: 'waiting',
    records: { processed: { [S]: 's' } },
    leaves: (text) => ({ processed: { [C]: text, [S]: 's' } }),
    goes: 'released',
  },
  {
    title: 'releases a parent whose other child counts as settled',
    parent: 'waiting',
    records: { unsuccessful: { [S]: 'boom' } },
    leaves: (text) => ({ processed: { [C]: text }, unsuccessful: { [S]: 'boom' } }),
    goes: 'released',
  },
  ...NOT_WAITING.map(([what, parent, fields]) => ({
    title: `is recorded at a parent that ${what}, and moves nothing`,
    parent,
    fields,
    sibling: false,
    leaves: (text: string) => ({ processed: { [C]: text } }),
  })),
  ...(['waiting', 'active'] as const).map((parent) => ({
    title: `of a child that counts as settled moves it to the results, and is not counted again (${parent})`,
    parent,
    records: { unsuccessful: { [C]: 'boom' } },
    leaves: (text: string) => ({ processed: { [C]: text }, unsuccessful: {} }),
  })),
  {
    title: 'changes nothing where the child has a result already',
    parent: 'waiting',
    records: { processed: { [C]: 'first' } },
  },
  {
    title: 'is recorded at a parent dead of another child, which stays dead',
    parent: 'dead',
    fields: DEAD_OF_CHILDREN,
    records: { failed: { [S]: 'boom' } },
    leaves: (text) => ({ processed: { [C]: text } }),
  },
  {
    title: 'releases a parent dead of this child alone',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    sibling: false,
    records: { failed: { [C]: 'boom' } },
    leaves: (text) => ({ processed: { [C]: text }, failed: {} }),
    goes: 'released',
    changed: ALIVE,
  },
  {
    title: 'lets a parent dead of this child wait again, for the others',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    records: { failed: { [C]: 'boom' } },
    leaves: (text) => ({ processed: { [C]: text }, failed: {} }),
    goes: 'waits',
    changed: ALIVE,
  },
  {
    title: 'makes a parent dead of this child and another name the other',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    records: { failed: { [C]: 'boom', [S]: 'bang' } },
    leaves: (text) => ({ processed: { [C]: text }, failed: { [S]: 'bang' } }),
    changed: { last_error: `child q|${S}: bang` },
  },
  {
    title: 'does not revive a parent that is marked for removal',
    parent: 'dead',
    fields: { ...DEAD_OF_THIS, removing: 1 },
    records: { failed: { [C]: 'boom' } },
    leaves: (text) => ({ processed: { [C]: text }, failed: {} }),
  },
  ...ABSENT.map(([what, parent]) => ({ title: `changes nothing where the parent ${what}`, parent })),
  { title: 'changes nothing at a parent that does not know the child', parent: 'waiting', knows: false },
];

/** The same for a child that has died and for one that is gone: of these two the parent's policy decides. */
const unsuccessful: readonly (Omit<Arrival, 'how' | 'policies'> & { policies?: readonly Policy[] })[] = [
  {
    title: 'fells a parent that waits, which names it',
    policies: ['fail'],
    parent: 'waiting',
    leaves: (text) => ({ failed: { [C]: text } }),
    goes: 'falls',
  },
  {
    title: 'fells a parent that has run before it waited, in its latest attempt',
    policies: ['fail'],
    parent: 'waiting',
    fields: { attempts: 3, uncharged: 3, lease_epoch: '-' },
    records: { processed: { [S]: 's' } },
    leaves: (text) => ({ processed: { [S]: 's' }, failed: { [C]: text } }),
    goes: 'falls',
  },
  {
    title: 'counts as settled at a parent that waits for others too',
    policies: ['ignore'],
    parent: 'waiting',
    leaves: (text) => ({ unsuccessful: { [C]: text } }),
  },
  {
    title: 'releases a parent that waits for no other',
    policies: ['ignore', 'continue'],
    parent: 'waiting',
    records: { processed: { [S]: 's' } },
    leaves: (text) => ({ processed: { [S]: 's' }, unsuccessful: { [C]: text } }),
    goes: 'released',
  },
  {
    title: 'releases a parent that waits for others too, at once',
    policies: ['continue'],
    parent: 'waiting',
    leaves: (text) => ({ unsuccessful: { [C]: text } }),
    goes: 'released',
  },
  ...NOT_WAITING.map(([what, parent, fields, policies]) => ({
    title: `counts as settled at a parent that ${what}, and moves nothing`,
    policies,
    parent,
    fields,
    sibling: false,
    leaves: (text: string) => ({ unsuccessful: { [C]: text } }),
  })),
  ...(['processed', 'unsuccessful'] as const).map((record) => ({
    title: `changes nothing where the child is in ${record} already`,
    policies: ['fail', 'continue'] as const,
    parent: 'waiting' as const,
    records: { [record]: { [C]: 'first' } },
  })),
  {
    title: 'adds to what holds a parent dead of another child',
    policies: ['fail'],
    parent: 'dead',
    fields: DEAD_OF_CHILDREN,
    records: { failed: { [S]: 'boom' } },
    leaves: (text) => ({ failed: { [C]: text, [S]: 'boom' } }),
  },
  {
    title: 'counts as settled at a parent dead of another child, which stays dead',
    policies: ['ignore', 'continue'],
    parent: 'dead',
    fields: DEAD_OF_CHILDREN,
    records: { failed: { [S]: 'boom' } },
    leaves: (text) => ({ failed: { [S]: 'boom' }, unsuccessful: { [C]: text } }),
  },
  ...ABSENT.map(([what, parent]) => ({
    title: `changes nothing where the parent ${what}`,
    policies: ['fail'] as const,
    parent,
  })),
  {
    title: 'changes nothing at a parent that does not know the child',
    policies: ['fail', 'continue'],
    parent: 'waiting',
    knows: false,
  },
];

const dead: typeof unsuccessful = [
  { title: 'changes nothing at a parent that waits', policies: ['hold'], parent: 'waiting' },
  {
    title: 'changes nothing at a parent dead of another child',
    policies: ['hold'],
    parent: 'dead',
    fields: DEAD_OF_CHILDREN,
    records: { failed: { [S]: 'boom' } },
  },
  {
    title: 'changes nothing at a parent dead of this child already',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    records: { failed: { [C]: 'boom' } },
  },
];

const removed: typeof unsuccessful = [
  {
    title: 'counts as settled at a parent that waits for others too',
    policies: ['hold'],
    parent: 'waiting',
    leaves: (text) => ({ unsuccessful: { [C]: text } }),
  },
  {
    title: 'releases a parent that waits for no other',
    policies: ['hold'],
    parent: 'waiting',
    sibling: false,
    leaves: (text) => ({ unsuccessful: { [C]: text } }),
    goes: 'released',
  },
  {
    title: 'counts as settled at a parent dead of another child',
    policies: ['hold'],
    parent: 'dead',
    fields: DEAD_OF_CHILDREN,
    records: { failed: { [S]: 'boom' } },
    leaves: (text) => ({ failed: { [S]: 'boom' }, unsuccessful: { [C]: text } }),
  },
  {
    title: 'releases a parent dead of this child alone',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    sibling: false,
    records: { failed: { [C]: 'boom' } },
    leaves: (text) => ({ unsuccessful: { [C]: text }, failed: {} }),
    goes: 'released',
    changed: ALIVE,
  },
  {
    title: 'lets a parent dead of this child wait again, for the others',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    records: { failed: { [C]: 'boom' } },
    leaves: (text) => ({ unsuccessful: { [C]: text }, failed: {} }),
    goes: 'waits',
    changed: ALIVE,
  },
  {
    title: 'makes a parent dead of this child and another name the other',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    records: { failed: { [C]: 'boom', [S]: 'bang' } },
    leaves: (text) => ({ unsuccessful: { [C]: text }, failed: { [S]: 'bang' } }),
    changed: { last_error: `child q|${S}: bang` },
  },
  {
    title: 'does not revive a parent that is marked for removal',
    parent: 'dead',
    fields: { ...DEAD_OF_THIS, removing: 1 },
    records: { failed: { [C]: 'boom' } },
    leaves: (text) => ({ unsuccessful: { [C]: text }, failed: {} }),
  },
];

const back: readonly Omit<Arrival, 'how' | 'policies'>[] = [
  {
    title: 'lets a parent dead of this child wait again',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    sibling: false,
    records: { failed: { [C]: 'boom' } },
    leaves: () => ({ failed: {} }),
    goes: 'waits',
    changed: ALIVE,
  },
  {
    title: 'makes a parent dead of this child and another name the other',
    parent: 'dead',
    fields: DEAD_OF_THIS,
    records: { failed: { [C]: 'boom', [S]: 'bang' } },
    leaves: () => ({ failed: { [S]: 'bang' } }),
    changed: { last_error: `child q|${S}: bang` },
  },
  {
    title: 'leaves the error of a parent that is dead of this child and names another',
    parent: 'dead',
    fields: DEAD_OF_CHILDREN,
    records: { failed: { [C]: 'boom', [S]: 'bang' } },
    leaves: () => ({ failed: { [S]: 'bang' } }),
  },
  {
    title: 'does not revive a parent that is marked for removal',
    parent: 'dead',
    fields: { ...DEAD_OF_THIS, removing: 1 },
    records: { failed: { [C]: 'boom' } },
    leaves: () => ({ failed: {} }),
  },
  {
    title: 'changes nothing at a parent dead of another child',
    parent: 'dead',
    fields: DEAD_OF_CHILDREN,
    records: { failed: { [S]: 'boom' } },
  },
  { title: 'changes nothing at a parent that waits for it', parent: 'waiting' },
  {
    title: 'changes nothing where the child counts as settled',
    parent: 'waiting',
    records: { unsuccessful: { [C]: 'boom' } },
  },
  { title: 'changes nothing where the child has a result', parent: 'waiting', records: { processed: { [C]: 'r' } } },
  { title: 'changes nothing at a parent that died of itself', parent: 'dead', fields: { died_of: 'self' } },
  ...ABSENT.map(([what, parent]) => ({ title: `changes nothing where the parent ${what}`, parent })),
];

const under = (how: How, rows: typeof unsuccessful, policies: readonly Policy[]): Arrival[] =>
  rows.map((row) => ({ policies, ...row, how }));

/** Every rule of fan-in. A success, and a revival, are the same under every policy. */
export const ARRIVALS: readonly Arrival[] = [
  ...under('done', done, ['fail', 'hold']),
  ...under('dead', [...unsuccessful, ...dead], ALL),
  ...under('gone', [...unsuccessful, ...removed], ALL),
  ...under('back', back, ['fail']),
];
