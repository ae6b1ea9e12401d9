import { EchoArgumentError } from './errors.js';
import { assertName } from './keyspace.js';

/**
 * Whose turn a job takes: a lane by its name, or a group and a lane within it. Lanes of one group share the group's turns, so that
 * a tenant that splits its work into many lanes gains nothing by it.
 */
export type Lane = string | readonly [group: string, lane: string];

/** Between the name of a group and that of a lane: no name can hold it. */
const SEPARATOR = '\u001f';

/** As the wire names it. @throws EchoArgumentError unless each name is 1 to 200 bytes of UTF-8 without control characters */
export function laneText(lane: Lane): string {
  if (typeof lane === 'string') {
    assertName(lane, 'lane');
    return lane;
  }
  if (!Array.isArray(lane) || lane.length !== 2) {
    throw new EchoArgumentError('lane must be a name, or [group, lane]');
  }
  assertName(lane[0], 'group');
  assertName(lane[1], 'lane');
  return lane.join(SEPARATOR);
}

/** The same where null stands for the jobs without a lane. An undefined one is a mistake more often than none. */
export function laneName(lane: Lane | null): string {
  if (lane === null) return '';
  if (lane === undefined) {
    throw new EchoArgumentError(
      'lane is undefined: give a name, or [group, lane], or null for the jobs without a lane',
    );
  }
  return laneText(lane);
}

/** A group as the ring of lanes names it. */
export function groupText(group: string): string {
  assertName(group, 'group');
  return group + SEPARATOR;
}

/** Does the ring of lanes name a group so? */
export function isGroupText(text: string): boolean {
  return text.endsWith(SEPARATOR);
}

/** What the wire's name means; a group by itself ends in an empty lane. */
export function laneOf(text: string): Lane {
  const at = text.indexOf(SEPARATOR);
  return at < 0 ? text : [text.slice(0, at), text.slice(at + 1)];
}

/** A job that is to be enqueued, as whoever chooses its lane sees it: the data as it was given. */
// biome-ignore lint/suspicious/noExplicitAny: data of whatever type its queue has; a definition knows it
export type JobForLane<Inputs = any> = {
  [Name in keyof Inputs & string]: { readonly name: Name; readonly data: Inputs[Name] };
}[keyof Inputs & string];

/** Chooses the lane of jobs that are enqueued without one; nothing: none. It is called before anything is sent. */
// biome-ignore lint/suspicious/noExplicitAny: likewise
export type LaneBy<Inputs = any> = (job: JobForLane<Inputs>) => Lane | null | undefined;
