import { type Type, ValidationPipe, type ValidationPipeOptions } from '@nestjs/common';
import { show } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import type { SchemaIssue, StandardSchema } from '../kernel/schema.js';

/** A class's own data, as it can be written down: without its methods. */
export type PlainOf<Dto> = {
  // biome-ignore lint/suspicious/noExplicitAny: any method
  [Key in keyof Dto as Dto[Key] extends (...args: any[]) => unknown ? never : Key]: Dto[Key];
};

/** Those of ValidationPipe that say how to validate, not how to answer HTTP. */
export type DtoSchemaOptions = {
  [Name in keyof ValidationPipeOptions as Exclude<Name, OfHttp>]?: ValidationPipeOptions[Name] | undefined;
};

type OfHttp = 'exceptionFactory' | 'errorHttpStatusCode' | 'disableErrorMessages' | 'errorFormat' | 'expectedType';

/** What class-validator answers, as far as it is used here. */
interface Refused {
  readonly property: string;
  readonly constraints?: Readonly<Record<string, string>>;
  readonly children?: readonly Refused[];
}

/**
 * A class with class-validator decorators as a schema for `defineQueue`. The handler gets an instance of the class, or with
 * `transform: false` the data as it came. Validation is that of Nest's `ValidationPipe`, whose options it takes.
 *
 * Needs class-validator and class-transformer. Nest loads them, at once, and ends the process where one is missing, saying which.
 * @throws EchoArgumentError unless it gets a class
 */
export function dtoSchema<Dto extends object>(
  type: Type<Dto>,
  options: DtoSchemaOptions = {},
): StandardSchema<PlainOf<Dto>, Dto> {
  // Classes that ValidationPipe lets everything through for.
  if (typeof type !== 'function' || [String, Boolean, Number, Array, Object, Buffer, Date].includes(type as never)) {
    throw new EchoArgumentError(`dtoSchema takes a class with class-validator decorators, got ${nameOf(type)}`);
  }
  // To the pipe, and to class-validator, an undefined that is written out is not always the default.
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const pipe = new ValidationPipe({ transform: true, ...given, exceptionFactory: (errors) => new Refusal(errors) });
  const validate = async (value: unknown) => {
    // Nest 10 and 11 let an array, or nothing but a number, through a class that requires nothing.
    if (value !== undefined && !isRecord(value)) return { issues: [{ message: 'must be an object' }] };
    try {
      return { value: (await pipe.transform(value, { type: 'body', metatype: type })) as Dto };
    } catch (error) {
      if (error instanceof Refusal) return { issues: error.issues };
      throw error;
    }
  };
  return { '~standard': { version: 1, vendor: 'nestjs-echomq', validate } };
}

/** What the pipe throws for data that does not fit; whatever else it throws is a fault of the class. */
class Refusal extends Error {
  readonly issues: readonly SchemaIssue[];

  constructor(errors: readonly Refused[]) {
    super('the data does not fit');
    const issues = errors.flatMap((error) => issuesOf(error, []));
    this.issues = issues.length > 0 ? issues : [{ message: 'is not valid' }];
  }
}

/** class-validator nests by property; a schema's issue has the whole path. */
function issuesOf({ property, constraints = {}, children = [] }: Refused, above: readonly string[]): SchemaIssue[] {
  const path = [...above, property];
  const own = Object.values(constraints).map((message) => ({ message, path }));
  return [...own, ...children.flatMap((child) => issuesOf(child, path))];
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function nameOf(type: unknown): string {
  return typeof type === 'function' ? type.name : show(type);
}
