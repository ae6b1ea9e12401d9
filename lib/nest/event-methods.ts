import type { ModulesContainer } from '@nestjs/core';
import type { QueueEventName } from '../engine/queue-event.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { HostModule, ProviderWrapper } from './container.js';
import { classOf, isBeingMade } from './discovery.js';
import { allOf, declaredOn } from './enhancers.js';
import { type Class, hasMarked, markedMethods } from './handler-methods.js';
import { isScoped } from './job-scope.js';
import { ownHandlers } from './on-job.js';
import { type OnQueueEventMetadata, ownEventMethods } from './on-queue-event.js';
import { processorMetadata } from './processor.js';

/** A method that is to be called with events. */
export interface EventMethod {
  readonly queue: string;
  readonly events: readonly QueueEventName[];
  readonly instanceName: string | undefined;
  readonly type: Class;
  readonly method: string | symbol;
  readonly instance: object;
  /** Class, method and module, for messages. */
  readonly place: string;
}

/**
 * Every `@OnQueueEvent` among the providers of every module.
 * @throws EchoRegistrationError for one that cannot be called, or has no queue
 */
export function findEventMethods(modules: ModulesContainer): EventMethod[] {
  // By class: a module that is imported twice is built twice on Nest 11 and 12, and its listener is still one.
  const found = new Map<Class, EventMethod[]>();
  for (const module of modules.values()) {
    for (const wrapper of module.providers.values()) {
      const type = wrapper.isAlias ? undefined : classOf(wrapper);
      if (type === undefined || !hasMarked(type, ownEventMethods)) continue;
      const methods = methodsOf(type, wrapper, module);
      if (!found.get(type)?.length) found.set(type, methods);
    }
    for (const { metatype } of module.controllers.values()) {
      if (typeof metatype === 'function') refuseController(metatype, module);
    }
  }
  return [...found.values()].flat();
}

function methodsOf(type: Class, wrapper: ProviderWrapper, host: HostModule): EventMethod[] {
  const module = host.metatype.name;
  const processor = processorMetadata(type);
  const marks = markedMethods(type, ownEventMethods, spelt);
  for (const mark of marks) {
    const place = `${type.name}.${String(mark.method)} in ${module}`;
    refuseUnmade(wrapper, place);
    refuseWithoutEffect(type, mark, place, processor !== undefined);
    if (mark.queue === undefined && processor === undefined) {
      throw new EchoRegistrationError(
        `${place} is ${spelt(mark)} of no queue: name it, @OnQueueEvent('queue', '${mark.events[0]}'), or make the class a @Processor`,
      );
    }
  }
  if (isBeingMade(wrapper)) return [];
  return marks.map(({ method, events, queue, instanceName }) => ({
    queue: queue ?? processor!.queue,
    events,
    instanceName: instanceName ?? processor?.instanceName,
    type,
    method,
    instance: wrapper.instance as object,
    place: `${type.name}.${String(method)} in ${module}`,
  }));
}

/** An event is nobody's request: there is nothing to make an instance for. */
function refuseUnmade(wrapper: ProviderWrapper, place: string): void {
  if (wrapper.isTransient) {
    throw new EchoRegistrationError(
      `${place} is @OnQueueEvent, but its class is transient and nobody injects a listener: give it the default scope`,
    );
  }
  if (isScoped(wrapper)) {
    throw new EchoRegistrationError(
      `${place} is @OnQueueEvent, but its class is request-scoped, by itself or through what it injects, and an event is no ` +
        'request: move the method to a provider of the default scope',
    );
  }
}

function refuseWithoutEffect(type: Class, { method }: OnQueueEventMetadata, place: string, isProcessor: boolean): void {
  if (hasMarked(type, (one) => ownHandlers(one).filter((handler) => handler.method === method))) {
    throw new EchoRegistrationError(`${place} is both @OnJob and @OnQueueEvent: make them two methods`);
  }
  // What stands on a processor acts on its jobs.
  const declared = declaredOn(type, method, !isProcessor);
  if (declared.parameters.length > 0) {
    throw new EchoRegistrationError(`${place} is @OnQueueEvent and gets the event: its parameter takes no decorator`);
  }
  const [enhancer] = allOf(declared);
  if (enhancer === undefined) return;
  const name = typeof enhancer === 'function' ? enhancer.name : (enhancer as object).constructor.name;
  throw new EchoRegistrationError(
    `${place} is @OnQueueEvent, and ${name} would not act on it: guards, interceptors, pipes and filters act on jobs. Take it off`,
  );
}

function refuseController(type: Class, { metatype }: HostModule): void {
  if (!hasMarked(type, ownEventMethods)) return;
  throw new EchoRegistrationError(
    `${type.name} is a controller of ${metatype.name}; events are told to providers: move its @OnQueueEvent methods to one`,
  );
}

function spelt({ queue, events }: OnQueueEventMetadata): string {
  const names = events.map((event) => `'${event}'`).join(', ');
  const listed = events.length > 1 ? `[${names}]` : names;
  return queue === undefined ? `@OnQueueEvent(${listed})` : `@OnQueueEvent('${queue}', ${listed})`;
}
