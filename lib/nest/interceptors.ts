import { AsyncResource } from 'node:async_hooks';
import type { NestInterceptor } from '@nestjs/common';
import { defer, isObservable, mergeAll, type Observable, of } from 'rxjs';
import type { JobContext } from './job-context.js';

/**
 * A handler's answer as a stream, through its interceptors, the first outermost. The handler is called when the innermost
 * subscribes, and again at each subscription: `retry` works as in Nest. What follows a `next.handle()` runs in the async
 * context of that call, as it does in Nest, so that an AsyncLocalStorage entered there holds in the handler.
 */
export function intercepted(
  interceptors: readonly NestInterceptor[],
  context: JobContext,
  handle: () => Promise<unknown>,
): Observable<unknown> {
  const from = (i: number): Observable<unknown> => {
    const scope = new AsyncResource('EchoMqInterceptor');
    const next = async () => {
      const interceptor = interceptors[i];
      return interceptor ? interceptor.intercept(context, { handle: () => from(i + 1) }) : asStream(await handle());
    };
    return defer(() => scope.runInAsyncScope(next)).pipe(mergeAll());
  };
  return from(0);
}

function asStream(answer: unknown): Observable<unknown> {
  return isObservable(answer) ? answer : of(answer);
}
