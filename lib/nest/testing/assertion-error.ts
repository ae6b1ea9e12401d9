import { EchoError } from '../../kernel/errors.js';

/** What a test said about the jobs is not so. The message lists what is there. */
export class EchoAssertionError extends EchoError {
  constructor(message: string) {
    super('ECHO_ASSERTION', message, false);
  }
}
