import 'reflect-metadata';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { Class } from './handler-methods.js';
import type { OnJobMetadata } from './on-job.js';

/**
 * What Nest users may expect of a handler and this version does not do yet. It is refused at boot: a guard that silently
 * does not guard would be worse than none.
 */

/** Nest's metadata keys, which it does not export by a public name. */
const ENHANCERS = {
  __guards__: 'guards',
  __pipes__: 'pipes',
  __interceptors__: 'interceptors',
  __exceptionFilters__: 'exception filters',
} as const;
const PARAMETERS = '__routeArguments__';

/** @throws EchoRegistrationError naming the class, and the method where it has one */
export function refuseEnhancers(type: Class, handlers: readonly OnJobMetadata[]): void {
  for (const [key, what] of Object.entries(ENHANCERS)) {
    if (Reflect.hasMetadata(key, type)) throw notYet(type.name, what);
    for (const { method } of handlers) {
      if (Reflect.hasMetadata(key, type.prototype[method])) throw notYet(`${type.name}.${String(method)}`, what);
    }
  }
  for (const { method } of handlers) {
    if (Reflect.hasMetadata(PARAMETERS, type, method)) {
      throw notYet(`${type.name}.${String(method)}`, 'parameter decorators');
    }
  }
}

/** What of a provider's wrapper tells its scope. */
interface Scoped {
  readonly isTransient: boolean;
  isDependencyTreeStatic(): boolean;
}

/** @throws EchoRegistrationError naming the class */
export function refuseScopes(type: Class, module: string, provider: Scoped): void {
  const scope = provider.isTransient ? 'transient' : provider.isDependencyTreeStatic() ? undefined : 'request-scoped';
  if (scope === undefined) return;
  throw new EchoRegistrationError(
    `${type.name} in ${module} is ${scope}, itself or through what it injects, and processors cannot be that yet: ` +
      'give it, and what it injects, the default scope',
  );
}

function notYet(place: string, what: string): EchoRegistrationError {
  return new EchoRegistrationError(
    `${place} has ${what}, and those do not apply to job handlers yet: remove them, or do their work in the handler`,
  );
}
