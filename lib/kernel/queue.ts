import { assertKnownKeys, show } from './arguments.js';
import { EchoArgumentError } from './errors.js';
import { assertQueueName } from './keyspace.js';
import type { LaneBy } from './lane.js';
import { type InputOfSchema, isStandardSchema, type OutputOfSchema, type StandardSchema } from './schema.js';

/** By `Symbol.for`: the ESM and the CommonJS copy of this package can be loaded at once, and know each other's queues. */
const QUEUE = Symbol.for('nestjs-echomq:queue');

const OPTIONS = new Set(['lane']);

/** The schemas of a queue's jobs, by name. */
export type Schemas = Readonly<Record<string, StandardSchema>>;

/**
 * A queue's definition: its name, and which jobs it has with which data. Made by {@link defineQueue}; frozen.
 *
 * `Inputs` maps a job's name to the data that is enqueued, `Outputs` to the data that its handler gets. They differ where
 * schemas transform.
 */
// biome-ignore lint/suspicious/noExplicitAny: a queue of whatever jobs; only `any` takes maps written as interfaces too
export interface Queue<Inputs = any, Outputs = Inputs> {
  readonly name: string;
  /** By the name of the job; absent where only the compiler knows the jobs. */
  readonly schemas?: Schemas;
  /** Chooses the lane of jobs that are enqueued without one. */
  readonly lane?: LaneBy;
  /** For the compiler alone: at run time there is no such property. */
  readonly '~types': { readonly inputs: Inputs; readonly outputs: Outputs };
}

/** What a definition says of the queue beside its jobs. */
export interface QueueOptions<Inputs> {
  /** Which lane a job takes that is enqueued under this definition without one; undefined or null: none. */
  lane: LaneBy<Inputs>;
}

/** The names of a queue's jobs. */
export type NamesOf<Inputs> = keyof Inputs & string;

/** What handlers of the queue get, by name: `JobsOf<typeof Mail>['welcome']`. */
export type JobsOf<Of extends Queue> = Of['~types']['outputs'];

/** The `data` that a handler gets: `DataOf<typeof Mail, 'welcome'>`. */
export type DataOf<Of extends Queue, Name extends NamesOf<JobsOf<Of>>> = JobsOf<Of>[Name];

/** The `data` that is enqueued: `InputOf<typeof Mail, 'welcome'>`. Other than {@link DataOf} where a schema transforms. */
export type InputOf<Of extends Queue, Name extends NamesOf<Of['~types']['inputs']>> = Of['~types']['inputs'][Name];

/**
 * Declares a queue's jobs for the compiler: `defineQueue<{ welcome: { to: string } }>('mail')`. At run time nothing is
 * checked but the name. Behind it, `{ lane: (job) => job.data.tenant }` chooses the lanes of its jobs.
 * @throws EchoArgumentError for a name that no queue can have
 */
export function defineQueue<Jobs extends object = Record<string, unknown>>(
  name: string,
  options?: QueueOptions<Jobs>,
): Queue<Jobs>;
/**
 * Declares a queue's jobs by schemas, of any library that follows Standard Schema:
 * `defineQueue('mail', { welcome: z.object({ to: z.string() }) })`.
 *
 * Data is validated before it is sent, and again before a handler gets it, by this process's schemas. It is sent as
 * it was given; the handler gets what the schema puts out. So a schema must accept its input as the codec brings it
 * back: of a `Date`, JSON makes a text (`z.coerce.date()` takes both). `options` as above.
 * @throws EchoArgumentError for a name that no queue can have, or something that is no schema
 */
export function defineQueue<const Jobs extends Schemas>(
  name: string,
  schemas: Jobs,
  options?: QueueOptions<{ -readonly [Name in keyof Jobs]: InputOfSchema<Jobs[Name]> }>,
): Queue<
  { -readonly [Name in keyof Jobs]: InputOfSchema<Jobs[Name]> },
  { -readonly [Name in keyof Jobs]: OutputOfSchema<Jobs[Name]> }
>;
export function defineQueue(name: string, ...given: [schemas?: unknown, options?: unknown]): Queue {
  assertQueueName(name);
  const bare = given.length === 0 || isOptions(given[0]);
  const schemas = bare ? {} : { schemas: checkedSchemas(name, given[0]) };
  const options = bare ? given[0] : given[1];
  const lane = options === undefined ? {} : { lane: checkedLane(name, options) };
  return Object.freeze({ name, ...schemas, ...lane, [QUEUE]: true }) as unknown as Queue;
}

/** Options, not schemas: a function that is no schema can be no job's. */
function isOptions(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.keys(value).join() !== 'lane') return false;
  const { lane } = value as { lane: unknown };
  return typeof lane === 'function' && !isStandardSchema(lane);
}

function checkedLane(queue: string, options: unknown): LaneBy {
  const call = `defineQueue('${queue}', ...)`;
  assertKnownKeys(options, OPTIONS, `${call}: its options`);
  if (typeof options.lane === 'function') return options.lane as LaneBy;
  throw new EchoArgumentError(`${call}: lane must be a function that answers a job's lane, got ${show(options.lane)}`);
}

export function isQueue(value: unknown): value is Queue {
  return typeof value === 'object' && value !== null && (value as { [QUEUE]?: unknown })[QUEUE] === true;
}

/** @throws EchoArgumentError unless it is a name, which may still be refused, or a definition */
export function queueName(queue: string | Queue): string {
  if (typeof queue === 'string') return queue;
  if (isQueue(queue)) return queue.name;
  throw new EchoArgumentError(`queue name must be a string, or a queue made by defineQueue(), got ${show(queue)}`);
}

function checkedSchemas(queue: string, schemas: unknown): Schemas {
  const call = `defineQueue('${queue}', ...)`;
  if (typeof schemas !== 'object' || schemas === null || Array.isArray(schemas)) {
    throw new EchoArgumentError(`${call} takes an object, a schema for each job's name, got ${show(schemas)}`);
  }
  const entries = Object.entries(schemas);
  if (entries.length === 0) throw new EchoArgumentError(`${call} declares no job: give a schema for each job's name`);
  for (const [name, schema] of entries) {
    if (name === '') throw new EchoArgumentError(`${call}: a job's name must not be empty`);
    if (isStandardSchema(schema)) continue;
    throw new EchoArgumentError(
      `${call}: '${name}' has no schema but ${show(schema)}. It takes those that follow Standard Schema, ` +
        'as of zod, valibot or arktype; for a class with class-validator decorators write dtoSchema(TheClass)',
    );
  }
  return Object.freeze(Object.fromEntries(entries));
}
