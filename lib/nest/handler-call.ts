import { isObservable } from 'rxjs';
import { type BatchOptions, batched } from '../engine/batching.js';
import type { Job } from '../engine/job.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { FoundProcessor } from './discovery.js';
import { declaredOn, enhancersFor, isPlain } from './enhancers.js';
import type { Class } from './handler-methods.js';
import { inScopeOf } from './job-scope.js';
import { lastOf } from './observable-result.js';
import { callThrough } from './pipeline.js';

export type BoundHandler = (job: Job) => unknown;

/**
 * How a handler is called. Looked at once: one that has no enhancers, no decorated parameters and the default scope is
 * called as it is.
 * @throws EchoRegistrationError naming the method
 */
export function handlerOf(processor: FoundProcessor, method: string | symbol): BoundHandler {
  return processor.instance === undefined
    ? scopedHandler(processor, method)
    : staticHandler(processor, processor.instance, method);
}

/** A handler that gets jobs together is called as it is: what else may stand on one was refused. */
export function batchHandlerOf(processor: FoundProcessor, method: string | symbol, batch: BatchOptions): BoundHandler {
  const { instance } = processor;
  const handler = methodOf(processor, instance!, method);
  return batched(batch, async (jobs) => {
    const answer: unknown = await handler.call(instance, jobs);
    return isObservable(answer) ? lastOf(answer) : answer;
  });
}

function staticHandler(processor: FoundProcessor, instance: object, method: string | symbol): BoundHandler {
  const { type } = processor;
  const callee = { type, instance, method: methodOf(processor, instance, method) };
  const declared = declaredOn(type, method);
  if (isPlain(declared)) return callee.method.bind(instance);
  const enhancers = enhancersFor(processor, declared);
  if (!(enhancers instanceof Promise)) return (job) => callThrough(enhancers, callee, job);
  enhancers.catch(() => {}); // told to every job
  return async (job) => callThrough(await enhancers, callee, job);
}

function scopedHandler(processor: FoundProcessor, method: string | symbol): BoundHandler {
  const { type, host, wrapper } = processor;
  const declared = declaredOn(type, method);
  const plain = isPlain(declared);
  const inScope = inScopeOf(host, wrapper);
  return async (job) => {
    const { instance, context } = await inScope(job);
    const callee = { type, instance, method: methodOf(processor, instance, method) };
    if (plain) return callee.method.call(instance, job);
    return callThrough(enhancersFor(processor, declared, context), callee, job);
  };
}

function methodOf({ type, module }: FoundProcessor, instance: object, method: string | symbol): Class {
  const found = (instance as Record<string | symbol, unknown>)[method];
  if (typeof found === 'function') return found;
  throw new EchoRegistrationError(`${type.name}.${String(method)} in ${module} handles jobs but is no function`);
}
