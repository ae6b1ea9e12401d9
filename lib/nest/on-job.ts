import 'reflect-metadata';
import type { Job } from '../engine/job.js';
import type { ScheduleDeclaration } from '../engine/schedule-calls.js';
import { show } from '../kernel/arguments.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import { isQueue, type Queue } from '../kernel/queue.js';
import { declarationOf, type JobSchedule } from './job-schedule.js';
import { ON_JOB_METADATA } from './tokens.js';

export interface OnJobMetadata {
  /** Undefined: every name that no other method claims. */
  readonly name: string | undefined;
  readonly method: string | symbol;
  /** Where the decorator names its queue. */
  readonly definition?: Queue | undefined;
  /** Where jobs land for it by themselves. */
  readonly schedule?: ScheduleDeclaration | undefined;
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

/**
 * This method runs the jobs called `name`; without a name, those that no other method of the queue claims. It gets the
 * {@link Job}, or what `@JobData()`, `@JobRef()` and `@JobSignal()` on its parameters say. What it returns is the job's
 * result, of an Observable the last value; a throw fails the attempt, `throw new Discard()` buries the job, `throw new
 * Snooze(ms)` puts it back.
 *
 * Guards, interceptors, pipes and exception filters on it or on its class act as for a request (`context.getType()` is
 * 'echomq', see `jobOf`): a guard that denies fails the attempt, a pipe that refuses with status 400 or 422 buries the job,
 * a filter that returns completes it. The app's global ones do not act: they are written for requests.
 *
 * May stand more than once on a method, once per name.
 */
export function OnJob(name?: string): MethodDecorator;
/**
 * The same, and such a job lands again and again: `@OnJob('digest', { cron: '0 8 * * *', tz: 'Europe/Berlin' })`. The schedule is
 * declared when the app has started, by every process that consumes; declared again as it is, its next run does not move.
 * @throws EchoRegistrationError for a schedule that makes no sense or is never due
 */
export function OnJob(name: string, schedule: JobSchedule | undefined): MethodDecorator;
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
    const times = isTyped ? given[2] : given[1];
    if (name !== undefined && (typeof name !== 'string' || name === '')) {
      throw new EchoRegistrationError(
        `@OnJob on ${place}: a name is a string that is not empty; without one, write @OnJob()`,
      );
    }
    // On the class, not on the function: a decorator above this one may put another function in its place.
    const schedule = times === undefined ? undefined : declarationOf(place, name as string, times);
    const metadata: OnJobMetadata[] = [...ownHandlers(target.constructor), { name, method, definition, schedule }];
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

function declared(place: string, queue?: unknown, name?: unknown): { name: string; definition?: Queue } {
  if (!isQueue(queue)) {
    const circle = queue === undefined ? '; do the file that defines it and this one import each other?' : '';
    throw new EchoRegistrationError(
      `@OnJob on ${place}: the first of two arguments is a queue made by defineQueue(), got ${show(queue)}${circle}`,
    );
  }
  if (typeof name !== 'string' || (queue.schemas !== undefined && !Object.hasOwn(queue.schemas, name))) {
    throw new EchoRegistrationError(`@OnJob on ${place}: queue '${queue.name}' declares no job ${show(name)}`);
  }
  return { name, definition: queue };
}
