import { array, ascii } from '../reply.js';
import { transition } from '../transition.js';
import { type Row, row } from './row.js';

export interface MorgueCall {
  /** The id behind which the page begins; empty begins with the first. */
  after: string;
  limit: number;
  maxBytes: number;
}

export interface MorguePage {
  /** The last id of the whole morgue; empty when there is none. */
  last: string;
  /** In mint order. */
  rows: { id: string; row: Row | undefined }[];
}

export const morgue = transition<MorgueCall, MorguePage>({
  name: 'morgue',
  keys: ['dead', 'base'],
  args: 'after, limit, max_bytes',
  answers: 'last id of the set, then per job: id, flat fields',
  resend: true,
  encode: ({ after, limit, maxBytes }) => [after, limit, maxBytes],
  decode(reply) {
    const [last, ...jobs] = array(reply);
    const rows = jobs.map((job) => {
      const [id, fields] = array(job);
      return { id: ascii(id), row: row(fields) };
    });
    return { last: ascii(last), rows };
  },
});
