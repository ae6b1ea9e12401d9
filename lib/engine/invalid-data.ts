import { EchoArgumentError } from '../kernel/errors.js';
import { Discard } from '../kernel/outcome.js';
import type { SchemaIssue } from '../kernel/schema.js';

/** One thing that a schema has against a job's data. */
export interface DataIssue {
  /** Keys from the data's top to the place; empty is the data itself. */
  readonly path: readonly PropertyKey[];
  /** The schema's own words. They may quote the value, which may be a secret: mind where you log them. */
  readonly message: string;
}

/** What was to be enqueued does not fit its schema; nothing was sent. The message says where, `issues` also what. */
export class EchoDataError extends EchoArgumentError {
  constructor(
    message: string,
    readonly issues: readonly DataIssue[],
    cause?: unknown,
  ) {
    super(message, cause);
  }
}

/**
 * The job's data does not fit its schema here: the handler was not called, the job is dead. A {@link Discard}; its message,
 * which the row keeps, says where, and `issues` also what.
 */
export class InvalidData extends Discard {
  constructor(readonly issues: readonly DataIssue[]) {
    super(`invalid data: ${summaryOf(issues)}`);
    this.name = 'InvalidData';
  }
}

export function issuesOf(issues: readonly SchemaIssue[]): DataIssue[] {
  return issues.map(({ message, path = [] }) => ({
    path: path.map((segment) => (typeof segment === 'object' ? segment.key : segment)),
    message,
  }));
}

const MOST_PLACES = 5;
const LONGEST_PLACE = 100;

/**
 * How many issues, and where. Not the schema's words: they may quote the value, and this goes into logs and into rows. Never
 * longer than 600 characters.
 */
export function summaryOf(issues: readonly DataIssue[]): string {
  const places = new Set<string>();
  for (const { path } of issues) {
    if (places.size > MOST_PLACES) break;
    places.add(placeOf(path));
  }
  const shown = [...places].slice(0, MOST_PLACES).join(', ');
  const count = `${issues.length} ${issues.length === 1 ? 'issue' : 'issues'}`;
  return `${count} at ${shown}${places.size > MOST_PLACES ? ' and elsewhere' : ''}`;
}

/** As one would write it in code: `items[3].price`. Keys may come from outside: what is no plain name is quoted. */
function placeOf(path: readonly PropertyKey[]): string {
  let place = '';
  for (const key of path) {
    const text = String(key);
    if (/^\d{1,15}$/.test(text)) place += `[${text}]`;
    else if (/^[A-Za-z_$][\w$]{0,60}$/.test(text)) place += place === '' ? text : `.${text}`;
    else place += `[${JSON.stringify(text.slice(0, 60))}]`;
    if (place.length > LONGEST_PLACE) return `${place.slice(0, LONGEST_PLACE)}...`;
  }
  return place === '' ? 'its top' : place;
}
