import { show } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import type { Queue, Schemas } from '../kernel/queue.js';
import type { SchemaResult, StandardSchema } from '../kernel/schema.js';
import type { Handler } from './handler.js';
import { EchoDataError, InvalidData, issuesOf, summaryOf } from './invalid-data.js';
import type { Job } from './job.js';

const MOST_NAMES_SAID = 20;

/**
 * Validates what is to be enqueued. Undefined when it may be sent, at once unless the schema is asynchronous; without schemas
 * everything may.
 * @throws EchoArgumentError for a name that the queue does not declare, and when the schema itself fails; EchoDataError for
 * data that does not fit. The same by rejection where the schema is asynchronous.
 */
export function checkData({ name: queue, schemas }: Queue, name: string, data: unknown): Promise<void> | undefined {
  if (schemas === undefined) return undefined;
  const schema = schemaOf(schemas, name);
  if (schema === undefined) throw undeclared(queue, schemas, name);
  const refuse = (result: SchemaResult<unknown>): void => {
    if (!result.issues) return;
    const issues = issuesOf(result.issues);
    const what = `the data of '${name}' for queue '${queue}' does not fit its schema: ${summaryOf(issues)}`;
    throw new EchoDataError(what, issues);
  };
  const failed = (error: unknown): EchoArgumentError =>
    new EchoArgumentError(`the schema of '${name}' for queue '${queue}' threw; its error is the cause`, error);
  let result: ReturnType<typeof validate>;
  try {
    result = validate(schema, data);
  } catch (error) {
    throw failed(error);
  }
  if (result instanceof Promise) {
    return result.then(refuse, (error) => {
      throw failed(error);
    });
  }
  refuse(result);
  return undefined;
}

/**
 * A handler that gets the data as its schema puts it out. A job whose data does not fit is buried at once, since it would fit no
 * better the next time; a schema that throws fails the attempt. Names that the queue does not declare go through as they are.
 * Without schemas it is the same handler.
 */
export function validating(queue: string | Queue | undefined, handler: Handler): Handler {
  const schemas = typeof queue === 'object' ? queue.schemas : undefined;
  if (schemas === undefined) return handler;
  const run = (job: Job, result: SchemaResult<unknown>): unknown => {
    if (result.issues) throw new InvalidData(issuesOf(result.issues));
    (job as { data: unknown }).data = result.value;
    return handler(job);
  };
  return (job) => {
    const schema = schemaOf(schemas, job.name);
    if (schema === undefined) return handler(job);
    const result = validate(schema, job.data);
    if (!(result instanceof Promise)) return run(job, result);
    // Timed out or given back meanwhile: its handler need not begin.
    return result.then((answer) => (job.finished ? undefined : run(job, answer)));
  };
}

function schemaOf(schemas: Schemas, name: string): StandardSchema | undefined {
  return Object.hasOwn(schemas, name) ? schemas[name] : undefined; // names come from outside: 'toString' is none
}

/** Some libraries answer promises of their own make. */
function validate(schema: StandardSchema, data: unknown): SchemaResult<unknown> | Promise<SchemaResult<unknown>> {
  const result = schema['~standard'].validate(data);
  return typeof (result as Partial<Promise<unknown>>).then === 'function' ? Promise.resolve(result) : result;
}

function undeclared(queue: string, schemas: Schemas, name: string): EchoArgumentError {
  const names = Object.keys(schemas);
  const said = names.slice(0, MOST_NAMES_SAID).join(', ');
  const more = names.length > MOST_NAMES_SAID ? ', ...' : '';
  return new EchoArgumentError(`queue '${queue}' declares no job ${show(name)}. Declared are ${said}${more}`);
}
