import { assertKnownKeys, assertObject, show } from '../kernel/arguments.js';
import { EchoArgumentError, EchoError } from '../kernel/errors.js';
import type { Keyspace } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';
import type { TreeJob } from '../wire/tree-tokens.js';
import type { Draft, Drafts } from './drafts.js';
import type { EnqueueOptions } from './enqueue-options.js';
import { type FlowNode, PARENT_POLICIES, type ParentPolicy } from './flow-calls.js';
import type { LaneRules } from './lane-rules.js';
import { checkData } from './validation.js';

/** A node that was looked at. Its id may still have to be minted. */
export interface PlannedNode {
  readonly queue: string;
  readonly name: string;
  readonly draft: Draft;
  readonly policy: ParentPolicy;
  readonly children: readonly PlannedNode[];
}

type Growing = PlannedNode & { readonly children: PlannedNode[] };

export interface FlowPlan {
  readonly nodes: readonly PlannedNode[];
  /** Every job, a parent before its children. */
  readonly all: readonly PlannedNode[];
  /** Schemas that answer later. */
  readonly checking: readonly Promise<void>[];
}

const DEEPEST = 500;
/** Of a long way to a node that is refused, at either end. */
const STEPS_SHOWN = 3;
/** The names of a parent's children go in one command and are written in one step, which must not hold the server for long. */
const MOST_CHILDREN = 100_000;
const NODE_KEYS = new Set(['queue', 'name', 'data', 'opts', 'children']);
const NO_OPTIONS: NonNullable<FlowNode['opts']> = {};

/**
 * Looks at every node before anything is sent. `parent`: the nodes are children of this job, which is there already.
 * @throws EchoArgumentError saying where in the tree
 */
export function planFlow(
  drafts: Drafts,
  keyspace: Keyspace,
  nodes: readonly FlowNode[],
  { what, laneRules, parent }: { what: string; laneRules: LaneRules; parent?: string },
): FlowPlan {
  const all: PlannedNode[] = [];
  const checking: Promise<void>[] = [];
  const seen = new Set<string>();
  const isChild = parent !== undefined;
  if (isChild) refuseTooMany(nodes, what);

  const look = (node: FlowNode, place: string, child: boolean): Growing => {
    assertKnownKeys(node, NODE_KEYS, place);
    const { queue, name, data, opts, children = [] } = node;
    if (opts !== undefined) assertObject(opts, 'enqueue options');
    const { parentPolicy, ...plain } = opts ?? NO_OPTIONS;
    const policy = policyOf(parentPolicy, child, place);
    if (!Array.isArray(children))
      throw new EchoArgumentError(`${place}.children must be an array, got ${show(children)}`);
    refuseTooMany(children, `${place}.children`);
    const keys = keyspace.queue(queueName(queue));
    if ((plain as EnqueueOptions).dedup !== undefined) {
      throw new EchoArgumentError(`${place}: dedup is not for jobs of a flow: its parent would wait for another job`);
    }
    const draft = drafts.make(name, data, opts === undefined ? undefined : plain);
    if (children.length > 0 && draft.delay !== '') {
      throw new EchoArgumentError(`${place} has children: it runs when they have settled, not after a delay`);
    }
    if (draft.id === parent) throw new EchoArgumentError(`${place}: job ${parent} would be its own descendant`);
    if (!draft.fresh && seen.has(draft.id))
      throw new EchoArgumentError(`${place}: the id ${draft.id} stands twice in the flow`);
    seen.add(draft.id);
    const check = typeof queue === 'string' ? undefined : checkData(queue as Queue, name, data);
    if (check !== undefined) {
      const placed = check.catch((error) => Promise.reject(located(error, place)));
      placed.catch(() => undefined); // another job may be refused before this one is known to be
      checking.push(placed);
    }
    draft.fields = laneRules.fields(queue, name, data, plain.lane, draft.fields);
    const planned: Growing = { queue: keys.queue, name, draft, policy, children: [] };
    all.push(planned);
    return planned;
  };

  const plan = (node: FlowNode, place: string, child: boolean, depth: number): PlannedNode => {
    if (depth > DEEPEST) {
      throw new EchoArgumentError(`a flow is at most ${DEEPEST} levels deep, and no circle: ${shortened(place)}`);
    }
    let planned: Growing;
    try {
      planned = look(node, place, child);
    } catch (error) {
      throw located(error, place);
    }
    node.children?.forEach((next, i) => {
      planned.children.push(plan(next, `${place}.children[${i}]`, true, depth + 1));
    });
    return planned;
  };

  const planned = nodes.map((node, i) => plan(node, nodes.length > 1 || isChild ? `${what}[${i}]` : what, isChild, 1));
  return { nodes: planned, all, checking };
}

/** @throws EchoArgumentError for more children of one parent than a call may bring */
export function refuseTooMany(children: readonly unknown[], place: string): void {
  if (children.length <= MOST_CHILDREN) return;
  throw new EchoArgumentError(
    `${place}: a parent can be given at most ${MOST_CHILDREN} children in one call, got ${children.length}`,
  );
}

/** Says once where in the tree it is. The class stays what it is: an EchoDataError has its issues. */
function located(error: unknown, place: string): unknown {
  if (!(error instanceof EchoError)) return error;
  const { message } = error;
  const said = message.startsWith(place) ? message.slice(place.length) : `: ${message}`;
  error.message = shortened(place) + said;
  return error;
}

/** The way to a node, without the middle of a long one. */
function shortened(place: string): string {
  const steps = place.split(/(?=\.children\[)/);
  const left = steps.length - STEPS_SHOWN * 2;
  if (left <= 1) return place;
  return `${steps.slice(0, STEPS_SHOWN).join('')} ... ${left} levels ... ${steps.slice(-STEPS_SHOWN).join('')}`;
}

function policyOf(policy: unknown, isChild: boolean, place: string): ParentPolicy {
  if (policy === undefined) return 'fail';
  if (!isChild) throw new EchoArgumentError(`${place} has no parent: parentPolicy is for children`);
  if (PARENT_POLICIES.includes(policy as ParentPolicy)) return policy as ParentPolicy;
  throw new EchoArgumentError(`${place}: parentPolicy is one of ${PARENT_POLICIES.join(', ')}, got ${show(policy)}`);
}

/** As the wire wants it; every id is minted by now. */
export function treeOf(node: PlannedNode, ties: readonly string[] = NO_TIES): TreeJob {
  const { queue, draft, children } = node;
  const { id, payload, delay, fields, fresh } = draft;
  return {
    queue,
    id,
    payload,
    delay,
    fields: fields.length === 0 ? ties : [...fields, ...ties],
    children: children.length === 0 ? NO_CHILDREN : treesOf(children, { queue, id }),
    fresh,
  };
}

/** The same for the children of a parent. */
export function treesOf(children: readonly PlannedNode[], parent: { queue: string; id: string }): TreeJob[] {
  let ties = NO_TIES;
  let like: PlannedNode | undefined;
  return children.map((child) => {
    if (child.queue !== like?.queue || child.policy !== like.policy) {
      ties = tiesOf(parent, child);
      like = child;
    }
    return treeOf(child, ties);
  });
}

const NO_TIES: readonly string[] = [];
const NO_CHILDREN: readonly TreeJob[] = [];

/** A parent in the same queue, and the policy `fail`, need not be said. */
function tiesOf(parent: { queue: string; id: string }, { queue, policy }: PlannedNode): string[] {
  const ties = ['parent', parent.id];
  if (parent.queue !== queue) ties.push('parent_queue', parent.queue);
  if (policy !== 'fail') ties.push('parent_policy', policy);
  return ties;
}
