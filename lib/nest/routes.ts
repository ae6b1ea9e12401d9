import type { Job } from '../engine/job.js';
import { EchoConfigError, EchoRegistrationError } from '../kernel/errors.js';
import { assertQueueName } from '../kernel/keyspace.js';
import type { FoundProcessor } from './discovery.js';
import type { Class } from './handler-methods.js';

export type BoundHandler = (job: Job) => unknown;

/** Who runs what of one queue. */
export interface QueueRoutes {
  readonly queue: string;
  readonly byName: ReadonlyMap<string, BoundHandler>;
  /** Runs every name that stands in no route. */
  readonly otherwise: BoundHandler | undefined;
  readonly processors: readonly FoundProcessor[];
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
    for (const { name, method } of processor.handlers) {
      const route = routeTo(processor, method);
      const taken = routes.get(name);
      if (taken !== undefined) throw twice(queue, name, taken, route);
      routes.set(name, route);
    }
  }
  const byName = new Map<string, BoundHandler>();
  for (const [name, { handler }] of routes) if (name !== undefined) byName.set(name, handler);
  return { queue, byName, otherwise: routes.get(undefined)?.handler, processors };
}

function routeTo({ type, instance, module }: FoundProcessor, method: string | symbol): Route {
  const place = `${type.name}.${String(method)} in ${module}`;
  const handler = instance[method];
  if (typeof handler !== 'function') throw new EchoRegistrationError(`${place} handles jobs but is no function`);
  return { place, type, method, handler: handler.bind(instance) as BoundHandler };
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
    throw new EchoConfigError(`@Processor on ${type.name} in ${module}: ${(error as Error).message}`, error);
  }
}
