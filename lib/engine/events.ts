import { EventEmitter } from 'node:events';

/** An emitter whose events are typed, and whose 'error' does not end the process when nobody listens. */
export class Events<Map extends { [K in keyof Map]: unknown[] }> {
  private readonly emitter = new EventEmitter();

  on<K extends keyof Map & string>(event: K, listener: (...args: Map[K]) => void): this {
    this.emitter.on(event, listener as (...args: unknown[]) => void);
    return this;
  }

  once<K extends keyof Map & string>(event: K, listener: (...args: Map[K]) => void): this {
    this.emitter.once(event, listener as (...args: unknown[]) => void);
    return this;
  }

  off<K extends keyof Map & string>(event: K, listener: (...args: Map[K]) => void): this {
    this.emitter.off(event, listener as (...args: unknown[]) => void);
    return this;
  }

  protected heard<K extends keyof Map & string>(event: K): boolean {
    return this.emitter.listenerCount(event) > 0;
  }

  /** A listener that throws must not break the engine: its error surfaces as an uncaught exception of its own. */
  protected emit<K extends keyof Map & string>(event: K, ...args: Map[K]): void {
    if (!this.heard(event)) return;
    try {
      this.emitter.emit(event, ...args);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
