import type { ArgumentsHost, ExecutionContext, Type } from '@nestjs/common';
import type { Job } from '../engine/job.js';
import { EchoStateError } from '../kernel/errors.js';
import type { Class } from './handler-methods.js';

/** What `context.getType()` answers in guards, interceptors, filters and parameter decorators while they work for a job. */
export const ECHOMQ_CONTEXT = 'echomq';
export type EchoMqContextType = typeof ECHOMQ_CONTEXT;

/**
 * The job that a guard, interceptor, filter or parameter decorator works for.
 * @throws EchoStateError in any other context, an HTTP request's say: ask `context.getType() === ECHOMQ_CONTEXT` first
 */
export function jobOf<Data = unknown>(context: ArgumentsHost): Job<Data> {
  const type = context.getType<string>();
  if (type === ECHOMQ_CONTEXT) return context.getArgByIndex<Job<Data>>(0);
  throw new EchoStateError(
    `jobOf(context): this context is of type '${type}' and has no job; ask context.getType() === ECHOMQ_CONTEXT first`,
  );
}

/** What Nest calls the execution context, for one run of a job. Its only argument is the job. */
export class JobContext implements ExecutionContext {
  constructor(
    readonly job: Job,
    private readonly type: Class,
    private readonly method: Class,
  ) {}

  getType<T extends string>(): T {
    return ECHOMQ_CONTEXT as string as T;
  }

  // biome-ignore lint/suspicious/noExplicitAny: Nest's signature
  getClass<T = any>(): Type<T> {
    return this.type as Type<T>;
  }

  getHandler(): Class {
    return this.method;
  }

  // biome-ignore lint/suspicious/noExplicitAny: Nest's signature
  getArgs<T extends any[] = any[]>(): T {
    return [this.job] as unknown as T;
  }

  // biome-ignore lint/suspicious/noExplicitAny: Nest's signature
  getArgByIndex<T = any>(index: number): T {
    return (index === 0 ? this.job : undefined) as T;
  }

  // As in Nest's own context, whoever asks for another transport's view finds the arguments there are.

  switchToRpc() {
    return { getData: <T>() => this.getArgByIndex<T>(0), getContext: <T>() => this.getArgByIndex<T>(1) };
  }

  switchToHttp() {
    return {
      getRequest: <T>() => this.getArgByIndex<T>(0),
      getResponse: <T>() => this.getArgByIndex<T>(1),
      getNext: <T>() => this.getArgByIndex<T>(2),
    };
  }

  switchToWs() {
    return {
      getClient: <T>() => this.getArgByIndex<T>(0),
      getData: <T>() => this.getArgByIndex<T>(1),
      getPattern: () => '',
    };
  }
}
