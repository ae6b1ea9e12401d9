import fc from 'fast-check';
import type { Arg, Reply } from '../../lib/wire/reply.js';

/** A request, as the protocol of the server says it, argument by argument. */
export function spelt(name: string, args: readonly Arg[]): Buffer {
  const parts = [name, ...args].map((arg) => (typeof arg === 'object' ? arg : Buffer.from(String(arg))));
  return Buffer.concat([
    Buffer.from(`*${parts.length}\r\n`),
    ...parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]),
  ]);
}

/** Something that a server says: its bytes, and what is to be read of it. */
export interface Saying {
  readonly bytes: Buffer;
  /** Absent where it answers nothing. */
  readonly read?: Reply | Refused;
}

/** An error as the whole of an answer. */
export interface Refused {
  readonly refused: string;
}

const line = (kind: string, said: string | number) => Buffer.from(`${kind}${said}\r\n`);
const blob = (kind: string, said: Buffer) => Buffer.concat([line(kind, said.length), said, Buffer.from('\r\n')]);

export const bulk = (said: Buffer | string): Saying => {
  const bytes = Buffer.from(said);
  return { bytes: blob('$', bytes), read: bytes };
};
export const simple = (said: string): Saying => ({ bytes: line('+', said), read: Buffer.from(said) });
export const error = (said: string): Saying => ({ bytes: line('-', said), read: { refused: said } });
export const integer = (value: number): Saying => ({ bytes: line(':', value), read: value });
export const nothing = (how: '$-1' | '*-1' | '_'): Saying => ({ bytes: Buffer.from(`${how}\r\n`), read: null });

/** Elements, some of which may answer nothing; an error is read as its text. */
export function list(kind: '*' | '~' | '%', elements: readonly Saying[]): Saying {
  const told = elements.filter(({ read }) => read !== undefined);
  return {
    bytes: Buffer.concat([
      line(kind, kind === '%' ? told.length / 2 : told.length),
      ...elements.map(({ bytes }) => bytes),
    ]),
    read: told.map(({ read }) => (isRefused(read!) ? Buffer.from(read.refused) : read!)),
  };
}

/** What is said besides: a message, or what is to be known of the element behind it. */
export function aside(kind: '>' | '|', elements: readonly Saying[]): Saying {
  const { bytes } = list(kind === '|' ? '%' : '*', elements);
  return { bytes: Buffer.concat([Buffer.from(kind), bytes.subarray(1)]) };
}

export function isRefused(read: Reply | Refused): read is Refused {
  return typeof read === 'object' && read !== null && 'refused' in read;
}

const anyLine = fc.string({ maxLength: 30 }).map((said) => said.replace(/[\r\n]/g, ''));
const anyBytes = fc
  .oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.constantFrom('', '\r\n', '$5\r\nhello\r\n', '*1\r\n', '-ERR\r\n').map((said) => Buffer.from(said)),
  )
  .map((said) => Buffer.from(said));

/** One that holds no others. */
const leaf: fc.Arbitrary<Saying> = fc.oneof(
  { weight: 4, arbitrary: anyBytes.map(bulk) },
  { weight: 2, arbitrary: fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -3, max: 11 })).map(integer) },
  anyLine.map(simple),
  anyLine.map(error),
  fc.constantFrom('$-1' as const, '*-1' as const, '_' as const).map(nothing),
  anyLine.map((said) => ({ bytes: Buffer.from(`!${blob('', Buffer.from(said))}`), read: { refused: said } })),
  anyBytes.map((said) => ({ bytes: blob('=', Buffer.concat([Buffer.from('txt:'), said])), read: said })),
  fc.boolean().map((yes) => ({ bytes: line('#', yes ? 't' : 'f'), read: yes ? 1 : 0 })),
  fc.constantFrom('1.5', '-inf', '10', 'nan').map((said) => ({ bytes: line(',', said), read: Buffer.from(said) })),
  fc.bigInt().map((value) => ({ bytes: line('(', String(value)), read: Buffer.from(String(value)) })),
);

const even = <T>(all: T[]): T[] => all.slice(0, all.length - (all.length % 2));

const { tree } = fc.letrec<{ tree: Saying; told: Saying; attribute: Saying }>((tie) => ({
  /** With what may stand before it. */
  told: fc
    .tuple(fc.option(tie('attribute'), { freq: 8 }), tie('tree'))
    .map(([before, said]) => (before ? { ...said, bytes: Buffer.concat([before.bytes, said.bytes]) } : said)),
  attribute: fc.array(leaf, { maxLength: 4 }).map((elements) => aside('|', even(elements))),
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 3, arbitrary: leaf },
    fc.array(tie('told'), { maxLength: 6 }).map((elements) => list('*', elements)),
    fc.array(tie('told'), { maxLength: 6 }).map((elements) => list('~', elements)),
    fc.array(tie('told'), { maxLength: 6 }).map((elements) => list('%', even(elements))),
  ),
}));

const push = fc.array(leaf, { maxLength: 4 }).map((elements) => aside('>', elements));

/** Anything that a server may say, one after the other. */
export const conversation: fc.Arbitrary<Saying[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: tree },
    push,
    fc.array(leaf, { maxLength: 3 }).map((e) => aside('|', even(e))),
  ),
  { maxLength: 8 },
);

/** The same bytes in pieces, at any places. */
export function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes.length === 0 ? bytes.length : sizes[n % sizes.length]!;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}
