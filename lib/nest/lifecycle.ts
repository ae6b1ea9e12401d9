import { isDeepStrictEqual } from 'node:util';
import type { ModulesContainer } from '@nestjs/core';
import { EchoConfigError, EchoRegistrationError } from '../kernel/errors.js';
import { findProcessors } from './discovery.js';
import { findEventMethods } from './event-methods.js';
import { Instance } from './instance.js';
import type { EchoMqModuleOptions } from './module-options.js';
import { overridden, testOverridesOf } from './test-overrides.js';

const EDGES = 2;

interface Known {
  readonly instance: Instance;
  readonly given: EchoMqModuleOptions;
}

/**
 * An app's engines from their options to their end:
 *
 *     use -> open -> start -> drain -> close
 *
 * `use` when the options of one are known, `open` before any other module's init hook, `start` after every other module's
 * bootstrap hook, `drain` before any resource that a handler may use is closed, `close` after every other module's last
 * hook, so that those may still enqueue. Every step happens once; none goes back.
 */
export class Lifecycle {
  private readonly known = new Map<string | undefined, Known>();
  private readonly edges = new Set<object>();
  private readonly farewells: (() => Promise<void>)[] = [];
  private opened = false;
  private started = false;
  private draining: Promise<void> | undefined;
  private closing: Promise<void> | undefined;

  constructor(private readonly modules: ModulesContainer) {}

  /**
   * The app's only instance of a name, however often its module is imported: a dynamic module that is imported twice is
   * built twice on Nest 11 and 12. @throws EchoConfigError for options that make no sense, or differ from those of another
   * import
   */
  use(name: string | undefined, given: EchoMqModuleOptions): Instance {
    const known = this.known.get(name);
    if (known !== undefined) {
      if (isDeepStrictEqual(known.given, given)) return known.instance;
      const which = name === undefined ? 'EchoMqModule' : `EchoMqModule '${name}'`;
      throw new EchoConfigError(
        `${which} is imported twice with different options: import it once, it is global, or give the other a name`,
      );
    }
    const overrides = testOverridesOf(this.modules);
    const instance = new Instance(name, overrides ? overridden(given, overrides, name) : given);
    this.known.set(name, { instance, given });
    return instance;
  }

  instanceOf(name: string | undefined): Instance {
    return this.known.get(name)!.instance;
  }

  get instances(): readonly Instance[] {
    return [...this.known.values()].map(({ instance }) => instance);
  }

  /** Finds the processors and connects. Wiring that is wrong is told before a server is needed. */
  async open(): Promise<void> {
    if (this.draining !== undefined) return;
    this.opened = true;
    this.plan();
    try {
      await Promise.all(this.instances.map(({ echo }) => echo.open()));
      for (const { bus } of this.instances) bus.open();
    } catch (error) {
      await this.close(); // Nest calls no shutdown hook when another hook fails
      throw error;
    }
  }

  /** From now on jobs run. */
  start(): Promise<void> | undefined {
    if (this.draining !== undefined) return undefined; // closed while it was starting
    const listening = this.instances.map((instance) => instance.listen());
    if (listening.every((ready) => ready === undefined)) return this.run();
    return Promise.all(listening).then(() => this.run());
  }

  private run(): Promise<void> | undefined {
    if (this.draining !== undefined) return undefined;
    this.started = true;
    const fail = async (error: unknown): Promise<never> => {
      await this.close();
      throw error;
    };
    try {
      for (const instance of this.instances) instance.start();
    } catch (error) {
      return fail(error);
    }
    return Promise.all(this.instances.map((instance) => instance.schedule())).then(() => undefined, fail);
  }

  /** A module has been loaded late. @throws EchoRegistrationError, EchoConfigError when what it brings cannot be served */
  rescan(): void {
    if (!this.opened || this.draining !== undefined) return; // before that, open() finds it
    this.plan();
    if (!this.started) return;
    for (const instance of this.instances) instance.more();
  }

  /** No more claims; resolves when running handlers have ended or been given back. Enqueueing still works. */
  drain(): Promise<void> {
    this.draining ??= Promise.all(this.instances.map((instance) => instance.drain())).then(() => undefined);
    return this.draining;
  }

  /** One of the two modules that bracket all others is through its last hook: behind both of them nobody enqueues. */
  passed(edge: object): Promise<void> | undefined {
    this.edges.add(edge);
    return this.edges.size < EDGES ? undefined : this.close();
  }

  /** Something to be done when all consumers have drained and the connections are still open. */
  beforeClose(farewell: () => Promise<void>): void {
    this.farewells.push(farewell);
  }

  private close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    await this.drain();
    try {
      for (const farewell of this.farewells) await farewell();
    } finally {
      await Promise.all(this.instances.map(({ echo }) => echo.close()));
    }
  }

  private plan(): void {
    const processors = findProcessors(this.modules);
    for (const { instanceName, type, module, queue } of processors) {
      const which = instanceName === undefined ? '' : `, { instance: '${instanceName}' }`;
      this.refuseUnknown(instanceName, `${type.name} in ${module} is @Processor('${queue}'${which})`);
    }
    const methods = findEventMethods(this.modules);
    for (const { instanceName, place, queue, events } of methods) {
      this.refuseUnknown(instanceName, `${place} is @OnQueueEvent('${queue}', '${events[0]}')`);
    }
    for (const [name, { instance }] of this.known) {
      const own = <Of extends { instanceName?: string | undefined }>(all: readonly Of[]) =>
        all.filter(({ instanceName }) => instanceName === name);
      instance.plan(own(processors), own(methods));
    }
  }

  private refuseUnknown(instanceName: string | undefined, what: string): void {
    if (this.known.has(instanceName)) return;
    const wanted = instanceName === undefined ? 'without a name' : `with name: '${instanceName}'`;
    throw new EchoRegistrationError(`${what}, but no EchoMqModule.forRoot ${wanted} is imported`);
  }
}
