import type { StreamId } from '../../kernel/stream-id.js';
import { array, ascii, integer } from '../reply.js';
import { transition } from '../transition.js';
import { type Row, row } from './row.js';

export interface CompletionsCall {
  after: StreamId;
  limit: number;
  maxBytes: number;
}

export interface CompletionsPage {
  /** The stream never held `after`: the page begins with its first entry. */
  restarted: boolean;
  /** Fields: id, outcome, attempts, at, and result or error. */
  entries: { at: StreamId; fields: Row }[];
}

export const completions = transition<CompletionsCall, CompletionsPage>({
  name: 'completions',
  keys: ['completions', 'base'],
  args: 'after, limit, max_bytes',
  answers: 'restarted(0/1), then per entry: its id, flat fields',
  resend: true,
  encode: ({ after, limit, maxBytes }) => [after, limit, maxBytes],
  decode(reply) {
    const [restarted, ...entries] = array(reply);
    return {
      restarted: integer(restarted) === 1,
      entries: entries.map((entry) => {
        const [at, fields] = array(entry);
        return { at: ascii(at), fields: row(fields) ?? new Map() };
      }),
    };
  },
});
