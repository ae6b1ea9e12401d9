import { assertInteger } from './arguments.js';
import { EchoArgumentError } from './errors.js';
import { type JobId, readId } from './id.js';

/** How a job grows older: one step of priority is worth so many milliseconds of waiting. */
export interface Ageing {
  readonly priority: number;
  readonly ageingMs: number;
  /** As the wire spells it: waiting begins when the job may run. */
  readonly delay: string;
}

/** @throws EchoArgumentError naming the option */
export function assertAgeing({ priority, ageingMs }: Pick<Ageing, 'priority' | 'ageingMs'>): void {
  assertInteger(ageingMs, 'ageingMs', 1);
  if (Math.abs(priority * ageingMs) <= MOST) return;
  throw new EchoArgumentError(
    `priority ${priority} with ageingMs ${ageingMs} is more than a score can hold exactly: their product is at most 2^52`,
  );
}

/** Its sum with a time of the next centuries is exact. */
const MOST = 2 ** 52;

/**
 * The score under which a job stands that grows older. All jobs that wait grow older at the same pace, so their order
 * never changes, and can be told when they land: whoever came earlier by `ageingMs` has made up for one step of
 * priority.
 * @throws EchoArgumentError when it is no whole number of 53 bits
 */
export function agedPriority({ priority, ageingMs, delay }: Ageing, id: JobId): number {
  const mintedMs = readId(id).mintedAt.getTime();
  const from = delay.startsWith('@') ? Math.max(mintedMs, Number(delay.slice(1))) : mintedMs + Number(delay);
  const score = priority * ageingMs + from;
  if (Number.isSafeInteger(score)) return score;
  throw new EchoArgumentError(
    `priority ${priority} with ageingMs ${ageingMs} and its delay make no whole score below 2^53`,
  );
}
