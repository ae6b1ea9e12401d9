import { EchoError } from '../kernel/errors.js';
import type { EnqueueResult } from './enqueuer.js';

/** Calls of an enqueueMany failed; the others, if any, have landed. `code` and `retryable` are those of the first. */
export class EchoBulkError extends EchoError {
  constructor(
    cause: EchoError,
    /** In the order of the items: what landed, and undefined where it is unknown or refused. */
    readonly results: (EnqueueResult | undefined)[],
    /** The ids in the order of the items: enqueue them again under these. */
    readonly ids: string[],
  ) {
    super(cause.code, `some of ${ids.length} jobs did not land: ${cause.message}`, cause.retryable, cause);
  }
}
