import type { ScheduleDeclaration } from '../engine/schedule-calls.js';
import { validating } from '../engine/validation.js';
import { EchoConfigError, EchoRegistrationError } from '../kernel/errors.js';
import { assertQueueName } from '../kernel/keyspace.js';
import type { LaneBy } from '../kernel/lane.js';
import type { Queue } from '../kernel/queue.js';
import { definitionOf } from './definitions.js';
import type { FoundProcessor } from './discovery.js';
import { type BoundHandler, batchHandlerOf, handlerOf } from './handler-call.js';
import type { Class } from './handler-methods.js';
import type { OnJobMetadata } from './on-job.js';
import { lanesOf } from './queue-lanes.js';
import { schedulesOf } from './queue-schedules.js';

/** Who runs what of one queue. */
export interface QueueRoutes {
  readonly queue: string;
  /** What the routes below validate by; undefined when only the name is known. */
  readonly definition: Queue | undefined;
  readonly byName: ReadonlyMap<string, BoundHandler>;
  /** Runs every name that stands in no route. */
  readonly otherwise: BoundHandler | undefined;
  readonly processors: readonly FoundProcessor[];
  /** Jobs that land by themselves. */
  readonly schedules: readonly ScheduleDeclaration[];
  /** Chooses the lanes of jobs that are enqueued without one. */
  readonly lane: LaneBy | undefined;
}

interface Route {
  readonly place: string;
  readonly type: Class;
  readonly method: string | symbol;
  readonly handler: BoundHandler;
}

/** One table per queue. @throws EchoRegistrationError naming both places that want the same jobs */
export function routesOf(processors: readonly FoundProcessor[]): QueueRoutes[] {
  const queues = new Map<string, FoundProcessor[]>();
  for (const processor of processors) {
    checkQueue(processor);
    const sharing = queues.get(processor.queue) ?? [];
    // A module that is imported twice is built twice on Nest 11 and 12: its processor is still one.
    if (!sharing.some(({ type }) => type === processor.type)) sharing.push(processor);
    queues.set(processor.queue, sharing);
  }
  return [...queues].map(([queue, sharing]) => tableOf(queue, sharing));
}

function tableOf(queue: string, processors: FoundProcessor[]): QueueRoutes {
  const routes = new Map<string | undefined, Route>();
  for (const processor of processors) {
    for (const handler of processor.handlers) {
      const { name } = handler;
      const route = routeTo(processor, handler);
      const taken = routes.get(name);
      if (taken !== undefined) throw twice(queue, name, taken, route);
      routes.set(name, route);
    }
  }
  // Each route by itself, not all of the consumer: what nobody here handles must be put back, not judged.
  const definition = definitionOf(queue, processors);
  const byName = new Map<string, BoundHandler>();
  for (const [name, { handler }] of routes) if (name !== undefined) byName.set(name, validating(definition, handler));
  const otherwise = routes.get(undefined)?.handler;
  const schedules = schedulesOf(queue, processors);
  return {
    queue,
    definition,
    byName,
    otherwise: otherwise && validating(definition, otherwise),
    processors,
    schedules,
    lane: lanesOf(queue, definition, processors),
  };
}

function routeTo(processor: FoundProcessor, { method, batch }: OnJobMetadata): Route {
  const { type, module } = processor;
  const place = `${type.name}.${String(method)} in ${module}`;
  const handler = batch === undefined ? handlerOf(processor, method) : batchHandlerOf(processor, method, batch);
  return { place, type, method, handler };
}

function twice(queue: string, name: string | undefined, taken: Route, route: Route): EchoRegistrationError {
  const what = name === undefined ? 'every other job' : `'${name}'`;
  return new EchoRegistrationError(
    `queue '${queue}': ${what} is handled by ${taken.place} and by ${route.place}. A job runs once: remove one of them`,
  );
}

function checkQueue({ queue, type, module }: FoundProcessor): void {
  try {
    assertQueueName(queue);
  } catch (error) {
    // In other libraries the name may be one of the options.
    const isOptions = typeof queue === 'object' && queue !== null;
    const hint = isOptions ? ". The queue's name comes first: @Processor('mail', options)" : '';
    throw new EchoConfigError(`@Processor on ${type.name} in ${module}: ${(error as Error).message}${hint}`, error);
  }
}
