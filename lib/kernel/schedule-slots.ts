import { cronSlots } from './schedule-cron.js';
import type { CatchUp, FullTimes } from './schedule-spec.js';

/** Where a schedule stands that has no next slot: one that is paused. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * A slot that is later than this was missed. Under `skip` one that is less late still fires: a process may have died that led the
 * queue, or a deployment be under way.
 */
export const LATE_MS = 60_000;

/** Slots that are to fire now, the oldest first, and the one that follows. */
export interface SlotPlan {
  readonly fire: readonly number[];
  readonly next: number;
}

/** The first slot after a moment. Milliseconds since 1970. */
export function slotAfter(times: FullTimes, ms: number): number {
  if ('cron' in times) return cronSlots(times.cron, times.tz).after(ms) ?? NEVER;
  return Math.min((Math.floor(ms / times.everyMs) + 1) * times.everyMs, NEVER);
}

/** What is to be done at `now` about a schedule whose slot has come at `due`. */
export function planSlots(times: FullTimes, catchUp: CatchUp, due: number, now: number): SlotPlan {
  const [withinMs, max] =
    catchUp === 'skip'
      ? [LATE_MS, 1]
      : catchUp === 'one'
        ? [Number.POSITIVE_INFINITY, 1]
        : [catchUp.withinMs, catchUp.max];
  const oldest = Math.max(due, now - withinMs);
  const following = slotAfter(times, due);
  // As a rule: one slot, on time.
  if (following > now) return { fire: due >= oldest ? [due] : [], next: following };
  const fire: number[] = [];
  let slot = slotBefore(times, now + 1);
  while (slot >= oldest && fire.length < max) {
    fire.unshift(slot);
    slot = slotBefore(times, slot);
  }
  return { fire, next: slotAfter(times, now) };
}

function slotBefore(times: FullTimes, ms: number): number {
  if ('cron' in times) return cronSlots(times.cron, times.tz).before(ms) ?? Number.NEGATIVE_INFINITY;
  return (Math.ceil(ms / times.everyMs) - 1) * times.everyMs;
}
