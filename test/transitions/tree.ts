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
  policy?: string;
  lane?: string | undefined;
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
  const { queue = 'q', payload = 'p', delay = '', priority, policy, lane } = options;
  const fields = priority === undefined ? [] : ['priority', String(priority)];
  if (lane !== undefined) fields.push('lane', lane);
  if (parent !== undefined) {
    fields.push('parent', parent.id);
    if (parent.queue !== queue) fields.push('parent_queue', parent.queue);
    if (policy !== undefined) fields.push('parent_policy', policy);
  }
  return { queue, id, payload, delay, fields, children: children.map((child) => treeJob(child, { queue, id })) };
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
  const tokens = nodes.flatMap((child) => treeTokens(treeJob(child, parent)).tokens);
  return packed([String(nodes.length), ...tokens]);
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
  const owed = children.filter((child) => !inline.includes(child));
  return [
    children.length,
    ...children.map((child) => `${child.queue}|${child.id}`),
    inline.length,
    ...inline.flatMap((child) => splitTree(child, atOnce)),
    owed.length,
    ...owed.flatMap((child) => [child.queue, packed(['1', ...splitTree(child, atOnce)])]),
  ];
}
