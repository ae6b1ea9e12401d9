import type { BatchOptions } from '../engine/batching.js';
import { checkedOptions, type ScheduleDeclaration, type ScheduleOptions } from '../engine/schedule-calls.js';
import { show } from '../kernel/arguments.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import { assertScheduleKey } from '../kernel/keyspace.js';
import { checkedTimes, type ScheduleTimes } from '../kernel/schedule-spec.js';

/** Data that may be undefined may be left out. */
type DataOfSchedule<Data> = undefined extends Data ? { data?: Data } : { data: Data };

/**
 * When jobs land for a handler by themselves: `{ cron, tz }` or `{ everyMs }`, with what becomes of missed and overlapping slots,
 * options for the jobs, and their data.
 */
export type JobSchedule<Data = unknown> = ScheduleTimes &
  ScheduleOptions &
  DataOfSchedule<Data> & {
    /** Names it in its queue. Default: the job's name. */
    key?: string | undefined;
  };

/** A method gets jobs together: `{ batch: { size, waitMs } }`, with a schedule beside it or without. */
export type JobBatch<Data = unknown> = { batch: BatchOptions } & (
  | JobSchedule<Data>
  | { cron?: undefined; everyMs?: undefined }
);

const TIMES = ['cron', 'tz', 'everyMs'];

/** @throws EchoRegistrationError naming the place, for a schedule that makes no sense or is never due */
export function declarationOf(place: string, name: string, given: unknown): ScheduleDeclaration {
  if (typeof given !== 'object' || given === null) {
    throw new EchoRegistrationError(
      `@OnJob on ${place}: behind the name comes a schedule, { cron, tz } or { everyMs }, or { batch: { size, waitMs } }, ` +
        `got ${show(given)}`,
    );
  }
  if (!TIMES.some((time) => (given as Record<string, unknown>)[time] !== undefined)) {
    const keys = Object.keys(given);
    throw new EchoRegistrationError(
      `@OnJob on ${place}: behind the name come a schedule's times, { cron, tz } or { everyMs }, or ` +
        `{ batch: { size, waitMs } }, got an object with ${keys.length > 0 ? keys.join(', ') : 'nothing in it'}`,
    );
  }
  const { key = name, data, ...rest } = given as JobSchedule;
  const { cron, tz, everyMs, ...options } = rest as { cron?: string; tz?: string; everyMs?: number } & ScheduleOptions;
  const said = Object.entries({ cron, tz, everyMs }).filter(([, value]) => value !== undefined);
  const times = Object.fromEntries(said) as unknown as ScheduleTimes;
  try {
    assertScheduleKey(key);
    checkedTimes(times);
    checkedOptions(options);
  } catch (error) {
    throw new EchoRegistrationError(`@OnJob on ${place}: ${(error as Error).message}`);
  }
  return { key, times, name, data, options };
}
