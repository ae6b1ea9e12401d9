import { EchoRegistrationError } from '../kernel/errors.js';
import type { Queue } from '../kernel/queue.js';
import type { FoundProcessor } from './discovery.js';

interface Defined {
  readonly definition: Queue;
  readonly place: string;
}

/**
 * What is known of a queue: the definition that its processors, or single handlers of them, were given; undefined where all of
 * them were given its bare name.
 * @throws EchoRegistrationError naming both places when there are two definitions, or a handler is one of another queue
 */
export function definitionOf(queue: string, processors: readonly FoundProcessor[]): Queue | undefined {
  let known: Defined | undefined;
  for (const defined of processors.flatMap(definitionsOn)) {
    const { definition, place } = defined;
    if (definition.name !== queue) throw elsewhere(queue, defined);
    if (known !== undefined && known.definition !== definition) {
      throw new EchoRegistrationError(
        `queue '${queue}' is defined twice: ${known.place} and ${place} have different definitions. ` +
          'Call defineQueue() once for it and import what it answers',
      );
    }
    known ??= defined;
  }
  return known?.definition;
}

function definitionsOn({ type, module, definition, handlers }: FoundProcessor): Defined[] {
  const on: Defined[] = [];
  if (definition !== undefined) on.push({ definition, place: `${type.name} in ${module}` });
  for (const handler of handlers) {
    if (handler.definition === undefined) continue;
    on.push({ definition: handler.definition, place: `${type.name}.${String(handler.method)} in ${module}` });
  }
  return on;
}

function elsewhere(queue: string, { definition, place }: Defined): EchoRegistrationError {
  return new EchoRegistrationError(
    `${place} is @OnJob of queue '${definition.name}', but its class is @Processor of queue '${queue}': ` +
      `move it to a processor of '${definition.name}', or name a job of '${queue}'`,
  );
}
