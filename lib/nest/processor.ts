import 'reflect-metadata';
import type { ConsumerOptions } from '../engine/consumer-options.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import { PROCESSOR_METADATA } from './tokens.js';

export interface ProcessorMetadata {
  readonly queue: string;
  /** The `EchoMqModule.forRoot({ name })` that serves it; undefined is the one without a name. */
  readonly instanceName?: string | undefined;
  readonly options: ConsumerOptions;
}

/**
 * The methods of this class that carry `@OnJob` handle jobs of `queue`. List the class in a module's `providers`.
 *
 * All processors of a queue, in whatever modules, are served by one consumer: options may stand on any of them, and two
 * that contradict each other fail the boot. `EchoMqModule.forRoot({ queues })` is stronger than what stands here.
 *
 * A job whose name none of them handles is put back for 5 s, without being charged an attempt, until some process handles
 * it; the log says so once per name.
 */
export function Processor(queue: string, options: ConsumerOptions = {}): ClassDecorator {
  return (target) => {
    if (Reflect.hasOwnMetadata(PROCESSOR_METADATA, target)) {
      throw new EchoRegistrationError(`${target.name} has two @Processor decorators; a class serves one queue`);
    }
    const metadata: ProcessorMetadata = { queue, options };
    Reflect.defineMetadata(PROCESSOR_METADATA, metadata, target);
  };
}

/** What stands on this very class. A subclass is no processor until it says so itself. */
export function processorMetadata(target: object): ProcessorMetadata | undefined {
  return Reflect.getOwnMetadata(PROCESSOR_METADATA, target) as ProcessorMetadata | undefined;
}
