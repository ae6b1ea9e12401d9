import type { Queue } from '../kernel/queue.js';
import type { EnqueueOptions } from './enqueue-options.js';
import type { EnqueueResult } from './enqueuer.js';
import type { JobView } from './job-view.js';

/**
 * What a parent that waits does when this child dies, or is cancelled or removed:
 * - `fail`: it dies too, naming the child, and so on upwards; reprocessing the child brings it back
 * - `ignore`: the child counts as settled, its error is kept
 * - `continue`: the same, and the parent runs at once
 * - `hold`: nothing; it waits until the child is reprocessed, or removed
 */
export type ParentPolicy = 'fail' | 'ignore' | 'continue' | 'hold';

export const PARENT_POLICIES: readonly ParentPolicy[] = ['fail', 'ignore', 'continue', 'hold'];

/** Without `dedup`: a parent would wait for another job. */
export interface FlowOptions extends Omit<EnqueueOptions, 'dedup'> {
  /** Of a child. Default `fail`. */
  parentPolicy?: ParentPolicy | undefined;
}

/** A job of a flow, with the jobs it waits for. */
export interface FlowNode {
  queue: string | Queue;
  name: string;
  data?: unknown;
  opts?: FlowOptions | undefined;
  /** In this queue or others, each with children of its own. Without any it is an ordinary job. */
  children?: readonly FlowNode[] | undefined;
}

/** A job of a flow that was added. */
export interface AddedNode {
  readonly queue: string;
  readonly id: string;
  readonly name: string;
  readonly children: readonly AddedNode[];
}

/** `duplicate`: a root of this id is there already, and nothing was changed. */
export interface AddedFlow extends AddedNode {
  readonly status: EnqueueResult['status'];
}

/** What is known of a parent's children. */
export interface ChildrenReport {
  /** Children that have not settled. */
  readonly outstanding: number;
  /** By the child's id, what its handler answered. */
  readonly values: Readonly<Record<string, unknown>>;
  /** By the child's id, why it counts as settled although it did not succeed. */
  readonly ignored: Readonly<Record<string, string>>;
  /** By the child's id, the deaths that hold the parent in the morgue. */
  readonly failed: Readonly<Record<string, string>>;
}

/** A job of a flow as it stands on the server. */
export interface FlowTree {
  readonly queue: string;
  /** Undefined when it is gone: completed and not kept, or removed. */
  readonly job: JobView | undefined;
  readonly id: string;
  readonly children: readonly FlowTree[];
  /** Children that are not in `children`: it was asked for less depth, or for fewer jobs. */
  readonly more: number;
}
