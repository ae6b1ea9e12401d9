import { type CanActivate, ForbiddenException, type PipeTransform } from '@nestjs/common';
import { isObservable } from 'rxjs';
import type { Job } from '../engine/job.js';
import { onPurpose } from '../kernel/outcome.js';
import type { Argument, Enhancers, Filter } from './enhancers.js';
import type { Class } from './handler-methods.js';
import { intercepted } from './interceptors.js';
import { JobContext } from './job-context.js';
import { lastOf, untilAborted } from './observable-result.js';
import { refusalBy } from './pipe-refusal.js';

/** A handler, and what it is called on. */
export interface Callee {
  readonly type: Class;
  readonly method: Class;
  readonly instance: object;
}

/**
 * Calls a handler as Nest calls one: guards, interceptors, pipes, the method; and the filters around it all.
 *
 * Not by Nest's ExternalContextCreator: with it the app's global enhancers would run too, a filter that answers nothing
 * would count as none, and nobody could tell a pipe's refusal from the same exception thrown by the handler (record 6).
 */
export async function callThrough(enhancers: Enhancers, callee: Callee, job: Job): Promise<unknown> {
  const context = new JobContext(job, callee.type, callee.method);
  const { guards, interceptors, parameters, filters } = enhancers;
  let refused: { thrown: unknown } | undefined;
  const handle = async (): Promise<unknown> => {
    let args: unknown[] = [job];
    if (parameters.length > 0) {
      try {
        args = await argumentsFor(parameters, context);
      } catch (thrown) {
        refused = { thrown };
        throw thrown;
      }
    }
    const answer = await callee.method.apply(callee.instance, args);
    return isObservable(answer) ? untilAborted(answer, job) : answer;
  };
  try {
    for (const guard of guards) await ask(guard, context);
    const answer = interceptors.length > 0 ? intercepted(interceptors, context, handle) : await handle();
    return isObservable(answer) ? await lastOf(answer) : answer;
  } catch (thrown) {
    try {
      return await caught(thrown, filters, context);
    } catch (error) {
      throw refused !== undefined && refused.thrown === error ? refusalBy(error) : error;
    }
  }
}

/** @throws ForbiddenException, which a filter may catch, when the guard says no */
async function ask(guard: CanActivate, context: JobContext): Promise<void> {
  let verdict: unknown = guard.canActivate(context);
  if (typeof verdict !== 'boolean') {
    verdict = await verdict;
    if (isObservable(verdict)) verdict = await lastOf(verdict);
  }
  if (verdict) return;
  const name = guard.constructor?.name ?? 'Object';
  throw new ForbiddenException(`${name === 'Object' ? 'a guard' : name} does not let the job through`);
}

async function argumentsFor(parameters: readonly Argument[], context: JobContext): Promise<unknown[]> {
  const args: unknown[] = [];
  await Promise.all(
    parameters.map(async ({ index, value, pipes, metadata }) => {
      args[index] = await piped(await value(context), pipes, metadata);
    }),
  );
  return args;
}

async function piped(value: unknown, pipes: readonly PipeTransform[], metadata: Argument['metadata']) {
  let result = value;
  for (const pipe of pipes) result = await pipe.transform(result, metadata);
  return result;
}

/** What the first filter that catches it makes of it; none catches `Discard`, `Snooze` and such, words to the queue. */
async function caught(thrown: unknown, filters: readonly Filter[], context: JobContext): Promise<unknown> {
  const found = onPurpose(thrown)
    ? undefined
    : filters.find(({ catches }) => catches.length === 0 || catches.some((type) => isA(thrown, type)));
  if (found === undefined) throw thrown;
  const answer: unknown = await found.filter.catch(thrown, context);
  return isObservable(answer) ? lastOf(answer) : answer;
}

function isA(thrown: unknown, type: Class): boolean {
  return typeof type === 'function' && thrown instanceof type;
}
