import { type RemoveOutcome, removeOutcomeOf } from '../../kernel/outcome.js';
import { type Arg, array, integer } from '../reply.js';
import { transition } from '../transition.js';

export type OnlyState = 'pending' | 'scheduled' | 'dead';

export interface TreeCall {
  tree: boolean;
  /** The first call for this tree: a mark that an earlier removal left, which has not come to its end, does not count. */
  first?: boolean;
  /** Without their trees, and only those in this state. */
  only?: OnlyState;
  ids: readonly string[];
}

export const remove = transition<TreeCall, RemoveOutcome[]>({
  name: 'remove',
  keys: ['pending', 'base'],
  args: 'tree(0/1/2), or pending/scheduled/dead for only those, per job: id',
  answers:
    'code per job; -2 for active, another state, or with outstanding children and tree 0; 3 children first, 2 runs on (tree)',
  resend: true,
  encode: ({ only, ...call }) => (only === undefined ? treeArgs(call) : [only, ...call.ids]),
  decode: (reply) => array(reply).map((code) => removeOutcomeOf(integer(code))),
});

/** 0 alone, 1 with its tree, 2 the same, first call. */
export function treeArgs({ tree, first, ids }: TreeCall): Arg[] {
  return [tree ? (first ? 2 : 1) : 0, ...ids];
}
