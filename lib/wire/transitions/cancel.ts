import { cancelOutcomeOf, type TreeCancelOutcome } from '../../kernel/outcome.js';
import { array, integer } from '../reply.js';
import { transition } from '../transition.js';
import { type TreeCall, treeArgs } from './remove.js';

export const cancel = transition<TreeCall, TreeCancelOutcome[]>({
  name: 'cancel',
  keys: ['pending', 'base'],
  args: 'tree(0/1/2), per job: id',
  answers:
    'per job 1 removed, 2 asked to stop, 0 gone, -2 dead, done, or waiting for children; 3 children first (tree 1)',
  resend: true,
  encode: treeArgs,
  decode: (reply) => array(reply).map((code) => cancelOutcomeOf(integer(code))),
});
