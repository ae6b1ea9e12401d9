import type { OwedEffect } from '../wire/outbox.js';

/** How what is read of an outbox becomes calls. */

const MOST_PER_CALL = 100;
const MOST_BYTES_PER_CALL = 2_000_000;

/** A landing may go on in other queues, and a death upwards; a child that is done at most brings its parent's turn. */
export function mayOweMore({ kind, values }: OwedEffect): boolean {
  return kind !== 'settle' || values[2]?.toString() !== 'done';
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
  for (const effect of effects) {
    const size = sizeOf(effect);
    const alone = effect.kind === 'land';
    if (call.length > 0 && (alone || call.length === MOST_PER_CALL || bytes + size > MOST_BYTES_PER_CALL)) {
      yield call;
      call = [];
      bytes = 0;
    }
    call.push(effect);
    bytes += alone ? MOST_BYTES_PER_CALL : size;
  }
  if (call.length > 0) yield call;
}
