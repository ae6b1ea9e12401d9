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

/** The tokens of a tree, and whether something of it is left to be relayed. The form is described in lua/_flow.lua. */
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
    for (const field of job.fields) tokens.push(field);
    for (const token of this.children(job.queue, job.children, budget)) tokens.push(token);
    return tokens;
  }

  children(queue: string, children: readonly TreeJob[], budget: Budget): Arg[] {
    const tokens: Arg[] = [String(children.length)];
    if (children.length === 0) return tokens;
    for (const child of children) tokens.push(`${child.queue}|${child.id}`);
    const inline: Arg[] = [];
    let inlined = 0;
    const owed = new Map<string, TreeJob[]>();
    for (const child of children) {
      if (child.queue === queue && this.fits(child, budget)) {
        inlined += 1;
        for (const token of this.node(child, budget)) inline.push(token);
      } else {
        const others = owed.get(child.queue) ?? [];
        others.push(child);
        owed.set(child.queue, others);
      }
    }
    tokens.push(String(inlined));
    for (const token of inline) tokens.push(token);
    const entries = [...owed].flatMap(([target, jobs]) => this.entries(target, jobs));
    if (entries.length > 0) this.owes = true;
    tokens.push(String(entries.length / 2));
    for (const token of entries) tokens.push(token); // a spread of thousands would go through the stack
    return tokens;
  }

  /** Flat: the queue and the packed nodes of each entry. */
  private entries(queue: string, jobs: readonly TreeJob[]): Arg[] {
    const entries: Arg[] = [];
    for (let i = 0; i < jobs.length; ) {
      const budget: Budget = { jobs: MOST_IN_AN_ENTRY, bytes: MOST_BYTES_IN_AN_ENTRY };
      const nodes: Arg[] = [];
      let count = 0;
      // The first goes in whatever its size: there is no smaller entry.
      while (i < jobs.length && (this.fits(jobs[i]!, budget) || count === 0)) {
        for (const token of this.node(jobs[i]!, budget)) nodes.push(token);
        count += 1;
        i += 1;
      }
      entries.push(queue, packed([String(count), ...nodes]));
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
