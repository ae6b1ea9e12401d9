import type { Arg } from '../reply.js';
import { integer } from '../reply.js';
import { transition } from '../transition.js';

export interface LandCall {
  /** The running parent whose children these are, and its token; both empty for a tree of its own. */
  parent: string;
  token: string;
  tokens: readonly Arg[];
}

/** `exists`: the root is there already, or the parent is gone. */
export type Landed = 'landed' | 'exists' | 'stale';

export const land = transition<LandCall, Landed>({
  name: 'land',
  keys: ['waiting', 'base'],
  args: 'parent, token, then the tree: node (id, payload, delay, nfields, field, value ..., children) or children',
  answers: '1 landed, 0 the root exists or the parent is gone, -1 stale',
  resend: true, // a root that has landed lands once, and so do children: their ids are taken
  encode: ({ parent, token, tokens }) => [parent as Arg, token].concat(tokens as Arg[]),
  decode(reply) {
    const code = integer(reply);
    if (code === 1) return 'landed';
    return code === 0 ? 'exists' : 'stale';
  },
});
