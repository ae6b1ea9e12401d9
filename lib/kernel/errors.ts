/**
 * Errors that reach a user. Each class has a stable `code` and a `retryable` flag; nobody has to parse a message.
 * Refusals inside a race ('gone', 'stale', ...) are values, not errors: see outcome.ts.
 */
export abstract class EchoError extends Error {
  /** Stable, machine-readable. */
  readonly code: string;
  /** True when the same call may succeed later without being changed. */
  readonly retryable: boolean;

  protected constructor(code: string, message: string, retryable: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.retryable = retryable;
  }
}

/** An option is missing, unknown or out of range. Raised at connect, consume or boot; never later. */
export class EchoConfigError extends EchoError {
  constructor(message: string, cause?: unknown) {
    super('ECHO_CONFIG', message, false, cause);
  }
}

/** Handlers cannot be wired as declared (two for one name, a processor without a queue). Raised at boot. */
export class EchoRegistrationError extends EchoError {
  constructor(message: string) {
    super('ECHO_REGISTRATION', message, false);
  }
}

/**
 * An argument makes no sense; nothing was written. What a filter of `removeMany` or `reprocessMany` answers is seen
 * under way: then nothing more is.
 */
export class EchoArgumentError extends EchoError {
  constructor(message: string, cause?: unknown) {
    super('EMQARG', message, false, cause);
  }
}

/**
 * The server refused, or could not be reached. `code` is the server's tag (`OOM`, `READONLY`, `EMQTYPE`, ...),
 * `ECHO_UNREACHABLE`, `ECHO_BUFFER_FULL` (too many jobs wait for it to come back), or `ECHO_CONFLICT` (others change
 * the same job all the while).
 */
export class EchoStoreError extends EchoError {
  constructor(code: string, message: string, retryable: boolean, cause?: unknown) {
    super(code, message, retryable, cause);
  }
}

/** No answer within the configured time. Whether the server did the work is unknown; a minted id makes a repeat safe. */
export class EchoTimeoutError extends EchoError {
  constructor(message: string, cause?: unknown) {
    super('ECHO_TIMEOUT', message, true, cause);
  }
}

/**
 * The call does not apply in the present state. `code` is `ECHO_STATE` (a closed client, a queue with running jobs),
 * `ECHO_STALE` (the claim is over), `ECHO_NOT_ENDED` (a job has no result yet), `ECHO_NO_ENVELOPE` (a payload that the
 * codec has not made), or the server's tag.
 */
export class EchoStateError extends EchoError {
  constructor(message: string, code = 'ECHO_STATE') {
    super(code, message, false);
  }
}

/** A job's lane holds as many waiting jobs as it may (`maxWaiting`): nothing landed. `retryable`, once some have run. */
export class EchoLaneFullError extends EchoError {
  constructor(
    queue: string,
    /** A name, or a group's and a lane's. */
    readonly lane: string | readonly [string, string],
  ) {
    super('ECHO_LANE_FULL', `queue '${queue}': lane ${JSON.stringify(lane)} has no room for more waiting jobs`, true);
  }
}

/** A job that somebody waits for did not end well. `code` is `ECHO_JOB_DEAD` or `ECHO_JOB_REMOVED`. */
export class EchoJobError extends EchoError {
  /** @internal */
  constructor(
    code: 'ECHO_JOB_DEAD' | 'ECHO_JOB_REMOVED',
    message: string,
    readonly jobId: string,
    /** What its row keeps of why it died: of an error its stack. */
    readonly reason: string,
  ) {
    super(code, message, false);
  }

  /** @internal */
  static dead(id: string, reason: string): EchoJobError {
    return new EchoJobError('ECHO_JOB_DEAD', `job ${id} is dead: ${reason.split('\n', 1)[0]}`, id, reason);
  }

  /** @internal removed, or completed and not kept: the server knows nothing of it */
  static removed(id: string): EchoJobError {
    return new EchoJobError(
      'ECHO_JOB_REMOVED',
      `job ${id} is gone: it was removed, or has ended and was not kept`,
      id,
      '',
    );
  }
}

/** The server's keys belong to another generation of the wire. */
export class EchoWireError extends EchoError {
  constructor(message: string) {
    super('EMQWIRE', message, false);
  }
}
