import { assertKnownKeys } from '../kernel/arguments.js';
import { type TravellingOptions, travellingOptions } from '../kernel/codec.js';
import type { Complete } from '../kernel/complete.js';
import { type Lane, laneOf } from '../kernel/lane.js';
import { NEVER } from '../kernel/schedule-slots.js';
import {
  checkedRules,
  type Overlap,
  readRules,
  readTimes,
  type ScheduleRules,
  type ScheduleTimes,
} from '../kernel/schedule-spec.js';
import type { ScheduleRow } from '../wire/transitions/index.js';
import { type EnqueueOptions, type Landing, landingOf } from './enqueue-options.js';

/** What the methods of Schedules take and answer. */

/** Rules of the schedule, and options for each job that it lands. */
export interface ScheduleOptions
  extends ScheduleRules,
    Pick<EnqueueOptions, 'priority' | 'attempts' | 'backoff' | 'timeoutMs' | 'keepMs' | 'maxStalls' | 'lane'> {}

/** One of a queue's schedules, as code declares it. */
export interface ScheduleDeclaration {
  key: string;
  times: ScheduleTimes;
  /** Of the jobs it lands. */
  name: string;
  data?: unknown;
  options?: ScheduleOptions | undefined;
}

export interface DeclaredSchedule {
  key: string;
  what: 'new' | 'changed' | 'unchanged';
  /** Undefined while it is paused. */
  nextSlot: Date | undefined;
}

export interface DeclareAnswer {
  declared: DeclaredSchedule[];
  /** Keys that were declared by code, and no longer are. */
  undeclared: string[];
}

/** A repeating schedule as it stands. */
export interface Schedule {
  key: string;
  /** Undefined when this process cannot make sense of them: written by a newer version, or in a zone it does not know. */
  times: ScheduleTimes | undefined;
  catchUp: ScheduleRules['catchUp'];
  overlap: Overlap | undefined;
  /** Of the jobs it lands; empty when the codec cannot read it. */
  name: string;
  data: unknown;
  opts: TravellingOptions | undefined;
  /** Of the jobs it lands. */
  lane: Lane | undefined;
  paused: boolean;
  nextSlot: Date | undefined;
  /** The newest slot that is over. */
  lastSlot: Date | undefined;
  /** The newest job that it has landed; its row may be gone. */
  lastJobId: string | undefined;
  /** Slots that went without a job since the last one had not ended. */
  skipped: number;
  /** By `declare`, or a decorator; false: by `put`. */
  declared: boolean;
}

/** One page of a queue's schedules. */
export interface SchedulePage {
  schedules: Schedule[];
  /** Schedules of the queue. */
  total: number;
  /** Where the next page begins; undefined on the last. */
  next: number | undefined;
}

/** `overlap`: the last job, `id`, has not ended. */
export type RunNow =
  | { status: 'landed'; id: string }
  | { status: 'overlap'; id: string | undefined }
  | { status: 'gone'; id: undefined };

/** Who has declared a schedule, as its row says. */
export const ORIGIN = { declared: 'declared', put: '' } as const;

const OPTIONS = new Set([
  ...['catchUp', 'overlap', 'priority', 'attempts', 'backoff', 'timeoutMs', 'keepMs', 'maxStalls', 'lane'],
]);

/** @throws EchoArgumentError naming the option */
export function checkedOptions(options: ScheduleOptions = {}): { rules: Complete<ScheduleRules>; landing: Landing } {
  assertKnownKeys(options, OPTIONS, 'schedule options');
  const { catchUp, overlap, ...landing } = options as ScheduleOptions;
  return { rules: checkedRules({ catchUp, overlap }), landing: landingOf(landing) };
}

export function scheduleOf(
  { key, nextSlot, row }: ScheduleRow,
  envelope: { name: string; data: unknown; opts: TravellingOptions | undefined } | undefined,
): Schedule {
  const word = (field: string) => row.get(field)?.toString();
  const lastSlot = word('last_slot');
  const rules = readRules(word('rules') ?? '');
  return {
    key,
    times: readTimes(word('spec') ?? ''),
    catchUp: rules?.catchUp,
    overlap: rules?.overlap,
    name: envelope?.name ?? '',
    data: envelope ? envelope.data : row.get('payload'),
    opts: travellingOptions(envelope?.opts),
    lane: word('lane') === undefined ? undefined : laneOf(word('lane')!),
    paused: row.has('paused'),
    nextSlot: dateOf(nextSlot),
    lastSlot: lastSlot === undefined ? undefined : new Date(Number(lastSlot)),
    lastJobId: word('last_job'),
    skipped: Number(word('skipped') ?? 0),
    declared: word('origin') === ORIGIN.declared,
  };
}

export function dateOf(slot: number): Date | undefined {
  return slot < NEVER ? new Date(slot) : undefined;
}
