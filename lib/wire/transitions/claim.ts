import { array, ascii, countOf, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface ClaimCall {
  leaseMs: number;
  count: number;
  /** Undefined on a wire without epochs. */
  epoch: string | undefined;
  /** The consuming process to be woken when more comes; empty for a single look. */
  process: string;
}

export interface ClaimedRow {
  id: string;
  payload: Buffer;
  /** Claims so far, this one counted. */
  attempts: number;
  /** What its holder presents: `attempts@epoch`, or `attempts` alone. */
  token: string;
  /** Claims that do not count against the cap. */
  uncharged: number;
}

export const claim = transition<ClaimCall, ClaimedRow[]>({
  name: 'claim',
  keys: ['pending', 'active', 'base'],
  args: 'lease_ms [count [epoch [process]]]',
  answers: 'flat id, payload, attempts per job, with an epoch also uncharged',
  resend: false,
  encode: ({ leaseMs, count, epoch, process }) => [leaseMs, count, epoch ?? '', process],
  decode(reply, { epoch }) {
    const flat = array(reply);
    const width = epoch === undefined ? 3 : 4;
    const rows: ClaimedRow[] = [];
    const first = tokenOf(1, epoch); // most jobs are claimed once
    for (let i = 0; i < flat.length; i += width) {
      const attempts = integer(flat[i + 2]);
      rows.push({
        id: ascii(flat[i]),
        payload: flat[i + 1] as Buffer,
        attempts,
        token: attempts === 1 ? first : tokenOf(attempts, epoch),
        uncharged: epoch === undefined ? 0 : countOf(flat[i + 3]),
      });
    }
    return rows;
  },
});

/** What the holder of a claim presents. */
export function tokenOf(attempts: number, epoch: string | undefined): string {
  return epoch === undefined ? String(attempts) : `${attempts}@${epoch}`;
}
