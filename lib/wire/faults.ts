import { EchoArgumentError, EchoError, EchoStateError, EchoStoreError, EchoWireError } from '../kernel/errors.js';

/** The server answered, but not yet as a primary that is ready; the same call may succeed in a moment. */
const NOT_READY = new Set(['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY', 'UNBLOCKED']);
/** The node is not, or no longer, the one to talk to: a new connection may find the right one. */
const WRONG_NODE = new Set(['READONLY', 'UNBLOCKED', 'MASTERDOWN']);
const RETRYABLE = new Set([...NOT_READY, 'OOM', 'NOREPLICAS', 'MISCONF', 'MOVED', 'ASK']);

export const UNREACHABLE = 'ECHO_UNREACHABLE';

/** Servers before 7.0 wrap what a command inside a script was refused with. */
const IN_A_SCRIPT = /^ERR Error running script\b.*? -([A-Z][A-Z0-9]*)\b/s;
/** A refusal of rights has no tag of its own in a script: until 7.0 these words, from 7.2 on and in Valkey those. */
const NO_RIGHTS =
  /^ERR (?:Error running script\b.*?: )?(?:The user executing the script can't |ACL failure in script: )/s;

/** The first word of a server's error. Undefined for anything the server did not say. */
export function tagOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name !== 'ReplyError' && !('command' in error)) return undefined;
  const { message } = error;
  if (message.startsWith('ERR ')) {
    if (NO_RIGHTS.test(message)) return 'NOPERM';
    const inner = IN_A_SCRIPT.exec(message)?.[1];
    if (inner) return inner;
  }
  return /^([A-Z][A-Z0-9]*)\b/.exec(message)?.[1];
}

export function isNotReady(error: unknown): boolean {
  return NOT_READY.has(tagOf(error) ?? '');
}

export function isWrongNode(error: unknown): boolean {
  return WRONG_NODE.has(tagOf(error) ?? '');
}

/** Turns whatever a client raised into one of ours. */
export function asEchoError(error: unknown): EchoError {
  if (error instanceof EchoError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const tag = tagOf(error);
  switch (tag) {
    case undefined:
      return new EchoStoreError(UNREACHABLE, `the server cannot be reached: ${message}`, true, error);
    case 'EMQARG':
      return new EchoArgumentError(message.slice(7), error);
    case 'EMQSTATE':
      return new EchoStateError(message.slice(9), tag);
    case 'EMQWIRE':
      return new EchoWireError(message.slice(8));
    default:
      return new EchoStoreError(tag, `the server refused: ${message}`, RETRYABLE.has(tag), error);
  }
}

export function connectionLost(): EchoStoreError {
  return new EchoStoreError(UNREACHABLE, 'the connection to the server was lost before the answer came', true);
}
