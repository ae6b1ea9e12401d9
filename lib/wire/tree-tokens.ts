import { packed } from './packing.js';
import type { Arg } from './reply.js';

/** A job of a tree, ready to be landed. */
export interface TreeJob {
  readonly queue: string;
  readonly id: string;
  readonly payload: string | Buffer;
  readonly delay: string;
  /** Flat names and values; of a child also its parent and policy. */
  readonly fields: readonly string[];
  readonly children: readonly TreeJob[];
  /** Minted for this call: nobody else can have used the id, and so nobody need look whether it is taken. */
  readonly fresh?: boolean | undefined;
}

/** What one step may write: no step holds the server for long. */
interface Budget {
  jobs: number;
  bytes: number;
}

const MOST_AT_ONCE = 1000;
/** Of a wide family: its step has thousands of names to write as well. */
const MOST_OF_MANY = 250;
const MOST_IN_AN_ENTRY = 500;
const MOST_BYTES = 4_000_000;
const MOST_BYTES_IN_AN_ENTRY = 1_000_000;
const NO_CHILDREN: Arg[] = ['0'];

/** The tokens of a tree, and whether something of it is left to be relayed. The form is described in lua/_tree_tokens.lua. */
export function treeTokens(root: TreeJob): { tokens: Arg[]; owes: boolean } {
  const writer = new Writer();
  const tokens = writer.node(root, { jobs: atOnce(root.children) - 1, bytes: MOST_BYTES });
  return { tokens, owes: writer.owes };
}

/** The same for more children of a parent that is there already. */
export function childrenTokens(queue: string, children: readonly TreeJob[]): { tokens: Arg[]; owes: boolean } {
  const writer = new Writer();
  const tokens = writer.children(queue, children, { jobs: atOnce(children), bytes: MOST_BYTES });
  return { tokens, owes: writer.owes };
}

function atOnce(children: readonly TreeJob[]): number {
  return children.length > MOST_AT_ONCE ? MOST_OF_MANY : MOST_AT_ONCE;
}

class Writer {
  owes = false;

  node(job: TreeJob, budget: Budget): Arg[] {
    const tokens: Arg[] = [job.id, job.payload, job.delay, String(job.fields.length / 2)];
    append(tokens, job.fields);
    append(tokens, this.children(job.queue, job.children, budget));
    return tokens;
  }

  children(queue: string, children: readonly TreeJob[], budget: Budget): Arg[] {
    if (children.length === 0) return NO_CHILDREN;
    const inline = new Nodes();
    const given: string[] = [];
    const minted: string[] = [];
    const owed = new Map<string, TreeJob[]>();
    for (const child of children) {
      if (child.queue === queue && this.fits(child, budget)) {
        this.add(child, inline, budget);
        continue;
      }
      (child.fresh ? minted : given).push(memberOf(child));
      const others = owed.get(child.queue);
      if (others === undefined) owed.set(child.queue, [child]);
      else others.push(child);
    }
    const entries = [...owed].flatMap(([target, jobs]) => this.entries(target, jobs));
    if (entries.length > 0) this.owes = true;
    const tokens: Arg[] = [String(children.length)];
    append(tokens, inline.alike());
    tokens.push(String(inline.names.length), String(given.length));
    for (const part of [inline.names, given, minted, inline.others]) append(tokens, part);
    tokens.push(String(entries.length / 2));
    append(tokens, entries);
    return tokens;
  }

  private add(job: TreeJob, nodes: Nodes, budget: Budget): void {
    if (!nodes.take(job)) nodes.add(job, this.node(job, budget));
  }

  /** Flat: the queue and the packed nodes of each entry. */
  private entries(queue: string, jobs: readonly TreeJob[]): Arg[] {
    const entries: Arg[] = [];
    for (let i = 0; i < jobs.length; ) {
      const budget: Budget = { jobs: MOST_IN_AN_ENTRY, bytes: MOST_BYTES_IN_AN_ENTRY };
      const nodes = new Nodes();
      // The first goes in whatever its size: there is no smaller entry.
      const first = i;
      while (i < jobs.length && (this.fits(jobs[i]!, budget) || i === first)) {
        this.add(jobs[i]!, nodes, budget);
        i += 1;
      }
      const tokens = nodes.alike();
      tokens.push(String(nodes.names.length));
      append(tokens, nodes.others);
      entries.push(queue, packed(tokens));
    }
    return entries;
  }

  private fits({ payload, children }: TreeJob, budget: Budget): boolean {
    const bytes = payload.length + 40 * children.length;
    if (budget.jobs === 0 || bytes > budget.bytes) return false;
    budget.jobs -= 1;
    budget.bytes -= bytes;
    return true;
  }
}

/** Nodes of one queue. Most children have no more to say than their payload: those share their fields. */
class Nodes {
  /** Of those that are not alike. */
  readonly names: string[] = [];
  readonly others: Arg[] = [];
  private shared: readonly string[] | undefined;
  private readonly plain: Arg[] = [];

  /** Takes it among those that are alike, if it is. */
  take({ id, payload, delay, fields, children }: TreeJob): boolean {
    if (children.length > 0 || delay !== '') return false;
    this.shared ??= fields;
    if (fields !== this.shared && !isSame(fields, this.shared)) return false;
    this.plain.push(id, payload);
    return true;
  }

  add(job: TreeJob, tokens: readonly Arg[]): void {
    this.names.push(memberOf(job));
    append(this.others, tokens);
  }

  alike(): Arg[] {
    const { shared, plain } = this;
    if (shared === undefined) return ['0'];
    const tokens: Arg[] = [String(plain.length / 2), String(shared.length / 2)];
    append(tokens, shared);
    append(tokens, plain);
    return tokens;
  }
}

function memberOf({ queue, id }: TreeJob): string {
  return `${queue}|${id}`;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}

/** A spread of thousands would go through the stack. */
function append<T>(to: T[], from: readonly T[]): void {
  for (let i = 0; i < from.length; i++) to.push(from[i]!);
}
