import 'reflect-metadata';
import { isQueueEventName, QUEUE_EVENTS, type QueueEvent, type QueueEventName } from '../engine/queue-event.js';
import { assertKnownKeys, show } from '../kernel/arguments.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import { assertQueueName } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';
import { IMPORT_CIRCLE } from './import-circle.js';
import { ON_QUEUE_EVENT_METADATA } from './tokens.js';

export interface OnQueueEventMetadata {
  readonly method: string | symbol;
  readonly events: readonly QueueEventName[];
  /** Undefined: that of the class's `@Processor`. */
  readonly queue: string | undefined;
  /** Where the decorator names the `EchoMqModule`. */
  readonly instanceName: string | undefined;
}

export interface OnQueueEventOptions {
  /** Which `EchoMqModule`, by the `name` of its forRoot. Default: that of the class's `@Processor`, else the one without a name. */
  instance?: string | undefined;
}

/** Takes methods only whose first parameter, where there is one, takes such events. */
export type QueueEventDecorator<Name extends QueueEventName> = <Method extends (event: QueueEvent<Name>) => unknown>(
  target: object,
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

const KNOWN = new Set(['instance']);

/**
 * This method is called with every such event of the queue that its class is `@Processor` of, whichever process the job runs in:
 * `@OnQueueEvent('dead')`, `@OnQueueEvent(['dead', 'retried'])`. Every process of the app that has the method is told, also under
 * `consume: false`; nothing is settled by what it does.
 *
 * It listens from when the app has started until it shuts down, when what is running is waited for up to 10 s and before anything
 * that it may use is closed. What it throws is logged. Calls may overlap where it is asynchronous. Guards and their like do not act
 * on it, and its class has the default scope: the boot says so.
 * @throws EchoRegistrationError for an event that does not exist
 */
export function OnQueueEvent<Name extends QueueEventName>(events: Name | readonly Name[]): QueueEventDecorator<Name>;
/** The same for any queue, on any provider: `@OnQueueEvent('mail', 'dead')`. */
export function OnQueueEvent<Name extends QueueEventName>(
  queue: string | Queue,
  events: Name | readonly Name[],
  options?: OnQueueEventOptions,
): QueueEventDecorator<Name>;
export function OnQueueEvent(...given: unknown[]): MethodDecorator {
  return (target: object, method: string | symbol, descriptor: PropertyDescriptor | undefined) => {
    const isStatic = typeof target === 'function';
    const type = isStatic ? target : target.constructor;
    const place = `@OnQueueEvent on ${type.name}.${String(method)}`;
    if (isStatic) throw new EchoRegistrationError(`${place}: a static method has no instance`);
    if (typeof descriptor?.value !== 'function') throw new EchoRegistrationError(`${place}: it is no method`);
    const own = ownEventMethods(type);
    Reflect.defineMetadata(ON_QUEUE_EVENT_METADATA, [...own, { method, ...checked(place, given) }], type);
  };
}

/** What stands on this very class, without what it inherits. */
export function ownEventMethods(target: object): readonly OnQueueEventMetadata[] {
  return (Reflect.getOwnMetadata(ON_QUEUE_EVENT_METADATA, target) as OnQueueEventMetadata[] | undefined) ?? [];
}

function checked(place: string, given: readonly unknown[]): Omit<OnQueueEventMetadata, 'method'> {
  const isBare = given.length < 2;
  const two = isQueueEventName(given[0]) && isQueueEventName(given[1]);
  if (two || isQueueEventName(given[2]) || given.length > 3) {
    throw new EchoRegistrationError(
      `${place}: several events are an array, as in @OnQueueEvent(['dead', 'retried']). A queue called like an event is ` +
        'given as defineQueue() makes it',
    );
  }
  return {
    queue: isBare ? undefined : queueOf(place, given[0]),
    events: eventsOf(place, isBare ? given[0] : given[1], isBare),
    instanceName: instanceOf(place, given[2]),
  };
}

function queueOf(place: string, given: unknown): string {
  if (given === undefined) {
    throw new EchoRegistrationError(`${place} got undefined for its queue: ${IMPORT_CIRCLE}`);
  }
  try {
    const queue = queueName(given as string | Queue);
    assertQueueName(queue);
    return queue;
  } catch (error) {
    throw new EchoRegistrationError(`${place}: ${(error as Error).message}`);
  }
}

function eventsOf(place: string, given: unknown, isBare: boolean): readonly QueueEventName[] {
  const events: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (events.length === 0) throw new EchoRegistrationError(`${place} names no event`);
  for (const event of events) {
    if (isQueueEventName(event)) continue;
    const hint = isBare ? "; for another queue write @OnQueueEvent('queue', 'event')" : '';
    throw new EchoRegistrationError(
      `${place}: there is no event ${show(event)}. Known are ${QUEUE_EVENTS.join(', ')}${hint}`,
    );
  }
  return events as readonly QueueEventName[];
}

function instanceOf(place: string, options: unknown): string | undefined {
  if (options === undefined) return undefined;
  try {
    assertKnownKeys(options, KNOWN, 'its options');
  } catch (error) {
    throw new EchoRegistrationError(`${place}: ${(error as Error).message}`);
  }
  const { instance } = options as { instance?: unknown };
  if (instance === undefined || (typeof instance === 'string' && instance !== '')) return instance;
  throw new EchoRegistrationError(`${place}: 'instance' is the name of an EchoMqModule.forRoot, got ${show(instance)}`);
}
