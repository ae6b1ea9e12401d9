import 'reflect-metadata';
import type { ArgumentMetadata, CanActivate, ExceptionFilter, NestInterceptor, PipeTransform } from '@nestjs/common';
import { type ContextId, ModuleRef } from '@nestjs/core';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { HostModule, ProviderWrapper } from './container.js';
import type { Class } from './handler-methods.js';
import { type Parameter, parametersOf } from './job-parameters.js';

/** Nest's metadata keys, which it exports under no public name, and what makes something one of the kind. */
const KINDS = {
  guards: { key: '__guards__', does: 'canActivate' },
  interceptors: { key: '__interceptors__', does: 'intercept' },
  pipes: { key: '__pipes__', does: 'transform' },
  filters: { key: '__exceptionFilters__', does: 'catch' },
} as const;
const CATCHES = '__filterCatchExceptions__';

export type Kind = keyof typeof KINDS;

/** What stands on a handler and on its class, in Nest's order: classes, to be made by Nest, and instances. */
export type Declared = Readonly<Record<Kind, readonly unknown[]>> & {
  /** Class and method, for messages. */
  readonly place: string;
  readonly parameters: readonly Parameter[];
};

/** A parameter, and how its value comes about. */
export interface Argument {
  readonly index: number;
  readonly value: Parameter['value'];
  readonly pipes: readonly PipeTransform[];
  readonly metadata: ArgumentMetadata;
}

export interface Filter {
  readonly filter: ExceptionFilter;
  /** None: everything. */
  readonly catches: readonly Class[];
}

/** What a handler is called through. */
export interface Enhancers {
  readonly guards: readonly CanActivate[];
  readonly interceptors: readonly NestInterceptor[];
  /** Nearest to the handler first. */
  readonly filters: readonly Filter[];
  readonly parameters: readonly Argument[];
}

/** Whose enhancers they are. */
export interface Wearer {
  readonly type: Class;
  readonly host: HostModule;
  readonly wrapper: ProviderWrapper;
}

/**
 * Of the method alone where what stands on its class is meant for others.
 * @throws EchoRegistrationError for a parameter decorator that means nothing for a job
 */
export function declaredOn(type: Class, method: string | symbol, withClass = true): Declared {
  const on = (kind: Kind): unknown[] => {
    const { key } = KINDS[kind];
    const onClass = withClass ? (Reflect.getMetadata(key, type) ?? []) : [];
    return [...onClass, ...(Reflect.getMetadata(key, type.prototype[method]) ?? [])];
  };
  return {
    place: `${type.name}.${String(method)}`,
    guards: on('guards'),
    interceptors: on('interceptors'),
    pipes: on('pipes'),
    filters: on('filters'),
    parameters: parametersOf(type, method),
  };
}

/** Is the handler called as it is? */
export function isPlain({ guards, interceptors, filters, parameters }: Declared): boolean {
  return guards.length + interceptors.length + filters.length + parameters.length === 0;
}

/**
 * The instances of what was declared: without a context those of the app, else those that Nest has made in it. A promise
 * only where the app's are transient: such a one is made for this handler alone.
 */
export function enhancersFor(wearer: Wearer, declared: Declared, context: ContextId): Enhancers;
export function enhancersFor(wearer: Wearer, declared: Declared): Enhancers | Promise<Enhancers>;
export function enhancersFor(wearer: Wearer, declared: Declared, context?: ContextId): Enhancers | Promise<Enhancers> {
  const classes = new Set([...allOf(declared)].filter((one): one is Class => typeof one === 'function'));
  const made = new Map<unknown, unknown>();
  const awaited: Promise<unknown>[] = [];
  for (const type of classes) {
    const instance = instanceOf(type, wearer, context);
    if (instance instanceof Promise) awaited.push(instance.then((one) => made.set(type, one)));
    else made.set(type, instance);
  }
  if (awaited.length === 0) return assembled(declared, made);
  return Promise.all(awaited).then(() => assembled(declared, made));
}

/** Every enhancer of a handler, with the pipes of its parameters. */
export function* allOf({ guards, interceptors, pipes, filters, parameters }: Declared): Generator<unknown> {
  yield* [...guards, ...interceptors, ...pipes, ...filters];
  for (const parameter of parameters) yield* parameter.pipes ?? [];
}

function assembled(declared: Declared, made: ReadonlyMap<unknown, unknown>): Enhancers {
  const all = <T>(kind: Kind, list: readonly unknown[]): T[] =>
    list.map((one) => {
      const instance = typeof one === 'function' ? made.get(one) : one;
      const { does } = KINDS[kind];
      if (typeof (instance as Record<string, unknown> | null | undefined)?.[does] === 'function') return instance as T;
      const name = typeof one === 'function' ? one.name : Object.prototype.toString.call(one);
      throw new EchoRegistrationError(
        `${declared.place}: ${name} stands among its ${kind} but has no method '${does}'`,
      );
    });
  const pipes = all<PipeTransform>('pipes', declared.pipes);
  return {
    guards: all('guards', declared.guards),
    interceptors: all('interceptors', declared.interceptors),
    filters: all<ExceptionFilter>('filters', declared.filters)
      .map((filter) => ({ filter, catches: caughtBy(filter) }))
      .reverse(),
    parameters: declared.parameters.map(({ index, value, metadata, pipes: own }) => ({
      index,
      value,
      metadata,
      pipes: own === undefined ? [] : [...pipes, ...all<PipeTransform>('pipes', own)],
    })),
  };
}

/** What `@Catch()` names. On 12 it stands on the prototype too, where a decorator may have replaced the class. */
function caughtBy(filter: ExceptionFilter): Class[] {
  const prototype = Object.getPrototypeOf(filter);
  return Reflect.getMetadata(CATCHES, prototype) ?? Reflect.getMetadata(CATCHES, prototype.constructor) ?? [];
}

function instanceOf(type: Class, { host, wrapper: wearer }: Wearer, context: ContextId | undefined): unknown {
  const wrapper = host.injectables.get(type as never);
  if (wrapper === undefined) return undefined;
  if (context !== undefined) return wrapper.getInstanceByContextId(contextIn(context, wrapper), wearer.id).instance;
  if (!wrapper.isTransient) return wrapper.instance;
  const moduleRef = host.providers.get(ModuleRef)!.instance as ModuleRef;
  return moduleRef.create(wrapper.metatype as never);
}

/** What is durable lives in a context that several jobs share; a transient one belongs to its wearer. */
function contextIn(context: ContextId, wrapper: HostModule['injectables'] extends Map<unknown, infer W> ? W : never) {
  const { token } = wrapper;
  const isTreeDurable = !wrapper.isTransient && wrapper.isDependencyTreeDurable();
  return context.getParent?.({ token: token as never, isTreeDurable }) ?? context;
}
