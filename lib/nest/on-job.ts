import 'reflect-metadata';
import { type BatchOptions, checkedBatch } from '../engine/batching.js';
import type { Job } from '../engine/job.js';
import type { ScheduleDeclaration } from '../engine/schedule-calls.js';
import { show } from '../kernel/arguments.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import { isQueue, type Queue } from '../kernel/queue.js';
import { circleHint, IMPORT_CIRCLE } from './import-circle.js';
import { declarationOf, type JobBatch, type JobSchedule } from './job-schedule.js';
import { ON_JOB_METADATA } from './tokens.js';

export interface OnJobMetadata {
  /** Undefined: every name that no other method claims. */
  readonly name: string | undefined;
  readonly method: string | symbol;
  /** Where the decorator names its queue. */
  readonly definition?: Queue | undefined;
  /** Where jobs land for it by themselves. */
  readonly schedule?: ScheduleDeclaration | undefined;
  /** Where the method gets jobs together. */
  readonly batch?: BatchOptions | undefined;
}

/** Takes methods only whose first parameter, where there is one, takes the job or its data. */
export type TypedHandlerDecorator<Data, Name extends string> = <
  Method extends // biome-ignore lint/suspicious/noExplicitAny: what further parameters get, their own decorators say
  ((job: Job<Data, Name>, ...more: any[]) => unknown) | ((data: Data, ...more: any[]) => unknown),
>(
  target: object,
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** Takes methods only whose first parameter, where there is one, takes an array of the jobs. */
export type BatchHandlerDecorator<Data, Name extends string> = <Method extends (jobs: Job<Data, Name>[]) => unknown>(
  target: object,
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * This method runs the jobs called `name`; without an argument, those that no other method of the queue claims. It gets the
 * {@link Job}, or what `@JobData()`, `@JobRef()` and `@JobSignal()` on its parameters say. What it returns is the job's
 * result, of an Observable the last value; a throw fails the attempt, `throw new Discard()` buries the job, `throw new
 * Snooze(ms)` puts it back.
 *
 * Guards, interceptors, pipes and exception filters on it or on its class act as for a request (`context.getType()` is
 * 'echomq', see `jobOf`): a guard that denies fails the attempt, a pipe that refuses with status 400 or 422 buries the job,
 * a filter that returns completes it. The app's global ones do not act: they are written for requests.
 *
 * May stand more than once on a method, once per name.
 * @throws EchoRegistrationError for a name that is undefined or empty
 */
export function OnJob(name: string): MethodDecorator;
/** The same for the jobs that no other method of the queue claims, whatever their names. */
export function OnJob(): MethodDecorator;
/**
 * The same, and such a job lands again and again: `@OnJob('digest', { cron: '0 8 * * *', tz: 'Europe/Berlin' })`. The schedule is
 * declared when the app has started, by every process that consumes; declared again as it is, its next run does not move.
 * @throws EchoRegistrationError for a schedule that makes no sense or is never due
 */
export function OnJob(name: string, schedule: JobSchedule | undefined): MethodDecorator;
/**
 * This method gets jobs together, as an array: `@OnJob('row', { batch: { size: 100, waitMs: 50 } })` calls it when 100 are
 * there, or 50 ms after the first came. Each is settled on its own all the same: without an answer all are done; of an
 * array, item i is the result of job i, or a promise of it; a throw fails all of them, `Discard`, `Snooze`,
 * `RateLimited` and `WaitForChildren` mean all of them. The processor's `concurrency` must be at least `size`.
 * Enhancers, decorated parameters and request scope, which act on one job, fail the boot. A schedule may stand beside
 * `batch`.
 * @throws EchoRegistrationError for a batch or a schedule that makes no sense
 */
// biome-ignore lint/suspicious/noExplicitAny: as Handler
export function OnJob(name: string, batch: JobBatch): BatchHandlerDecorator<any, string>;
/**
 * The same, checked by the compiler: the queue must declare the name, and the method's first parameter take the `Job` with
 * its data, or that data itself (behind `@JobData()`). The class must be a `@Processor` of that queue, or the boot fails.
 */
export function OnJob<Outputs, Name extends keyof Outputs & string>(
  queue: Queue<unknown, Outputs>,
  name: Name,
): TypedHandlerDecorator<Outputs[Name], Name>;
/** The same with a schedule, whose `data` is what the queue declares for the name. */
export function OnJob<Inputs, Outputs, Name extends keyof Inputs & keyof Outputs & string>(
  queue: Queue<Inputs, Outputs>,
  name: Name,
  schedule: JobSchedule<Inputs[Name]> | undefined,
): TypedHandlerDecorator<Outputs[Name], Name>;
/** The same for jobs that the method gets together: its parameter takes an array of them. */
export function OnJob<Inputs, Outputs, Name extends keyof Inputs & keyof Outputs & string>(
  queue: Queue<Inputs, Outputs>,
  name: Name,
  batch: JobBatch<Inputs[Name]>,
): BatchHandlerDecorator<Outputs[Name], Name>;
export function OnJob(...given: unknown[]): MethodDecorator {
  return (target: object, method: string | symbol, descriptor: PropertyDescriptor | undefined) => {
    const place = placeOf(target, method);
    if (typeof target === 'function')
      throw new EchoRegistrationError(`@OnJob on ${place}: a static method has no instance`);
    if (typeof descriptor?.value !== 'function') throw new EchoRegistrationError(`@OnJob on ${place}: it is no method`);
    const isTyped = given.length > 1 && !(typeof given[0] === 'string' && typeof given[1] !== 'string');
    const { name, definition = undefined } = isTyped
      ? declared(place, ...given)
      : { name: given[0] as string | undefined };
    if (given.length > 0 && name === undefined) {
      throw new EchoRegistrationError(
        `@OnJob on ${place} got undefined for its name: ${IMPORT_CIRCLE} For every other name write @OnJob()`,
      );
    }
    const { batch, times } = optionsOf(place, isTyped ? given[2] : given[1]);
    if (name !== undefined && (typeof name !== 'string' || name === '')) {
      throw new EchoRegistrationError(
        `@OnJob on ${place}: a name is a string that is not empty; without one, write @OnJob()`,
      );
    }
    // On the class, not on the function: a decorator above this one may put another function in its place.
    const schedule = times === undefined ? undefined : declarationOf(place, name as string, times);
    const others = ownHandlers(target.constructor);
    if (others.some((other) => other.method === method && (other.batch === undefined) !== (batch === undefined))) {
      throw new EchoRegistrationError(
        `@OnJob on ${place}: it gets jobs together under one name and one by one under another: make them two methods`,
      );
    }
    const metadata: OnJobMetadata[] = [...others, { name, method, definition, schedule, batch }];
    Reflect.defineMetadata(ON_JOB_METADATA, metadata, target.constructor);
  };
}

/** What stands on this very class, without what it inherits. */
export function ownHandlers(target: object): readonly OnJobMetadata[] {
  return (Reflect.getOwnMetadata(ON_JOB_METADATA, target) as OnJobMetadata[] | undefined) ?? [];
}

function placeOf(target: object, method: string | symbol): string {
  const name = typeof target === 'function' ? target.name : target.constructor.name;
  return `${name}.${String(method)}`;
}

/** What stands behind the name, taken apart. */
function optionsOf(place: string, given: unknown): { batch: BatchOptions | undefined; times: unknown } {
  if (typeof given !== 'object' || given === null || !Object.hasOwn(given, 'batch')) {
    return { batch: undefined, times: given };
  }
  const { batch, ...times } = given as JobBatch;
  try {
    const checked = checkedBatch(batch, 'batch');
    const isScheduled = Object.values(times).some((value) => value !== undefined);
    return { batch: checked, times: isScheduled ? times : undefined };
  } catch (error) {
    throw new EchoRegistrationError(`@OnJob on ${place}: ${(error as Error).message}`);
  }
}

function declared(place: string, queue?: unknown, name?: unknown): { name: string; definition?: Queue } {
  if (!isQueue(queue)) {
    throw new EchoRegistrationError(
      `@OnJob on ${place}: the first of two arguments is a queue made by defineQueue(), got ${show(queue)}${circleHint(queue)}`,
    );
  }
  if (typeof name !== 'string' || (queue.schemas !== undefined && !Object.hasOwn(queue.schemas, name))) {
    throw new EchoRegistrationError(
      `@OnJob on ${place}: queue '${queue.name}' declares no job ${show(name)}${circleHint(name)}`,
    );
  }
  return { name, definition: queue };
}
