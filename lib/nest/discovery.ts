import { type ModulesContainer } from '@nestjs/core';
import { EchoRegistrationError } from '../kernel/errors.js';
import { type Class, handlerMethods, hasHandlers } from './handler-methods.js';
import type { OnJobMetadata } from './on-job.js';
import { type ProcessorMetadata, processorMetadata } from './processor.js';
import { refuseEnhancers, refuseScopes } from './refusals.js';

/** A processor in the container, with an instance to call. */
export interface FoundProcessor extends ProcessorMetadata {
  readonly type: Class;
  readonly instance: Record<string | symbol, unknown>;
  readonly handlers: readonly OnJobMetadata[];
  /** The module's name, for messages: class names need not be unique. */
  readonly module: string;
}

type Module = ModulesContainer extends Map<string, infer M> ? M : never;
type Wrapper = Module['providers'] extends Map<unknown, infer W> ? W : never;

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
      const processor = processorOf(wrapper, name);
      if (processor !== undefined) found.push(processor);
    }
    for (const { metatype } of module.controllers.values()) {
      if (typeof metatype === 'function') refuseController(metatype, name);
    }
  }
  return found;
}

function processorOf(wrapper: Wrapper, module: string): FoundProcessor | undefined {
  if (wrapper.isAlias) return undefined; // the provider it points to is found itself
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
  refuseScopes(type, module, wrapper);
  refuseEnhancers(type, handlers);
  return { ...metadata, type, module, handlers, instance: wrapper.instance as FoundProcessor['instance'] };
}

/** A factory's own class says nothing about what it made: its product does, or else its token. */
function classOf(wrapper: Wrapper): Class | undefined {
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
