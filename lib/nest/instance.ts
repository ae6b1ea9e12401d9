import { isDeepStrictEqual } from 'node:util';
import { Logger } from '@nestjs/common';
import type { Consumer } from '../engine/consumer.js';
import { type ConsumerOptions, consumerSettings } from '../engine/consumer-options.js';
import { EchoMq } from '../engine/echomq.js';
import type { Handler } from '../engine/handler.js';
import { type EchoError, EchoRegistrationError } from '../kernel/errors.js';
import { Bus } from './bus.js';
import { Consumers, type Launch } from './consumers.js';
import { DeclaredSchedules } from './declared-schedules.js';
import type { FoundProcessor } from './discovery.js';
import { EventListeners } from './event-listeners.js';
import type { EventMethod } from './event-methods.js';
import { logFailures } from './failure-log.js';
import { type EchoMqModuleOptions, type SplitOptions, splitOptions } from './module-options.js';
import { queueOptions, refuseTooFewSlots, refuseUnservedQueues } from './queue-options.js';
import { routerFor } from './router.js';
import { type QueueRoutes, routesOf } from './routes.js';

const LISTENING_MS = 5000;

/** A queue as this app serves it. */
export interface Service {
  readonly routes: QueueRoutes;
  readonly options: ConsumerOptions;
  /** Runs a job by its name. */
  readonly handler: Handler;
}

/** What one `EchoMqModule` stands for: an engine, and the consumers of the processors that belong to it. */
export class Instance {
  readonly consumers = new Consumers();
  readonly echo: EchoMq;
  readonly bus: Bus;
  readonly logger: Logger;
  private readonly options: SplitOptions;
  private readonly schedules: DeclaredSchedules;
  private readonly listeners: EventListeners;
  private planned: ReadonlyMap<string, Service> = new Map();

  /** @throws EchoConfigError for options that make no sense */
  constructor(
    readonly name: string | undefined,
    given: EchoMqModuleOptions,
  ) {
    this.logger = new Logger(name === undefined ? 'EchoMq' : `EchoMq ${name}`);
    this.options = splitOptions(given);
    const { engine } = this.options;
    this.echo = EchoMq.create({
      ...engine,
      onError: engine.onError ?? ((error) => this.tell(error)),
      onReconnected: engine.onReconnected ?? ((awayMs) => this.tellBack(awayMs)),
    });
    this.bus = new Bus(this.echo.bus);
    this.listeners = new EventListeners(this.echo.bus, this.logger);
    this.schedules = new DeclaredSchedules(this.echo.schedules, this.logger, this.options.pruneSchedules);
  }

  /** What its processors serve, by queue, also where this process only enqueues. */
  get services(): ReadonlyMap<string, Service> {
    return this.planned;
  }

  /** Wires its processors and listeners; again when more have come. @throws EchoConfigError, EchoRegistrationError */
  plan(processors: readonly FoundProcessor[], methods: readonly EventMethod[]): void {
    this.listeners.plan(methods);
    const { consume, queues, defaults } = this.options;
    const tables = routesOf(processors);
    consumerSettings(defaults, 'defaults');
    for (const [queue, options] of Object.entries(queues)) consumerSettings(options, `queues.${queue}`);
    const services = new Map(tables.map((routes) => [routes.queue, this.serviceOf(routes)]));
    if (consume) refuseUnservedQueues(queues, tables);
    this.planned = services;
    for (const { queue, lane } of tables) if (lane !== undefined) this.echo.lanes.assign(queue, lane);
    const launches = [...services.keys()].map((queue): [string, Launch] => [queue, () => this.launch(queue)]);
    this.consumers.plan(consume ? new Map(launches) : undefined);
  }

  /** Before jobs run: what happens to the first of them is told too. Of a server that is away nothing is expected. */
  listen(): Promise<void> | undefined {
    const { onBoot } = this.options.engine;
    return this.listeners.start() && onBoot !== 'wait' ? this.echo.bus.readyWithin(LISTENING_MS) : undefined;
  }

  /** From now on jobs run. */
  start(): void {
    const { consume, autoStart } = this.options;
    this.listeners.start();
    this.consumers.open(autoStart);
    if (consume && this.planned.size === 0) this.logger.log('No @Processor found: this process only enqueues');
  }

  /** Declares what its handlers want to have scheduled. @throws EchoArgumentError for data that does not fit */
  schedule(): Promise<void> | undefined {
    const { consume, engine } = this.options;
    if (!consume) return undefined;
    const declared = this.schedules.declare([...this.planned.values()].map(({ routes }) => routes));
    if (engine.onBoot !== 'wait') return declared;
    declared.catch((error) => this.tell(error)); // the server may be away
    return undefined;
  }

  /** A module was loaded late. */
  more(): void {
    this.listeners.start();
    this.consumers.more();
    this.schedule()?.catch((error) => this.tell(error));
  }

  /** Consumers first, also those of `EchoMq.consume`: what becomes of their last jobs is still told. */
  async drain(): Promise<void> {
    await Promise.all([this.consumers.drain(), this.echo.drain()]);
    this.bus.close();
    await this.listeners.stop();
  }

  private serviceOf(routes: QueueRoutes): Service {
    const { queue } = routes;
    const { queues, defaults } = this.options;
    const options = queueOptions(routes, Object.hasOwn(queues, queue) ? queues[queue] : undefined, defaults);
    refuseTooFewSlots(routes, options);
    const before = this.planned.get(queue);
    if (before !== undefined && !isDeepStrictEqual(before.options, options)) {
      const classes = routes.processors.map(({ type }) => type.name).join(', ');
      throw new EchoRegistrationError(
        `queue '${queue}' runs already: a processor that is loaded late cannot change its options (${classes})`,
      );
    }
    return { routes, options, handler: routerFor(routes, this.logger) };
  }

  private launch(queue: string): Consumer {
    const { routes, options } = this.planned.get(queue)!;
    // Looked up for each job: a module that is loaded late may add handlers.
    const consumer = this.echo.consume(queue, options, (job) => this.planned.get(queue)!.handler(job));
    logFailures(consumer, this.logger);
    const names = [...routes.byName.keys(), ...(routes.otherwise ? ['every other name'] : [])].join(', ');
    this.logger.log(`Serving queue '${queue}', ${consumer.settings.concurrency} at a time: ${names}`);
    return consumer;
  }

  private tell(error: EchoError): void {
    this.logger.error(`${error.code}: ${error.message}`);
  }

  private tellBack(awayMs: number): void {
    const away = awayMs < 1000 ? `${Math.round(awayMs)} ms` : `${Math.round(awayMs / 1000)} s`;
    this.logger.log(`the server is reached again after ${away}`);
  }
}
