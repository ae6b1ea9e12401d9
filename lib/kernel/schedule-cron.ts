import { Cron } from 'croner';
import { show } from './arguments.js';
import { EchoArgumentError } from './errors.js';

/** When a cron expression is due, in milliseconds since 1970; whole seconds. */
export interface CronSlots {
  /** The first slot after a moment; undefined when there is none. */
  after(ms: number): number | undefined;
  /** The last slot before a moment; undefined when there is none. */
  before(ms: number): number | undefined;
}

const LONGEST_PATTERN = 256;
const LONGEST_ZONE = 100;
const MOST_KEPT = 1000;
/** Any moment does to see whether an expression is ever due: none of them names a year. */
const SOME_MOMENT = Date.UTC(2024, 0, 1);

const NICKNAME = /^@[a-z]+$/i;
/** Said of the expressions that work: `ways` of the library's own would be looked for in other clients in vain. */
const WAYS =
  '5 fields (minute hour day month weekday), or 6 with the second first, or @hourly, @daily, @weekly, @monthly, @yearly';

/** By expression and zone: to parse costs more than to ask. */
const known = new Map<string, CronSlots>();

/** The expression as it is kept: one blank between fields. @throws EchoArgumentError unless it is one of those written above */
export function cronText(cron: unknown): string {
  if (typeof cron !== 'string') throw new EchoArgumentError(`option 'cron' must be a string, got ${show(cron)}`);
  if (cron.length > LONGEST_PATTERN) {
    throw new EchoArgumentError(`option 'cron' is longer than ${LONGEST_PATTERN} characters`);
  }
  const fields = cron.trim().split(/\s+/);
  const plain = fields.length === 5 || fields.length === 6;
  // With '+' the library takes day and weekday together. Nobody else knows it, and one that is never due takes 200 ms to refuse.
  if ((plain && !cron.includes('+')) || (fields.length === 1 && NICKNAME.test(fields[0]!))) return fields.join(' ');
  throw new EchoArgumentError(`option 'cron' is ${show(cron)}: it takes ${WAYS}`);
}

/** @throws EchoArgumentError unless it is the name of a time zone that this process knows */
export function assertZone(tz: unknown): asserts tz is string {
  const what = "a time zone's name, such as 'Europe/Berlin' or 'UTC'";
  // Offsets are zones to newer runtimes only: a schedule must mean the same to every process.
  if (typeof tz !== 'string' || !/^[A-Za-z]/.test(tz) || tz.length > LONGEST_ZONE) {
    throw new EchoArgumentError(`option 'tz' must be ${what}, got ${show(tz)}`);
  }
  try {
    new Intl.DateTimeFormat('en', { timeZone: tz });
  } catch (error) {
    throw new EchoArgumentError(`option 'tz' is ${show(tz)}, which this process does not know: give ${what}`, error);
  }
}

/** @throws EchoArgumentError for an expression that makes no sense, or is never due */
export function cronSlots(cron: string, tz: string): CronSlots {
  const name = `${tz} ${cron}`;
  let slots = known.get(name);
  if (slots === undefined) {
    slots = slotsOf(cron, tz);
    if (known.size >= MOST_KEPT) known.clear(); // expressions may come from tenants without end
    known.set(name, slots);
  }
  return slots;
}

function slotsOf(cron: string, tz: string): CronSlots {
  let parsed: Cron;
  let first: Date | null;
  try {
    // Paused, so that it only answers questions. On the days when clocks change, an expression without wildcard or step in its
    // time of day is due once: behind the gap, or the first of the two times.
    parsed = new Cron(cron, { paused: true, mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard', timezone: tz });
    first = parsed.nextRun(new Date(SOME_MOMENT));
  } catch (error) {
    const reason = (error as Error).message.replace(/^Cron\w*: /, '');
    throw new EchoArgumentError(`option 'cron' is ${show(cron)}: ${reason}`, error);
  }
  if (first === null) throw new EchoArgumentError(`option 'cron' is ${show(cron)}, which is never due`);
  return {
    after: (ms) => parsed.nextRun(new Date(ms))?.getTime(),
    // It looks at whole seconds only.
    before: (ms) => parsed.previousRuns(1, new Date(Math.ceil(ms / 1000) * 1000))[0]?.getTime(),
  };
}
