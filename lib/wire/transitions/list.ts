import type { KeyName } from '../../kernel/keyspace.js';
import type { ListableState } from '../../kernel/state.js';
import { array, ascii, integer } from '../reply.js';
import { type Transition, transition } from '../transition.js';
import { type Row, row } from './row.js';

export interface ListCall {
  offset: number;
  limit: number;
  maxBytes: number;
  /** Of pending jobs, only those of this lane as the wire names it; empty: those without one. */
  lane?: string | undefined;
}

export interface ListedRow {
  id: string;
  score: number;
  row: Row | undefined;
}

export interface Listed {
  total: number;
  rows: ListedRow[];
}

const listOf = (set: KeyName): Transition<ListCall, Listed> =>
  transition({
    name: 'list',
    keys: [set, 'base'],
    args: 'offset, limit, max_bytes; of pending also a lane',
    answers: 'size of the set, then per job: id, score, flat fields',
    resend: true,
    encode: ({ offset, limit, maxBytes, lane }) =>
      lane === undefined ? [offset, limit, maxBytes] : [offset, limit, maxBytes, lane],
    decode(reply) {
      const [total, ...members] = array(reply);
      const rows = members.map((member) => {
        const [id, score, fields] = array(member);
        return { id: ascii(id), score: integer(score), row: row(fields) };
      });
      return { total: integer(total), rows };
    },
  });

/** One for each set. */
export const list: Readonly<Record<ListableState, Transition<ListCall, Listed>>> = {
  pending: listOf('pending'),
  active: listOf('active'),
  scheduled: listOf('schedule'),
  dead: listOf('dead'),
  awaiting_children: listOf('waiting'),
};
