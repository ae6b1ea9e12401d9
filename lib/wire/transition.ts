import type { KeyName } from '../kernel/keyspace.js';
import type { Arg, Reply } from './reply.js';
import type { SCRIPTS } from './scripts.generated.js';

export type ScriptName = keyof typeof SCRIPTS;

/**
 * One atomic step on one queue, described once: from this come the typed call and the row in docs/wire.md. The script of
 * the same name in lua/ says what moves where.
 */
export interface Transition<Call, Answer> {
  readonly name: ScriptName;
  /** In the order of KEYS; `base` comes last. */
  readonly keys: readonly KeyName[];
  /** ARGV, in words. */
  readonly args: string;
  /** The answer, in words. */
  readonly answers: string;
  /** May the same call be sent again when its answer was lost? Never for one that takes something. */
  readonly resend: boolean;
  encode(call: Call): Arg[];
  decode(reply: Reply, call: Call): Answer;
}

export function transition<Call, Answer>(described: Transition<Call, Answer>): Transition<Call, Answer> {
  return described;
}
