import type { OwedEffect } from '../wire/outbox.js';

/** How what is read of an outbox becomes calls. */

const MOST_PER_CALL = 500;
const MOST_BYTES_PER_CALL = 2_000_000;
/** Of one result in an entry with several: its child's id, and what frames it. */
const LEAST_BYTES = 16;

/** A landing may go on in other queues, and a death upwards; a child that is done at most brings its parent's turn. */
export function mayOweMore({ kind, values }: OwedEffect): boolean {
  return kind !== 'results' && (kind !== 'settle' || values[2]?.toString() !== 'done');
}

/** How much it is to apply: a result among others is 1, the end of a child by itself 5. */
function weightOf(effect: OwedEffect): number {
  return effect.kind === 'results' ? Math.min(100, Math.ceil(sizeOf(effect) / LEAST_BYTES)) : 5;
}

export function sizeOf({ values }: OwedEffect): number {
  return values.reduce((sum, value) => sum + value.length, 0);
}

export function byTarget(effects: readonly OwedEffect[]): Map<string, OwedEffect[]> {
  const found = new Map<string, OwedEffect[]>();
  for (const effect of effects) {
    const same = found.get(effect.target);
    if (same === undefined) found.set(effect.target, [effect]);
    else same.push(effect);
  }
  return found;
}

/** In order, each small enough for one call; a landing, which may write 500 jobs, goes alone. */
export function* calls(effects: readonly OwedEffect[]): Generator<OwedEffect[]> {
  let call: OwedEffect[] = [];
  let bytes = 0;
  let weight = 0;
  for (const effect of effects) {
    const size = sizeOf(effect);
    const more = weightOf(effect);
    const alone = effect.kind === 'land';
    if (call.length > 0 && (alone || weight + more > MOST_PER_CALL || bytes + size > MOST_BYTES_PER_CALL)) {
      yield call;
      call = [];
      bytes = 0;
      weight = 0;
    }
    call.push(effect);
    weight += more;
    bytes += alone ? MOST_BYTES_PER_CALL : size;
  }
  if (call.length > 0) yield call;
}
