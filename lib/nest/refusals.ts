import { ValidationPipe } from '@nestjs/common';
import { EchoRegistrationError } from '../kernel/errors.js';
import { allOf, type Declared, declaredOn, type Wearer } from './enhancers.js';
import { hasTypes } from './job-parameters.js';
import { isScoped } from './job-scope.js';
import type { OnJobMetadata } from './on-job.js';

interface Processor extends Wearer {
  readonly module: string;
  readonly handlers: readonly OnJobMetadata[];
}

/**
 * What stands on a processor and would silently do nothing is refused at boot: a guard that does not guard would be worse
 * than none.
 * @throws EchoRegistrationError naming the class, and the method where it has one
 */
export function refuseWithoutEffect(processor: Processor): void {
  const { type, module, wrapper, handlers } = processor;
  if (wrapper.isTransient) {
    throw new EchoRegistrationError(
      `${type.name} in ${module} is transient, and nobody injects a processor: give it the default scope to have one, or ` +
        'Scope.REQUEST to have one a job',
    );
  }
  for (const { method, batch } of handlers) {
    const declared = declaredOn(type, method);
    const place = `${type.name}.${String(method)} in ${module}`;
    if (batch !== undefined) refuseOneByOne(processor, declared, place);
    refuseUnmade(processor, declared, place);
    refuseIdlePipes(processor, declared, method, place);
  }
}

/** What acts on one job, or is made for one, means nothing where a method gets many. */
function refuseOneByOne({ wrapper }: Processor, declared: Declared, place: string): void {
  if (isScoped(wrapper)) {
    throw new EchoRegistrationError(
      `${place} gets jobs together, but its class is request-scoped, by itself or through what it injects: a scope is ` +
        'that of one job. Move it to a processor of the default scope',
    );
  }
  if (declared.parameters.length > 0) {
    throw new EchoRegistrationError(
      `${place} gets jobs together: its parameter is the array of them, undecorated; each has its data and its signal`,
    );
  }
  const [enhancer] = allOf(declared);
  if (enhancer === undefined) return;
  const name = typeof enhancer === 'function' ? enhancer.name : (enhancer as object).constructor?.name;
  throw new EchoRegistrationError(
    `${place} gets jobs together, and ${name} on it or on its class acts on one job: guards, interceptors, pipes and filters ` +
      'stand on methods that take jobs one by one. Move it to a class without, or take that off',
  );
}

/** Nest makes the enhancers of the providers that it makes itself, and of those on 10 only where the token is the class. */
function refuseUnmade({ type, host, wrapper }: Processor, declared: Declared, place: string): void {
  // By id: on 10 they are not the same objects.
  const made = new Set(wrapper.getEnhancersMetadata()?.map(({ id }) => id));
  for (const enhancer of allOf(declared)) {
    if (typeof enhancer !== 'function' || made.has(host.injectables.get(enhancer as never)?.id as string)) continue;
    throw new EchoRegistrationError(
      `${place} is given ${enhancer.name} as a class, of which Nest makes no instance here: list ${type.name} itself among ` +
        `the providers, not a factory, a value or another token for it, or give an instance: new ${enhancer.name}()`,
    );
  }
}

function refuseIdlePipes(
  { type }: Processor,
  { pipes, parameters }: Declared,
  method: string | symbol,
  place: string,
): void {
  if (pipes.length > 0 && parameters.length === 0 && type.prototype[method].length > 0) {
    throw new EchoRegistrationError(
      `${place} has pipes but takes the job as it is, and pipes act on decorated parameters: take the data by @JobData()`,
    );
  }
  if (hasTypes(type, method)) return;
  const bodies = parameters.filter(({ metadata }) => metadata.type === 'body');
  if (bodies.some((parameter) => [...pipes, ...(parameter.pipes ?? [])].some(validatesByType))) {
    throw new EchoRegistrationError(
      `${place} validates by the type of its parameter, but was compiled without: switch emitDecoratorMetadata on, which ` +
        'esbuild and tsx cannot, or give ValidationPipe an expectedType',
    );
  }
}

function validatesByType(pipe: unknown): boolean {
  if (typeof pipe === 'function') return pipe === ValidationPipe;
  return pipe instanceof ValidationPipe && (pipe as unknown as { expectedType?: unknown }).expectedType === undefined;
}
