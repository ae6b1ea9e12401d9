import { assertInteger, assertKnownKeys, show } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { isGroupText, type Lane, laneOf } from '../kernel/lane.js';
import { type Rate, rateSettings } from '../kernel/rate.js';
import type { LaneStanding, Row } from '../wire/transitions/index.js';

/** What the methods of Lanes take and answer. */

/**
 * What a lane is judged by. What is left out stays as it is; null takes a setting back: then the queue's default for
 * lanes holds, or nothing does.
 */
export interface LaneSettings {
  /** Of the claims it gets so much more or less than others, 0.1 to 100. Default 1. */
  weight?: number | null | undefined;
  /**
   * Jobs of the lane that are claimed and not settled at a time, in all processes, from 1; `Infinity`: as many as
   * there are.
   */
  cap?: number | null | undefined;
  /** Jobs of the lane that are claimed in a time; false: as many as there are. */
  rate?: Rate | false | null | undefined;
  /**
   * Jobs that may wait in the lane, from 1: enqueue is then refused with an EchoLaneFullError. `Infinity`: as many as
   * there are.
   */
  maxWaiting?: number | null | undefined;
}

/** Of jobs that stand for many lanes, or for none: a group, and the jobs without a lane. */
export type WeightSetting = Pick<LaneSettings, 'weight'>;

/** A rate as it stands: one job every `intervalMs`, and `burst` at once after a quiet time. */
export interface StandingRate {
  intervalMs: number;
  burst: number;
}

/** Settings of a lane's own; absent where the default holds. */
export interface StandingLaneSettings {
  weight?: number;
  cap?: number;
  rate?: StandingRate | false;
  maxWaiting?: number;
}

/** A lane as it stands. */
export interface LaneView {
  /** Null: the jobs without one. */
  lane: Lane | null;
  /** Jobs that could be claimed if it were its turn. Those that wait for a time are not in it yet. */
  waiting: number;
  /** Of jobs without a lane it is not counted: undefined. */
  active: number | undefined;
  paused: boolean;
  /**
   * Milliseconds until the lane can give a job, as far as it goes by the lane: 0 now; undefined: not before something
   * happens, since it is empty, paused or at its cap.
   */
  turnInMs: number | undefined;
  settings: StandingLaneSettings;
}

/** A group of lanes as it stands. */
export interface GroupView {
  group: string;
  paused: boolean;
  /** Lanes of it that are known: those with jobs or settings, and some that were busy a moment ago. */
  lanes: number;
  /** As of a lane: 0 when one of its lanes can give a job now. */
  turnInMs: number | undefined;
  settings: Pick<StandingLaneSettings, 'weight'>;
}

/** One page of the lanes and groups that a queue knows. */
export interface LanePage {
  lanes: LaneView[];
  /** Groups that stand on this page. */
  groups: GroupView[];
  /** Lanes and groups that are known, without the jobs that have no lane. */
  total: number;
  /** Where the next page begins; undefined on the last. */
  next: number | undefined;
}

const SETTINGS = new Set(['weight', 'cap', 'rate', 'maxWaiting']);
const WEIGHT = new Set(['weight']);

/** Flat, as the wire wants them. @throws EchoArgumentError naming the setting */
export function laneSettings(settings: LaneSettings, what: string): string[] {
  assertKnownKeys(settings, SETTINGS, what);
  const { weight, cap, rate, maxWaiting } = settings as LaneSettings;
  const flat = weightOf(weight);
  if (cap !== undefined) flat.push('cap', countText(cap, 'cap'));
  if (rate === false) flat.push('interval', NONE, 'burst', '');
  else if (rate !== undefined) flat.push(...rateSettings(rate, 'rate'));
  if (maxWaiting !== undefined) flat.push('max_waiting', countText(maxWaiting, 'maxWaiting'));
  return given(flat, what);
}

/** The same where there is a weight only; `why` there is. @throws EchoArgumentError */
export function weightSettings(settings: WeightSetting, what: string, why: string): string[] {
  assertKnownKeys(settings, SETTINGS, what);
  const other = Object.entries(settings).find(([name, value]) => value !== undefined && !WEIGHT.has(name));
  if (other !== undefined) throw new EchoArgumentError(`${what}: there is no ${other[0]}: ${why}`);
  return given(weightOf((settings as WeightSetting).weight), what);
}

export function standingRate(intervalMs: number | undefined, burst: number | undefined): StandingRate | undefined {
  return intervalMs === undefined ? undefined : { intervalMs, burst: burst ?? 1 };
}

export function laneView({ name, waiting, active, turnInMs, state }: LaneStanding): LaneView {
  const lane = name === '' ? null : laneOf(name);
  const paused = state.has('paused');
  return {
    ...{ lane, waiting, active: lane === null ? undefined : active, paused },
    ...{ turnInMs, settings: standingSettings(state) },
  };
}

export function groupView({ name, turnInMs, state }: LaneStanding): GroupView {
  const { weight } = standingSettings(state);
  return {
    ...{ group: laneOf(name)[0]!, paused: state.has('paused'), lanes: Number(state.get('lanes')?.toString() ?? 0) },
    ...{ turnInMs, settings: weight === undefined ? {} : { weight } },
  };
}

export function isGroup({ name }: LaneStanding): boolean {
  return isGroupText(name);
}

function standingSettings(state: Row): StandingLaneSettings {
  const word = (field: string) => state.get(field)?.toString();
  const count = (text: string) => (text === NONE ? Number.POSITIVE_INFINITY : Number(text));
  const [weight, cap, interval, burst] = [word('weight'), word('cap'), word('interval'), word('burst')];
  const maxWaiting = word('max_waiting');
  return {
    ...(weight === undefined ? {} : { weight: Number(weight) }),
    ...(cap === undefined ? {} : { cap: count(cap) }),
    ...(interval === undefined
      ? {}
      : { rate: interval !== NONE && standingRate(Number(interval), Number(burst ?? 1))! }),
    ...(maxWaiting === undefined ? {} : { maxWaiting: count(maxWaiting) }),
  };
}

/** As the wire spells that there is none, whatever the default says. */
const NONE = '-';
const [LIGHTEST, HEAVIEST] = [0.1, 100];

function weightOf(weight: number | null | undefined): string[] {
  if (weight === undefined) return [];
  if (weight === null) return ['weight', ''];
  if (typeof weight !== 'number' || !(weight >= LIGHTEST && weight <= HEAVIEST)) {
    throw new EchoArgumentError(`weight must be a number from ${LIGHTEST} to ${HEAVIEST}, got ${show(weight)}`);
  }
  return ['weight', String(weight)];
}

function countText(value: number | null, name: string): string {
  if (value === null) return '';
  if (value === Number.POSITIVE_INFINITY) return NONE;
  assertInteger(value, name, 1);
  return String(value);
}

function given(flat: string[], what: string): string[] {
  if (flat.length > 0) return flat;
  throw new EchoArgumentError(`${what}: give at least one setting, or null to take one back`);
}
