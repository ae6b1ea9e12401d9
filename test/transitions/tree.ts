import { packed } from '../../lib/wire/packing.js';
import type { Arg } from '../../lib/wire/reply.js';
import { childrenTokens, type TreeJob, treeTokens } from '../../lib/wire/tree-tokens.js';
import type { Changes } from './changes.js';
import { job } from './changes.js';
import { STREAM_ID } from './family.js';

export interface NodeOptions {
  queue?: string;
  payload?: string;
  delay?: string;
  priority?: number;
  policy?: string | undefined;
  lane?: string | undefined;
  /** Its id was minted for the call: nobody looks whether it is taken. */
  fresh?: boolean;
}

/** A job of a tree in `q`, unless another queue is named, before it knows its parent. */
export interface Node {
  id: string;
  options: NodeOptions;
  children: readonly Node[];
}

export function node(id: string, options: NodeOptions = {}, children: readonly Node[] = []): Node {
  return { id, options, children };
}

/** As the client writes it: what goes without saying is left out. */
export function treeJob({ id, options, children }: Node, parent?: { queue: string; id: string }): TreeJob {
  const { queue = 'q', payload = 'p', delay = '', priority, policy, lane, fresh } = options;
  const fields = priority === undefined ? [] : ['priority', String(priority)];
  if (lane !== undefined) fields.push('lane', lane);
  if (parent !== undefined) {
    fields.push('parent', parent.id);
    if (parent.queue !== queue) fields.push('parent_queue', parent.queue);
    if (policy !== undefined) fields.push('parent_policy', policy);
  }
  return { queue, id, payload, delay, fields, children: children.map((child) => treeJob(child, { queue, id })), fresh };
}

/** ARGV of `land` for a tree of its own. */
export function tree(root: Node): Arg[] {
  return ['', '', ...treeTokens(treeJob(root)).tokens];
}

/** ARGV of `land` for more children of a running parent of `q`. */
export function more(parent: string, token: string | number, children: readonly Node[]): Arg[] {
  const jobs = children.map((child) => treeJob(child, { queue: 'q', id: parent }));
  return [parent, token, ...childrenTokens('q', jobs).tokens];
}

/** What an outbox is owed of a tree: these nodes, whose parent is in another queue or a step further on. */
export function nodesOf(parent: { queue: string; id: string }, nodes: readonly Node[]): Buffer {
  return packedNodes(
    nodes.map((child) => treeJob(child, parent)),
    () => true,
  );
}

/** Entries of an outbox that carry nodes to a queue. */
export function landing(...entries: readonly [to: string, nodes: Buffer][]): Changes[string] {
  return {
    stream: entries.map(([to, nodes]) => [
      STREAM_ID,
      { kind: 'land', to, nodes: `base64!${nodes.toString('base64')}` },
    ]),
  };
}

/** A row that has just landed. */
export function fresh(id: string, fields: Record<string, string> = {}): Changes {
  return { [job(id)]: { hash: { state: 'pending', attempts: '0', payload: 'p', ...fields } } };
}

/** Tokens of a tree of which only the chosen nodes land at once; the rest is owed, an entry each. */
export function splitTree(job: TreeJob, atOnce: (child: TreeJob) => boolean): Arg[] {
  const { id, payload, delay, fields } = job;
  return [id, payload, delay, fields.length / 2, ...fields, ...splitChildren(job.queue, job.children, atOnce)];
}

/** The same for more children of a parent that is there. */
export function splitChildren(queue: string, children: readonly TreeJob[], atOnce: (child: TreeJob) => boolean): Arg[] {
  if (children.length === 0) return [0];
  const inline = children.filter((child) => child.queue === queue && atOnce(child));
  const [alike, others] = apart(inline);
  const owed = children.filter((child) => !inline.includes(child));
  const given = owed.filter((child) => !child.fresh);
  const minted = owed.filter((child) => child.fresh);
  return [
    children.length,
    ...alikeTokens(alike),
    others.length,
    given.length,
    ...[...others, ...given, ...minted].map((child) => `${child.queue}|${child.id}`),
    ...others.flatMap((child) => splitTree(child, atOnce)),
    owed.length,
    ...owed.flatMap((child) => [child.queue, packedNodes([child], atOnce)]),
  ];
}

function packedNodes(jobs: readonly TreeJob[], atOnce: (child: TreeJob) => boolean): Buffer {
  const [alike, others] = apart(jobs);
  const rest = others.flatMap((child) => splitTree(child, atOnce));
  return packed([...alikeTokens(alike), others.length, ...rest]);
}

/** Those that say no more than their payload, and share their fields; and the others. */
function apart(jobs: readonly TreeJob[]): [alike: TreeJob[], others: TreeJob[]] {
  const plain = jobs.filter(({ delay, children }) => delay === '' && children.length === 0);
  const alike = plain.filter(({ fields }) => String(fields) === String(plain[0]!.fields));
  return [alike, jobs.filter((job) => !alike.includes(job))];
}

function alikeTokens(alike: readonly TreeJob[]): Arg[] {
  if (alike.length === 0) return [0];
  const [{ fields }] = alike as [TreeJob];
  return [alike.length, fields.length / 2, ...fields, ...alike.flatMap(({ id, payload }) => [id, payload])];
}
