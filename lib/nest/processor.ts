import 'reflect-metadata';
import type { ConsumerOptions } from '../engine/consumer-options.js';
import { show } from '../kernel/arguments.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { LaneBy } from '../kernel/lane.js';
import { isQueue, type Queue } from '../kernel/queue.js';
import { IMPORT_CIRCLE } from './import-circle.js';
import { PROCESSOR_METADATA } from './tokens.js';

export interface ProcessorOptions extends ConsumerOptions {
  /** Which `EchoMqModule` serves it, by the `name` of its forRoot. Default: the one without a name. */
  instance?: string | undefined;
  /**
   * Chooses the lane of jobs that this app enqueues to the queue without one, also where it does not consume:
   * `(job) => job.data.tenant` answers a name, or `[group, lane]`, or nothing. Other apps do not know of it: a queue
   * that several enqueue to says it in `defineQueue`.
   */
  lane?: LaneBy | undefined;
}

export interface ProcessorMetadata {
  readonly queue: string;
  /** Where the queue was given as `defineQueue` made it. */
  readonly definition?: Queue | undefined;
  /** The `EchoMqModule.forRoot({ name })` that serves it; undefined is the one without a name. */
  readonly instanceName?: string | undefined;
  /** Chooses the lanes of the queue's jobs. */
  readonly lane?: LaneBy | undefined;
  readonly options: ConsumerOptions;
}

/**
 * The methods of this class that carry `@OnJob` handle jobs of `queue`, which is a name or what `defineQueue` made of it. List
 * the class in a module's `providers`.
 *
 * Of the default scope there is one instance. With `Scope.REQUEST`, by itself or through what it injects, one is made for every
 * job, at 10 to 60 us each; `@InjectJob()` injects that job, also deep below. `Scope.TRANSIENT` fails the boot.
 *
 * All processors of a queue, in whatever modules, are served by one consumer: options may stand on any of them, and two
 * that contradict each other fail the boot; so do two definitions of one queue. `EchoMqModule.forRoot({ queues })` is stronger
 * than what stands here.
 *
 * Where the queue has schemas, handlers get data as these put it out, and a job whose data does not fit is buried before a
 * handler is called.
 *
 * A job whose name none of them handles is put back for 5 s, without being charged an attempt, until some process handles
 * it; the log says so once per name.
 */
export function Processor(queue: string | Queue, options: ProcessorOptions = {}): ClassDecorator {
  return (target) => {
    if (Reflect.hasOwnMetadata(PROCESSOR_METADATA, target)) {
      throw new EchoRegistrationError(`${target.name} has two @Processor decorators; a class serves one queue`);
    }
    if (queue === undefined) {
      throw new EchoRegistrationError(`@Processor on ${target.name} got undefined for its queue: ${IMPORT_CIRCLE}`);
    }
    Reflect.defineMetadata(PROCESSOR_METADATA, metadataOf(target.name, queue, options), target);
  };
}

function metadataOf(type: string, queue: string | Queue, given: ProcessorOptions): ProcessorMetadata {
  const named = isQueue(queue) ? { queue: queue.name, definition: queue } : { queue };
  if (typeof given !== 'object' || given === null) return { ...named, options: given }; // refused at boot, by name
  const { instance, lane, ...options } = given;
  if (instance !== undefined && (typeof instance !== 'string' || instance === '')) {
    throw new EchoRegistrationError(
      `@Processor on ${type}: 'instance' is the name of an EchoMqModule.forRoot, got ${show(instance)}`,
    );
  }
  if (lane !== undefined && typeof lane !== 'function') {
    throw new EchoRegistrationError(
      `@Processor on ${type}: 'lane' is a function that answers a job's lane, got ${show(lane)}`,
    );
  }
  return { ...named, instanceName: instance, lane, options };
}

/** What stands on this very class. A subclass is no processor until it says so itself. */
export function processorMetadata(target: object): ProcessorMetadata | undefined {
  return Reflect.getOwnMetadata(PROCESSOR_METADATA, target) as ProcessorMetadata | undefined;
}
