import { EchoRegistrationError } from '../kernel/errors.js';
import { type OnJobMetadata, ownHandlers } from './on-job.js';

// biome-ignore lint/complexity/noBannedTypes: any class, whatever its constructor takes
export type Class = Function;

/**
 * The handlers of a class and of those it extends. A method that overrides a handler must say itself what it handles: left
 * out silently, its jobs would find nobody; taken over silently, a method would run that nobody marked.
 * @throws EchoRegistrationError naming both methods
 */
export function handlerMethods(target: Class): OnJobMetadata[] {
  const found: OnJobMetadata[] = [];
  const definedBy = new Map<string | symbol, Class>();
  for (let type = target; isClass(type); type = Object.getPrototypeOf(type)) {
    for (const handler of ownHandlers(type)) {
      const by = definedBy.get(handler.method);
      if (by === undefined) found.push(handler);
      else if (!ownHandlers(by).some(({ method }) => method === handler.method)) throw unmarked(by, type, handler);
    }
    for (const method of Reflect.ownKeys(type.prototype)) {
      if (!definedBy.has(method)) definedBy.set(method, type);
    }
  }
  return found;
}

/** Does this class, or one it extends, have a handler? */
export function hasHandlers(target: Class): boolean {
  for (let type = target; isClass(type); type = Object.getPrototypeOf(type)) {
    if (ownHandlers(type).length > 0) return true;
  }
  return false;
}

function isClass(value: unknown): value is Class {
  return typeof value === 'function' && value !== Function.prototype && typeof value.prototype === 'object';
}

function unmarked(by: Class, base: Class, { name, method }: OnJobMetadata): EchoRegistrationError {
  const mark = name === undefined ? '@OnJob()' : `@OnJob('${name}')`;
  return new EchoRegistrationError(
    `${by.name}.${String(method)} overrides ${base.name}.${String(method)}, which is ${mark}, without a decorator of its own: ` +
      `repeat ${mark} on it, or give it another name`,
  );
}
