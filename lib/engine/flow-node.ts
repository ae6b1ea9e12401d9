import type { Queue } from '../kernel/queue.js';
import type { FlowNode } from './flow-calls.js';
import type { DataArguments, NameFor } from './job-types.js';

/** A node whose name and data the compiler checks: `flowNode(Mail, 'welcome', { to })`. */
export function flowNode<Of extends string | Queue, Name extends NameFor<Of>>(
  queue: Of,
  name: Name,
  data: DataArguments<Of, Name>[0],
  more: Pick<FlowNode, 'opts' | 'children'> = {},
): FlowNode {
  return { queue, name, data, ...more };
}
