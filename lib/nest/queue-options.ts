import { isDeepStrictEqual } from 'node:util';
import { type ConsumerOptions, consumerSettings } from '../engine/consumer-options.js';
import { EchoConfigError, EchoRegistrationError } from '../kernel/errors.js';
import type { QueueRoutes } from './routes.js';

type OptionName = keyof ConsumerOptions;

/**
 * What a queue's consumer is made with: the options of all its processors together, over them those that the module gives
 * for the queue, and under them those it gives for every queue.
 * @throws EchoConfigError naming option and class; EchoRegistrationError when two classes contradict each other
 */
export function queueOptions(
  { queue, processors }: QueueRoutes,
  stronger: ConsumerOptions = {},
  weaker: ConsumerOptions = {},
): ConsumerOptions {
  const merged: Record<string, unknown> = {};
  const givenBy = new Map<string, string>();
  for (const { type, module, options } of processors) {
    consumerSettings(options, type.name);
    const here = `${type.name} in ${module}`;
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined || stronger[name as OptionName] !== undefined) continue;
      const there = givenBy.get(name);
      if (there !== undefined && !isDeepStrictEqual(merged[name], value)) {
        throw new EchoRegistrationError(
          `queue '${queue}' has one consumer, but '${name}' differs between ${there} and ${here}: ` +
            'give it once, on one of them or in the module options under queues',
        );
      }
      merged[name] = value;
      givenBy.set(name, here);
    }
  }
  for (const [name, value] of Object.entries(stronger)) if (value !== undefined) merged[name] = value;
  for (const [name, value] of Object.entries(weaker)) merged[name] ??= value;
  return merged;
}

/** Jobs that gather for a batch take up slots: with fewer than it is large, it would never be full. */
export function refuseTooFewSlots({ queue, processors }: QueueRoutes, options: ConsumerOptions): void {
  const { concurrency } = consumerSettings(options, `queues.${queue}`);
  for (const { type, module, handlers } of processors) {
    for (const { method, batch } of handlers) {
      if (batch === undefined || batch.size <= concurrency) continue;
      throw new EchoConfigError(
        `option 'concurrency' of queue '${queue}' is ${concurrency}, but ${type.name}.${String(method)} in ${module} takes ` +
          `batches of ${batch.size}, and each job takes up a slot while it gathers: give it ${batch.size} or more`,
      );
    }
  }
}

/** Options for a queue that nobody serves are a typing error, or a processor that was forgotten. */
export function refuseUnservedQueues(queues: Record<string, ConsumerOptions>, served: readonly QueueRoutes[]): void {
  const known = served.map(({ queue }) => queue);
  for (const queue of Object.keys(queues)) {
    if (known.includes(queue)) continue;
    const names = known.length > 0 ? known.map((name) => `'${name}'`).join(', ') : 'none';
    throw new EchoConfigError(`option 'queues.${queue}': no processor serves that queue. Served are: ${names}`);
  }
}
