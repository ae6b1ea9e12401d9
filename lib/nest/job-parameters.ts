import 'reflect-metadata';
import {
  type ArgumentMetadata,
  Body,
  createParamDecorator,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { Class } from './handler-methods.js';
import { jobOf } from './job-context.js';

type Pipe = PipeTransform | Type<PipeTransform>;

const toJob = (_data: unknown, context: ExecutionContext) => jobOf(context);
const toSignal = (_data: unknown, context: ExecutionContext) => jobOf(context).signal;
const jobDecorator = createParamDecorator(toJob);
const signalDecorator = createParamDecorator(toSignal);

/**
 * The job's data, or one property of it, through the handler's pipes and these: for a job what `@Body()` is for a request,
 * so that `ValidationPipe` acts on it. A pipe that refuses, with an HttpException of status 400 or 422, buries the job at
 * once: the data will not be better the next time. Whatever else a pipe throws fails the attempt.
 *
 * A handler with a decorated parameter is given decorated parameters only; one without any is given the {@link Job}.
 */
export function JobData(...pipes: Pipe[]): ParameterDecorator;
export function JobData(property: string, ...pipes: Pipe[]): ParameterDecorator;
export function JobData(first?: string | Pipe, ...pipes: Pipe[]): ParameterDecorator {
  return Body(first as string, ...pipes);
}

/** The {@link Job}. */
export function JobRef(): ParameterDecorator {
  return jobDecorator();
}

/** `job.signal`: fires when the work is no longer wanted. */
export function JobSignal(): ParameterDecorator {
  return signalDecorator();
}

/** A parameter of a handler as it was declared. */
export interface Parameter {
  readonly index: number;
  readonly value: (context: ExecutionContext) => unknown;
  /** Classes and instances; undefined: no pipe acts on it. */
  readonly pipes: readonly unknown[] | undefined;
  /** What pipes are told of it. */
  readonly metadata: ArgumentMetadata;
}

/** Nest's, which it exports under no public name. */
const PARAMETERS = '__routeArguments__';
const CUSTOM = '__customRouteArgs__';
const BODY = '3';

interface Declaration {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes?: readonly unknown[];
  readonly schema?: unknown;
  readonly factory?: (data: unknown, context: ExecutionContext) => unknown;
}

/** @throws EchoRegistrationError for a decorator that means nothing for a job */
export function parametersOf(type: Class, method: string | symbol): Parameter[] {
  const prototype = definingPrototype(type, method);
  const declared: Record<string, Declaration> =
    // Not what a method of the same name in a base class has: this one may take something else.
    Reflect.getOwnMetadata(PARAMETERS, prototype.constructor, method) ?? {};
  const types: unknown[] | undefined = Reflect.getOwnMetadata('design:paramtypes', prototype, method);
  const byIndex = new Map<number, Parameter>();
  for (const [key, declaration] of Object.entries(declared)) {
    const { index, data, schema } = declaration;
    const value = extractorOf(key, declaration);
    if (value === undefined) throw meaningless(type, method, index);
    const ours = declaration.factory === toJob || declaration.factory === toSignal;
    const pipes = ours ? undefined : (declaration.pipes ?? []).filter(Boolean);
    const metadata = { type: key.includes(CUSTOM) ? 'custom' : 'body', metatype: types?.[index], data, schema };
    byIndex.set(index, { index, value, pipes, metadata: metadata as ArgumentMetadata });
  }
  return [...byIndex.values()];
}

/** Does the compiler tell the types of the method's parameters? Validation by class is nothing without. */
export function hasTypes(type: Class, method: string | symbol): boolean {
  return Reflect.hasOwnMetadata('design:paramtypes', definingPrototype(type, method), method);
}

function extractorOf(key: string, { data, factory }: Declaration): Parameter['value'] | undefined {
  if (key.includes(CUSTOM)) return (context) => factory?.(data, context);
  if (key.split(':', 1)[0] !== BODY) return undefined;
  if (typeof data !== 'string' || data === '') return (context) => jobOf(context).data;
  return (context) => (jobOf(context).data as Record<string, unknown> | null | undefined)?.[data];
}

function definingPrototype(type: Class, method: string | symbol): object {
  let prototype = type.prototype;
  while (!Object.hasOwn(prototype, method) && Object.getPrototypeOf(prototype) !== null) {
    prototype = Object.getPrototypeOf(prototype);
  }
  return prototype;
}

function meaningless(type: Class, method: string | symbol, index: number): EchoRegistrationError {
  return new EchoRegistrationError(
    `${type.name}.${String(method)}: parameter ${index} has a decorator for requests. A job handler takes @JobData(), ` +
      '@JobRef(), @JobSignal(), and decorators made by createParamDecorator',
  );
}
