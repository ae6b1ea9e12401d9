import { assertInteger, assertKnownKeys, show } from './arguments.js';
import type { Complete } from './complete.js';
import { EchoArgumentError } from './errors.js';
import { assertZone, cronSlots, cronText } from './schedule-cron.js';

/** By the clock on the wall. */
export interface CronTimes {
  /** 5 fields (minute hour day month weekday), or 6 with the second first; also `@daily` and its like. */
  cron: string;
  /** IANA name of the time zone. Default `UTC`, never that of the machine. */
  tz?: string | undefined;
}

/** On a grid that is counted from 1970, and so the same for every process: with 3,600,000 on the hour. */
export interface IntervalTimes {
  /** Milliseconds, from 50 to a hundred years. */
  everyMs: number;
}

/** When a repeating schedule is due. */
export type ScheduleTimes = CronTimes | IntervalTimes;

/** The same, checked, nothing left out. */
export type FullTimes = Complete<CronTimes> | IntervalTimes;

/**
 * What becomes of slots for which no process was there: `skip` lets them go, `one` makes up for the newest, an object for those
 * that are at most `withinMs` old, and of them for the newest `max`.
 */
export type CatchUp = 'skip' | 'one' | { withinMs: number; max: number };

/** What becomes of a slot while the last job has not ended: `allow` lands another, `skip` lets the slot go. */
export type Overlap = 'allow' | 'skip';

export interface ScheduleRules {
  /** Default `skip`. */
  catchUp?: CatchUp | undefined;
  /** Default `allow`. */
  overlap?: Overlap | undefined;
}

const SHORTEST_MS = 50;
const LONGEST_MS = 3_153_600_000_000;
const MOST_CAUGHT_UP = 100;
const CRON_KEYS = new Set(['cron', 'tz']);
const INTERVAL_KEYS = new Set(['everyMs']);
const CATCH_UP_KEYS = new Set(['withinMs', 'max']);
const RULES_KEYS = new Set(['catchUp', 'overlap']);

/** @throws EchoArgumentError for times that make no sense, and for those that never come */
export function checkedTimes(times: unknown): FullTimes {
  const what = "a schedule's times";
  if (typeof times !== 'object' || times === null || !('cron' in times || 'everyMs' in times)) {
    throw new EchoArgumentError(`${what} are { cron, tz } or { everyMs }, got ${show(times)}`);
  }
  if ('cron' in times) {
    assertKnownKeys(times, CRON_KEYS, what);
    const { cron: given, tz = 'UTC' } = times as CronTimes;
    assertZone(tz);
    const cron = cronText(given);
    cronSlots(cron, tz);
    return { cron, tz };
  }
  assertKnownKeys(times, INTERVAL_KEYS, what);
  const { everyMs } = times;
  assertInteger(everyMs, "option 'everyMs'", SHORTEST_MS, LONGEST_MS);
  return { everyMs };
}

/** @throws EchoArgumentError naming the option */
export function checkedRules(rules: ScheduleRules): Complete<ScheduleRules> {
  assertKnownKeys(rules, RULES_KEYS, "a schedule's rules");
  const { catchUp = 'skip', overlap = 'allow' } = rules as ScheduleRules;
  if (overlap !== 'allow' && overlap !== 'skip') {
    throw new EchoArgumentError(`option 'overlap' is 'allow' or 'skip', got ${show(overlap)}`);
  }
  if (catchUp === 'skip' || catchUp === 'one') return { catchUp, overlap };
  if (typeof catchUp !== 'object' || catchUp === null) {
    throw new EchoArgumentError(`option 'catchUp' is 'skip', 'one' or { withinMs, max }, got ${show(catchUp)}`);
  }
  assertKnownKeys(catchUp, CATCH_UP_KEYS, "option 'catchUp'");
  const { withinMs, max } = catchUp;
  assertInteger(withinMs, "option 'catchUp.withinMs'", 1);
  assertInteger(max, "option 'catchUp.max'", 1, MOST_CAUGHT_UP);
  return { catchUp: { withinMs, max }, overlap };
}

/** What the server keeps, equal for equal times: see {@link readTimes}. */
export function timesText(times: FullTimes): string {
  return JSON.stringify('cron' in times ? { cron: times.cron, tz: times.tz } : { everyMs: times.everyMs });
}

export function rulesText({ catchUp, overlap }: Complete<ScheduleRules>): string {
  return JSON.stringify({ catchUp, overlap });
}

/** Undefined for what this version, or this machine's time zones, cannot make sense of. */
export function readTimes(text: string): FullTimes | undefined {
  return read(text, checkedTimes);
}

export function readRules(text: string): Complete<ScheduleRules> | undefined {
  return read(text, checkedRules);
}

function read<T, Given>(text: string, check: (value: Given) => T): T | undefined {
  try {
    return check(JSON.parse(text));
  } catch {
    return undefined;
  }
}
