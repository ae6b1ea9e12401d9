import { assertSize, showAnswer } from '../kernel/arguments.js';
import type { Codec } from '../kernel/codec.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { failureText } from './failure-text.js';

/**
 * What a codec has made, where it may be sent: anything else would spoil the call for all that goes out with it.
 * @throws EchoArgumentError
 */
export function assertEncoded(
  made: unknown,
  method: 'encode' | 'encodeResult',
  what: string,
  maxBytes: number,
): asserts made is string | Buffer {
  if (typeof made !== 'string' && !Buffer.isBuffer(made)) {
    throw new EchoArgumentError(`the codec's ${method} must answer a string or a Buffer, got ${showAnswer(made)}`);
  }
  assertSize(made, maxBytes, what);
}

/** A handler's value as it is kept. @throws EchoArgumentError when it cannot be: the attempt then fails with it */
export function encodedResult(value: unknown, codec: Codec, maxBytes: number): string | Buffer {
  return encodedAs('result', value, codec, maxBytes);
}

/** What a handler says of its progress, likewise. @throws EchoArgumentError */
export function encodedProgress(value: unknown, codec: Codec, maxBytes: number): string | Buffer {
  return encodedAs('progress', value, codec, maxBytes);
}

function encodedAs(what: 'result' | 'progress', value: unknown, codec: Codec, maxBytes: number): string | Buffer {
  let made: string | Buffer;
  try {
    made = codec.encodeResult(value);
  } catch (error) {
    if (!(error instanceof EchoArgumentError)) {
      throw new EchoArgumentError(`the codec cannot encode the ${what}: ${failureText(error)}`, error);
    }
    if (what === 'result') throw error;
    throw new EchoArgumentError(error.message.replace(/^result\b/, what), error); // for the codec all are results
  }
  assertEncoded(made, 'encodeResult', `the ${what}`, maxBytes);
  return made;
}
