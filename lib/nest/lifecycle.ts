import { isDeepStrictEqual } from 'node:util';
import { Logger } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { type ConsumerOptions, consumerSettings } from '../engine/consumer-options.js';
import { EchoMq } from '../engine/echomq.js';
import { EchoConfigError, type EchoError } from '../kernel/errors.js';
import { Consumers } from './consumers.js';
import { findProcessors } from './discovery.js';
import { logFailures } from './failure-log.js';
import { type EchoMqModuleOptions, type SplitOptions, splitOptions } from './module-options.js';
import { queueOptions, refuseUnservedQueues } from './queue-options.js';
import { routerFor } from './router.js';
import { type QueueRoutes, routesOf } from './routes.js';

const EDGES = 2;

interface Service {
  readonly routes: QueueRoutes;
  readonly options: ConsumerOptions;
}

/**
 * An app's engine from its options to its end:
 *
 *     use -> open -> start -> drain -> close
 *
 * `use` when the options are known, `open` before any other module's init hook, `start` after every other module's
 * bootstrap hook, `drain` before any resource that a handler may use is closed, `close` after every other module's last
 * hook, so that those may still enqueue. Every step happens once; none goes back.
 */
export class Lifecycle {
  readonly consumers = new Consumers();
  private readonly logger = new Logger('EchoMq');
  private given: EchoMqModuleOptions | undefined;
  private options: SplitOptions | undefined;
  private echo: EchoMq | undefined;
  private services: Service[] = [];
  private readonly edges = new Set<object>();
  private draining: Promise<void> | undefined;
  private closing: Promise<void> | undefined;

  constructor(private readonly modules: ModulesContainer) {}

  /**
   * The app's only engine, however often the module is imported: a dynamic module that is imported twice is built twice on
   * Nest 11 and 12. @throws EchoConfigError for options that make no sense, or differ from those of another import
   */
  use(given: EchoMqModuleOptions): EchoMq {
    if (this.echo !== undefined) {
      if (isDeepStrictEqual(this.given, given)) return this.echo;
      throw new EchoConfigError('EchoMqModule is imported twice with different options: import it once, it is global');
    }
    this.options = splitOptions(given);
    const { engine } = this.options;
    this.echo = EchoMq.create({
      ...engine,
      onError: engine.onError ?? ((error) => this.tell(error)),
      onReconnected: engine.onReconnected ?? ((awayMs) => this.tellBack(awayMs)),
    });
    this.given = given;
    return this.echo;
  }

  /** Finds the processors and connects. Wiring that is wrong is told before a server is needed. */
  async open(): Promise<void> {
    if (this.draining !== undefined || this.echo === undefined) return;
    this.services = this.plan();
    await this.echo.open();
  }

  /** From now on jobs run. */
  start(): Promise<void> | undefined {
    if (this.draining !== undefined) return undefined; // closed while it was starting
    try {
      for (const service of this.services) this.serve(service);
      if (this.options?.consume && this.services.length === 0) {
        this.logger.log('No @Processor found: this process only enqueues');
      }
      return undefined;
    } catch (error) {
      // Nest calls no shutdown hook when a bootstrap hook fails.
      return this.close().then(() => {
        throw error;
      });
    }
  }

  /** No more claims; resolves when running handlers have ended or been given back. Enqueueing still works. */
  drain(): Promise<void> {
    this.draining ??= this.consumers.drain();
    return this.draining;
  }

  /** One of the two modules that bracket all others is through its last hook: behind both of them nobody enqueues. */
  passed(edge: object): Promise<void> | undefined {
    this.edges.add(edge);
    return this.edges.size < EDGES ? undefined : this.close();
  }

  private close(): Promise<void> {
    this.closing ??= this.drain().then(() => this.echo?.close());
    return this.closing;
  }

  private plan(): Service[] {
    const { consume, queues } = this.options!;
    const tables = routesOf(findProcessors(this.modules));
    for (const [queue, options] of Object.entries(queues)) consumerSettings(options, `queues.${queue}`);
    const services = tables.map((routes) => {
      const stronger = Object.hasOwn(queues, routes.queue) ? queues[routes.queue] : undefined;
      return { routes, options: queueOptions(routes, stronger) };
    });
    if (!consume) {
      this.consumers.plan(undefined);
      return [];
    }
    refuseUnservedQueues(queues, tables);
    this.consumers.plan(tables.map(({ queue }) => queue));
    return services;
  }

  private serve({ routes, options }: Service): void {
    const consumer = this.echo!.consume(routes.queue, options, routerFor(routes, this.logger));
    logFailures(consumer, this.logger);
    this.consumers.started(consumer);
    const names = [...routes.byName.keys(), ...(routes.otherwise ? ['every other name'] : [])].join(', ');
    this.logger.log(`Serving queue '${routes.queue}', ${consumer.settings.concurrency} at a time: ${names}`);
  }

  private tell(error: EchoError): void {
    this.logger.error(`${error.code}: ${error.message}`);
  }

  private tellBack(awayMs: number): void {
    const away = awayMs < 1000 ? `${Math.round(awayMs)} ms` : `${Math.round(awayMs / 1000)} s`;
    this.logger.log(`the server is reached again after ${away}`);
  }
}
