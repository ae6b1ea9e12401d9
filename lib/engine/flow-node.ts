import { assertKnownKeys } from '../kernel/arguments.js';
import type { Queue } from '../kernel/queue.js';
import type { FlowNode } from './flow-calls.js';
import type { DataArguments, NameFor } from './job-types.js';

const MORE = new Set(['opts', 'children']);

/**
 * A node whose name and data the compiler checks: `flowNode(Mail, 'welcome', { to })`.
 * @throws EchoArgumentError when `more` is no object or has other keys; the rest is looked at by `flows.add`
 */
export function flowNode<Of extends string | Queue, Name extends NameFor<Of>>(
  queue: Of,
  name: Name,
  data: DataArguments<Of, Name>[0],
  more: Pick<FlowNode, 'opts' | 'children'> = {},
): FlowNode {
  assertKnownKeys(more, MORE, 'flowNode options');
  return { queue, name, data, ...more };
}
