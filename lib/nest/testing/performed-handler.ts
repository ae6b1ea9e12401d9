import { show } from '../../kernel/arguments.js';
import { EchoArgumentError } from '../../kernel/errors.js';
import { type Queue, queueName } from '../../kernel/queue.js';
import { type Class, handlerMethods } from '../handler-methods.js';
import type { Service } from '../instance.js';
import { processorMetadata } from '../processor.js';
import { type Hands, handsOf } from './hands.js';

/** Where a job of this name is run. */
export interface PerformedHandler {
  readonly hands: Hands;
  readonly queue: string;
  readonly service: Service;
}

/**
 * Finds who handles the name: of a class the queue that it is a processor of, also when a test has put another class in its
 * place. @throws EchoArgumentError that lists what is there
 */
export function performedHandler(
  all: readonly Hands[],
  of: Class | string | Queue,
  name: string,
  instance: string | undefined,
): PerformedHandler {
  const isClass = typeof of === 'function';
  const metadata = isClass ? processorMetadata(of) : undefined;
  if (isClass && metadata === undefined) {
    throw new EchoArgumentError(`performJob: ${of.name} is no @Processor: give a processor's class, or a queue`);
  }
  const queue = metadata?.queue ?? queueName(of as string | Queue);
  const among = handsOf(all, instance ?? metadata?.instanceName);
  const found = among.flatMap((hands): PerformedHandler[] => {
    const service = hands.service(queue);
    return service === undefined ? [] : [{ hands, queue, service }];
  });
  // A class without an instance means the one without a name.
  const handler = found.length > 1 ? found.find(({ hands }) => hands.name === undefined) : found[0];
  if (handler === undefined) throw unserved(queue, all, found.length);
  if (typeof name !== 'string') throw new EchoArgumentError(`performJob: a job's name is a string, got ${show(name)}`);
  checkName(handler.service, isClass ? of : undefined, queue, name);
  return handler;
}

function checkName({ routes }: Service, type: Class | undefined, queue: string, name: string): void {
  const own = type && routes.processors.some((processor) => processor.type === type) ? handlerMethods(type) : undefined;
  const names = own
    ? own.map((handler) => handler.name)
    : [...routes.byName.keys(), ...(routes.otherwise ? [undefined] : [])];
  // Any name goes to the handler without one, unless somebody else's is closer.
  if (names.includes(name) || (names.includes(undefined) && !routes.byName.has(name))) return;
  const known = names.map((known) => (known === undefined ? 'every other name' : `'${known}'`)).join(', ');
  const who = own ? type!.name : `queue '${queue}'`;
  throw new EchoArgumentError(`performJob: ${who} handles no job named '${name}'. Handled are ${known}`);
}

function unserved(queue: string, all: readonly Hands[], found: number): EchoArgumentError {
  if (found > 1) {
    return new EchoArgumentError(`performJob: queue '${queue}' is served by several EchoMqModules: give { instance }`);
  }
  const served = all.flatMap((hands) => hands.served.map((name) => `'${name}'`)).join(', ') || 'none';
  return new EchoArgumentError(`performJob: no processor of this app serves queue '${queue}'. Served are ${served}`);
}
