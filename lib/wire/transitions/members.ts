import { array, text } from '../reply.js';
import { transition } from '../transition.js';

export interface MembersCall {
  /** `lanes:waiting` holds lanes, each with a set of its own. */
  set: 'pending' | 'schedule' | 'dead' | 'lanes:waiting' | `lane:${string}`;
  /** `0` begins, and stands behind the last part. */
  cursor: string;
  count: number;
}

export const members = transition<MembersCall, { cursor: string; members: string[] }>({
  name: 'members',
  keys: ['pending', 'base'],
  args: 'set, cursor, count',
  answers: 'next cursor, 0 at the end, then members',
  resend: true,
  encode: ({ set, cursor, count }) => [set, cursor, count],
  decode(reply) {
    const [cursor = '0', ...found] = array(reply).map(text);
    return { cursor, members: found };
  },
});
