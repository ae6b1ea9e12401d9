import { EchoRegistrationError } from '../kernel/errors.js';
import { type OnJobMetadata, ownHandlers } from './on-job.js';

// biome-ignore lint/complexity/noBannedTypes: any class, whatever its constructor takes
export type Class = Function;

interface Marked {
  readonly method: string | symbol;
}

/**
 * The handlers of a class and of those it extends. A method that overrides a handler must say itself what it handles: left
 * out silently, its jobs would find nobody; taken over silently, a method would run that nobody marked.
 * @throws EchoRegistrationError naming both methods
 */
export function handlerMethods(target: Class): OnJobMetadata[] {
  return markedMethods(target, ownHandlers, ({ name }) => (name === undefined ? '@OnJob()' : `@OnJob('${name}')`));
}

/** Does this class, or one it extends, have a handler? */
export function hasHandlers(target: Class): boolean {
  return hasMarked(target, ownHandlers);
}

/** The same for methods with marks of any kind: `own` answers those of one class, `spelt` how a mark is written. */
export function markedMethods<Mark extends Marked>(
  target: Class,
  own: (type: Class) => readonly Mark[],
  spelt: (mark: Mark) => string,
): Mark[] {
  const found: Mark[] = [];
  const definedBy = new Map<string | symbol, Class>();
  for (let type = target; isClass(type); type = Object.getPrototypeOf(type)) {
    for (const mark of own(type)) {
      const by = definedBy.get(mark.method);
      if (by === undefined) found.push(mark);
      else if (!own(by).some(({ method }) => method === mark.method))
        throw unmarked(by, type, mark.method, spelt(mark));
    }
    for (const method of Reflect.ownKeys(type.prototype)) {
      if (!definedBy.has(method)) definedBy.set(method, type);
    }
  }
  return found;
}

export function hasMarked(target: Class, own: (type: Class) => readonly Marked[]): boolean {
  for (let type = target; isClass(type); type = Object.getPrototypeOf(type)) {
    if (own(type).length > 0) return true;
  }
  return false;
}

function isClass(value: unknown): value is Class {
  return typeof value === 'function' && value !== Function.prototype && typeof value.prototype === 'object';
}

function unmarked(by: Class, base: Class, method: string | symbol, mark: string): EchoRegistrationError {
  return new EchoRegistrationError(
    `${by.name}.${String(method)} overrides ${base.name}.${String(method)}, which is ${mark}, without a decorator of its own: ` +
      `repeat ${mark} on it, or give it another name`,
  );
}
