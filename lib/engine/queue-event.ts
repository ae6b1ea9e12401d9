import { show } from '../kernel/arguments.js';
import type { Codec } from '../kernel/codec.js';
import { EchoArgumentError } from '../kernel/errors.js';
import type { EventFrame } from '../wire/frames.js';
import { seenOf } from './results.js';

/** What an event says beyond whose it is. */
interface Says {
  /** It stands on the server: enqueued, landed as part of a flow or by its schedule. */
  landed: { readonly state: 'pending' | 'scheduled' | 'awaiting_children' };
  /** It was claimed. */
  active: unknown;
  /** Its handler has called `job.progress`. Undefined also of a value of more than 4,096 bytes: `jobs.get` shows it. */
  progress: { readonly value: unknown };
  /** Its completion was taken. Undefined also of a result of more than 4,096 bytes. */
  completed: { readonly result: unknown };
  /** An attempt failed and it runs again; `error` is the text that the row keeps, of an error its stack. */
  retried: { readonly error: string };
  /** It lies in the morgue: attempts used up, discarded, lapsed too often, dead of a child, or stopped by a cancel. */
  dead: { readonly error: string };
  /** Its lease has lapsed, so many times by now; it runs again, or `dead` follows. */
  stalled: { readonly stalls: number };
  /** It was removed before it ran, or asked to stop: then the end of the claim follows, `dead` or `completed`. */
  cancelled: unknown;
}

export type QueueEventName = keyof Says;

/**
 * Something that happened to a job of a queue, in whatever process: a union that `event` tells apart. `QueueEvent<'dead'>` is one of
 * its members, `QueueEvent<'dead' | 'retried'>` two.
 */
export type QueueEvent<Name extends QueueEventName = QueueEventName> = {
  [Event in Name]: {
    readonly queue: string;
    readonly event: Event;
    readonly id: string;
    /** Claims so far; 0 of `landed`. */
    readonly attempts: number;
  } & Says[Event];
}[Name];

/** What each event's text means. */
const READ: { [Event in QueueEventName]: (text: Buffer, codec: Codec) => Says[Event] } = {
  landed: (text) => ({ state: text.toString() as Says['landed']['state'] }),
  active: () => ({}),
  progress: (text, codec) => ({ value: seenOf(text, codec) }),
  completed: (text, codec) => ({ result: seenOf(text, codec) }),
  retried: (text) => ({ error: text.toString() }),
  dead: (text) => ({ error: text.toString() }),
  stalled: (text) => ({ stalls: Number(text.toString()) }),
  cancelled: () => ({}),
};

export const QUEUE_EVENTS = Object.keys(READ) as readonly QueueEventName[];

export function isQueueEventName(name: unknown): name is QueueEventName {
  return typeof name === 'string' && Object.hasOwn(READ, name);
}

/** @throws EchoArgumentError */
export function assertQueueEventName(name: unknown): asserts name is QueueEventName {
  if (isQueueEventName(name)) return;
  throw new EchoArgumentError(`there is no event ${show(name)}. Known are ${QUEUE_EVENTS.join(', ')}`);
}

/** Undefined of an event that a later version of the scripts may know. */
export function eventOf(
  queue: string,
  { event, id, attempts, text }: EventFrame,
  codec: Codec,
): QueueEvent | undefined {
  if (!isQueueEventName(event)) return undefined;
  return { queue, event, id, attempts, ...(READ[event](text, codec) as object) } as QueueEvent;
}
