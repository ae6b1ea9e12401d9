import type { Reply } from '../reply.js';

/** The server refused; the first word of the message says why. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** What comes is not what a server says. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Told of what was read, in order. */
export interface ReplySink {
  answer(reply: Reply): void;
  refusal(error: ReplyError): void;
}

/** How each kind of answer begins; those from `MAP` on are of the third version of the protocol. */
const [BULK, INTEGER, ARRAY, SIMPLE, ERROR] = bytes('$:*+-');
const [MAP, SET, PUSH, ATTRIBUTE, NULL, BOOLEAN, DOUBLE, BIG_NUMBER, BLOB_ERROR, VERBATIM] = bytes('%~>|_#,(!=');
const [ZERO, MINUS, CR, LF, TRUE, FALSE] = bytes('0-\r\ntf');

/** An answer that has begun with its number of elements. */
interface Open {
  readonly kind: number;
  readonly elements: (Reply | ReplyError)[];
  left: number;
}

const NOTHING_YET: Buffer = Buffer.alloc(0);

/**
 * Reads answers, however they are cut into chunks. Strings stay the bytes they came as; an error within an answer takes the place of
 * its element as its text. Nothing is read twice but the element that a chunk cut through, and one that is long only when all of it is
 * there. What answers nothing (messages, attributes) is passed over.
 */
export class ReplyReader {
  private chunk = NOTHING_YET;
  private at = 0;
  /** Chunks that came since, and how many bytes are missing before it is worth going on. */
  private more: Buffer[] = [];
  private missing = 0;
  private readonly open: Open[] = [];

  constructor(private readonly sink: ReplySink) {}

  /** @throws ProtocolError */
  feed(chunk: Buffer): void {
    if (this.missing === 0) {
      this.chunk = chunk;
    } else {
      this.more.push(chunk);
      this.missing -= chunk.length;
      if (this.missing > 0) return;
      this.chunk = Buffer.concat([this.chunk.subarray(this.at), ...this.more]);
      this.more = [];
      this.missing = 0;
    }
    this.at = 0;
    while (this.at < this.chunk.length) {
      const from = this.at;
      this.element();
      if (this.missing > 0) {
        this.at = from;
        return;
      }
    }
    this.chunk = NOTHING_YET;
  }

  /** Reads one element, or learns how many bytes of it are missing. */
  private element(): void {
    const kind = this.chunk[this.at++]!;
    switch (kind) {
      case BULK:
      case VERBATIM:
      case BLOB_ERROR:
        this.string(kind);
        break;
      case INTEGER:
        this.integer();
        break;
      case ARRAY:
      case SET:
      case PUSH:
      case MAP:
      case ATTRIBUTE:
        this.list(kind);
        break;
      case SIMPLE:
      case ERROR:
      case DOUBLE:
      case BIG_NUMBER:
      case BOOLEAN:
      case NULL:
        this.line(kind);
        break;
      default:
        throw new ProtocolError(`the server sent byte ${kind} where an answer should begin`);
    }
  }

  private string(kind: number): void {
    const length = this.length(kind === BULK);
    if (length === undefined) return;
    const start = this.at;
    const missing = start + length + 2 - this.chunk.length;
    if (missing > 0) {
      this.missing = missing;
      return;
    }
    const end = start + length;
    if (this.chunk[end] !== CR || this.chunk[end + 1] !== LF) {
      throw new ProtocolError(`the server sent a string of ${length} bytes that does not end there`);
    }
    this.at = end + 2;
    const said = this.chunk.subarray(start, end);
    if (kind === BULK) this.take(said);
    else if (kind === VERBATIM)
      this.take(said.subarray(4)); // behind its format: `txt:`
    else this.take(new ReplyError(said.toString()));
  }

  private integer(): void {
    const value = this.number();
    if (this.missing === 0) this.take(value);
  }

  private list(kind: number): void {
    const length = this.length(kind === ARRAY);
    if (length === undefined) return;
    const left = kind === MAP || kind === ATTRIBUTE ? 2 * length : length;
    this.open.push({ kind, elements: [], left });
    if (left === 0) this.close();
  }

  private line(kind: number): void {
    const end = this.chunk.indexOf('\r\n', this.at);
    if (end < 0) {
      this.missing = 1;
      return;
    }
    const said = this.chunk.subarray(this.at, end);
    this.at = end + 2;
    if (kind === ERROR) this.take(new ReplyError(said.toString()));
    else if (kind === NULL) this.take(null);
    else if (kind === BOOLEAN) this.boolean(said);
    else this.take(said);
  }

  private boolean(said: Buffer): void {
    if (said.length !== 1 || (said[0] !== TRUE && said[0] !== FALSE)) {
      throw new ProtocolError('the server sent what is neither true nor false');
    }
    this.take(said[0] === TRUE ? 1 : 0);
  }

  /** Of a string or a list; undefined when bytes of it are missing, or there is none: that is then taken. */
  private length(mayBeNone: boolean): number | undefined {
    const length = this.number();
    if (this.missing > 0) return undefined;
    if (length >= 0) return length;
    if (length !== -1 || !mayBeNone) throw new ProtocolError(`the server sent a length of ${length}`);
    this.take(null);
    return undefined;
  }

  /** The rest of a line that is an integer. */
  private number(): number {
    const { chunk } = this;
    let at = this.at;
    const negative = chunk[at] === MINUS;
    if (negative) at += 1;
    const digits = at;
    let value = 0;
    for (; at < chunk.length; at++) {
      const digit = chunk[at]! - ZERO!;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at + 2 > chunk.length) {
      this.missing = at + 2 - chunk.length;
      return 0;
    }
    if (chunk[at] !== CR || chunk[at + 1] !== LF || at === digits) {
      throw new ProtocolError('the server sent a number that is none');
    }
    this.at = at + 2;
    return negative ? -value : value;
  }

  private take(value: Reply | ReplyError): void {
    const list = this.open[this.open.length - 1];
    if (list !== undefined) {
      list.elements.push(value);
      list.left -= 1;
      if (list.left === 0) this.close();
    } else if (value instanceof ReplyError) {
      this.sink.refusal(value);
    } else {
      this.sink.answer(value);
    }
  }

  private close(): void {
    const { kind, elements } = this.open.pop()!;
    if (kind === PUSH || kind === ATTRIBUTE) return;
    this.take(elements.map(spoken));
  }
}

function spoken(element: Reply | ReplyError): Reply {
  return element instanceof ReplyError ? Buffer.from(element.message) : element;
}

function bytes(characters: string): number[] {
  return [...Buffer.from(characters)];
}
