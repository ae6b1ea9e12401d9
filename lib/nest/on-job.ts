import 'reflect-metadata';
import { EchoRegistrationError } from '../kernel/errors.js';
import { ON_JOB_METADATA } from './tokens.js';

export interface OnJobMetadata {
  /** Undefined: every name that no other method claims. */
  readonly name: string | undefined;
  readonly method: string | symbol;
}

/**
 * This method runs the jobs called `name`; without a name, those that no other method of the queue claims. It gets the
 * {@link Job}. What it returns is the job's result; a throw fails the attempt, `throw new Discard()` buries the job,
 * `throw new Snooze(ms)` puts it back.
 *
 * May stand more than once on a method, once per name.
 */
export function OnJob(name?: string): MethodDecorator {
  return (target, method, descriptor: PropertyDescriptor | undefined) => {
    const place = placeOf(target, method);
    if (typeof target === 'function')
      throw new EchoRegistrationError(`@OnJob on ${place}: a static method has no instance`);
    if (typeof descriptor?.value !== 'function') throw new EchoRegistrationError(`@OnJob on ${place}: it is no method`);
    if (name !== undefined && (typeof name !== 'string' || name === '')) {
      throw new EchoRegistrationError(
        `@OnJob on ${place}: a name is a string that is not empty; without one, write @OnJob()`,
      );
    }
    // On the class, not on the function: a decorator above this one may put another function in its place.
    const metadata: OnJobMetadata[] = [...ownHandlers(target.constructor), { name, method }];
    Reflect.defineMetadata(ON_JOB_METADATA, metadata, target.constructor);
  };
}

/** What stands on this very class, without what it inherits. */
export function ownHandlers(target: object): readonly OnJobMetadata[] {
  return (Reflect.getOwnMetadata(ON_JOB_METADATA, target) as OnJobMetadata[] | undefined) ?? [];
}

function placeOf(target: object, method: string | symbol): string {
  const name = typeof target === 'function' ? target.name : target.constructor.name;
  return `${name}.${String(method)}`;
}
