import { EventEmitter } from 'node:events';
import { show } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { inOwnContext } from './own-context.js';

/** An emitter whose events are typed and known, and whose 'error' does not end the process when nobody listens. */
export abstract class Events<Map extends { [K in keyof Map]: unknown[] }> {
  private readonly emitter = new EventEmitter();

  protected constructor(private readonly known: readonly (keyof Map & string)[]) {}

  /** @throws EchoArgumentError for an event that does not exist */
  on<K extends keyof Map & string>(event: K, listener: (...args: Map[K]) => void): this {
    this.emitter.on(this.checked(event), listener as (...args: unknown[]) => void);
    return this;
  }

  /** @throws EchoArgumentError for an event that does not exist */
  once<K extends keyof Map & string>(event: K, listener: (...args: Map[K]) => void): this {
    this.emitter.once(this.checked(event), listener as (...args: unknown[]) => void);
    return this;
  }

  off<K extends keyof Map & string>(event: K, listener: (...args: Map[K]) => void): this {
    this.emitter.off(event, listener as (...args: unknown[]) => void);
    return this;
  }

  /** A listener has thrown; the others have been told all the same. */
  protected abstract listenerFailed(event: string, thrown: unknown): void;

  protected heard<K extends keyof Map & string>(event: K): boolean {
    return this.emitter.listenerCount(event) > 0;
  }

  /** A listener that throws must break neither the engine nor the other listeners. */
  protected emit<K extends keyof Map & string>(event: K, ...args: Map[K]): void {
    if (!this.heard(event)) return;
    for (const listener of this.emitter.rawListeners(event)) {
      try {
        inOwnContext(() => listener.apply(this.emitter, args));
      } catch (thrown) {
        this.listenerFailed(event, thrown);
      }
    }
  }

  private checked(event: string): string {
    if (this.known.includes(event as keyof Map & string)) return event;
    throw new EchoArgumentError(`there is no event ${show(event)}. Known are ${this.known.join(', ')}`);
  }
}
