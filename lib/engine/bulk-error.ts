import { EchoError } from '../kernel/errors.js';
import type { EnqueueResult } from './enqueuer.js';
import type { AddedFlow } from './flow-calls.js';

/** Calls of an enqueueMany failed; the others, if any, have landed. `code` and `retryable` are those of the first. */
export class EchoBulkError extends EchoError {
  constructor(
    cause: EchoError,
    /** In the order of the items: what landed, and undefined where it is unknown or refused. */
    readonly results: (EnqueueResult | undefined)[],
    /** The ids in the order of the items: enqueue them again under these. */
    readonly ids: string[],
    what = 'jobs',
  ) {
    super(cause.code, `some of ${ids.length} ${what} did not land: ${cause.message}`, cause.retryable, cause);
  }
}

/** Flows of an addMany failed: the same, of flows. `ids` are those of their roots: add them again under these. */
export class EchoFlowsError extends EchoBulkError {
  declare readonly results: (AddedFlow | undefined)[];

  constructor(cause: EchoError, results: (AddedFlow | undefined)[], ids: string[]) {
    super(cause, results, ids, 'flows');
  }
}

type BulkErrorOf<Result> = new (cause: EchoError, results: (Result | undefined)[], ids: string[]) => EchoBulkError;

/** The results, where nothing failed. @throws EchoBulkError, or the one that is given */
export function allLanded<Result extends EnqueueResult>(
  results: readonly (Result | EchoError)[],
  ids: () => string[],
  Failure: BulkErrorOf<Result>,
): Result[] {
  const failure = results.find((result) => result instanceof EchoError);
  if (failure === undefined) return results as Result[];
  throw new Failure(
    failure,
    results.map((result) => (result instanceof EchoError ? undefined : result)),
    ids(),
  );
}
