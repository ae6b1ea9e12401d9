import { ContextIdFactory, type ModulesContainer } from '@nestjs/core';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { HostModule, ProviderWrapper } from './container.js';
import { type Class, handlerMethods, hasHandlers } from './handler-methods.js';
import { isScoped } from './job-scope.js';
import type { OnJobMetadata } from './on-job.js';
import { type ProcessorMetadata, processorMetadata } from './processor.js';
import { refuseWithoutEffect } from './refusals.js';

/** A processor in the container. */
export interface FoundProcessor extends ProcessorMetadata {
  readonly type: Class;
  /** Undefined: one is made for every job. */
  readonly instance: object | undefined;
  readonly handlers: readonly OnJobMetadata[];
  /** The module's name, for messages: class names need not be unique. */
  readonly module: string;
  readonly host: HostModule;
  readonly wrapper: ProviderWrapper;
}

/**
 * Every processor among the providers of every module: classes, and what factories and values provide. Nest's own
 * discovery by decorator misses the latter two on 10 and 11, so all providers are looked at.
 * @throws EchoRegistrationError for what cannot be served as it stands
 */
export function findProcessors(modules: ModulesContainer): FoundProcessor[] {
  const found: FoundProcessor[] = [];
  for (const module of modules.values()) {
    const name = module.metatype.name;
    for (const wrapper of module.providers.values()) {
      const processor = processorOf(wrapper, module);
      if (processor !== undefined) found.push(processor);
    }
    for (const { metatype } of module.controllers.values()) {
      if (typeof metatype === 'function') refuseController(metatype, name);
    }
  }
  return found;
}

function processorOf(wrapper: ProviderWrapper, host: HostModule): FoundProcessor | undefined {
  if (wrapper.isAlias) return undefined; // the provider it points to is found itself
  const module = host.metatype.name;
  const type = classOf(wrapper);
  if (type === undefined) return undefined;
  const metadata = processorMetadata(type);
  if (metadata === undefined) {
    if (hasHandlers(type)) throw unprocessed(type, module);
    return undefined;
  }
  const handlers = handlerMethods(type);
  if (handlers.length === 0) {
    throw new EchoRegistrationError(
      `${type.name} in ${module} is @Processor('${metadata.queue}') but handles nothing: put @OnJob('name') on a method, or @OnJob() for every name`,
    );
  }
  if (isBeingMade(wrapper)) return undefined;
  const instance = isScoped(wrapper) ? undefined : (wrapper.instance as object);
  const processor = { ...metadata, type, module, handlers, host, wrapper, instance };
  refuseWithoutEffect(processor);
  return processor;
}

/**
 * Another module is being loaded late: so far there is an empty object in the instance's place. When it is loaded, all is
 * looked at again. In a context that nobody has used, a provider of the default scope is the app's own.
 */
export function isBeingMade(wrapper: ProviderWrapper): boolean {
  if (isScoped(wrapper) || wrapper.isTransient) return false;
  return wrapper.getInstanceByContextId(ContextIdFactory.create()).isResolved !== true;
}

/** A factory's own class says nothing about what it made: its product does, or else its token. */
export function classOf(wrapper: ProviderWrapper): Class | undefined {
  const { metatype, inject, instance, token } = wrapper;
  if (typeof metatype === 'function' && (inject === undefined || inject === null)) return metatype;
  if (typeof instance === 'object' && instance !== null) {
    const made = (Object.getPrototypeOf(instance) as { constructor?: unknown } | null)?.constructor;
    return typeof made === 'function' ? made : undefined;
  }
  return typeof token === 'function' ? token : undefined;
}

function unprocessed(type: Class, module: string): EchoRegistrationError {
  const base = Object.getPrototypeOf(type) as Class;
  const inherits = processorMetadata(base) !== undefined;
  const why = inherits ? `extends the processor ${base.name}, but a decorator is not inherited` : 'has @OnJob methods';
  return new EchoRegistrationError(`${type.name} in ${module} ${why}: put @Processor('queue') on it`);
}

function refuseController(type: Class, module: string): void {
  if (processorMetadata(type) === undefined && !hasHandlers(type)) return;
  throw new EchoRegistrationError(
    `${type.name} is a controller of ${module}; jobs are handled by providers: move its handlers to one`,
  );
}
