import { type Outcome, outcomeOf } from '../../kernel/outcome.js';
import { array, integer, type Reply } from '../reply.js';

/** A code per job. */
export function outcomes(reply: Reply): Outcome[] {
  return array(reply).map((code) => outcomeOf(integer(code)));
}

/** A job as its holder names it. */
export interface Claimed {
  id: string;
  token: string;
}
