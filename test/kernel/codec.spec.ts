import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { jsonCodec, travellingOptions } from '../../lib/kernel/codec.js';
import { EchoArgumentError } from '../../lib/kernel/errors.js';

const bytes = (text: string | Buffer) => Buffer.from(text as string);

describe('the JSON envelope', () => {
  it('brings back name, data and options', () => {
    const opts = { attempts: 5, backoff: { type: 'fixed' as const, delayMs: 10 } };
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.jsonValue(),
        fc.constantFrom(undefined, opts),
        (name, data, o) => {
          const decoded = jsonCodec.decode(bytes(jsonCodec.encode(name, data, o)));
          expect(decoded).toEqual({ name, data: JSON.parse(JSON.stringify(data)), opts: o });
        },
      ),
    );
  });

  it('leaves absent parts out', () => {
    expect(jsonCodec.encode('mail', undefined, undefined)).toBe('{"name":"mail"}');
    expect(jsonCodec.encode('mail', null, undefined)).toBe('{"name":"mail","data":null}');
    expect(jsonCodec.encode('mail', undefined, { timeoutMs: 5 })).toBe('{"name":"mail","opts":{"timeoutMs":5}}');
    expect(jsonCodec.decode(bytes('{"name":"mail"}'))).toEqual({ name: 'mail', data: undefined, opts: undefined });
  });

  const foreign = [
    '',
    'hello',
    'null',
    '5',
    '[]',
    '"{}"',
    '{}',
    '{',
    '{"name":"mail"',
    '{"name":5}',
    '{"name":null}',
    '{"Name":"mail"}',
    '{"data":1}',
    '{"name":"mail","data":1,"more":2}',
    '{"name":"mail","__proto__":{"a":1}}',
    ' {"name":"mail"}',
    '\ufeff{"name":"mail"}',
  ];
  it.each(foreign)('leaves %j alone, which is none', (text) => {
    expect(jsonCodec.decode(bytes(text))).toBeUndefined();
  });

  it('never stumbles over bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (junk) => {
        expect(jsonCodec.decode(Buffer.from(junk))).toBeUndefined();
        expect(jsonCodec.decode(Buffer.concat([Buffer.from('{'), junk]))).toBeUndefined();
      }),
    );
  });
});

const circular: Record<string, unknown> = {};
circular.self = circular;
const REFUSED: [what: string, value: unknown][] = [
  ['NaN', Number.NaN],
  ['infinity', Number.POSITIVE_INFINITY],
  ['minus infinity', Number.NEGATIVE_INFINITY],
  ['a function', () => 1],
  ['a symbol', Symbol('s')],
  ['a BigInt', 5n],
  ['a BigInt inside', { deep: [5n] }],
  ['a circle', circular],
  ['a Buffer', Buffer.from('x')],
  ['a Uint8Array', new Uint8Array(2)],
  ['a Buffer inside', { deep: [Buffer.from('x')] }],
  ['a Uint8Array inside', [{ deep: new Uint8Array(2) }]],
  [
    'what throws when it is spelt',
    {
      toJSON: () => {
        throw new Error('no');
      },
    },
  ],
  ['what spells itself as nothing', { toJSON: () => undefined }],
];

describe('what JSON would lose', () => {
  it.each(REFUSED)('is refused as data: %s', (_, value) => {
    expect(() => jsonCodec.encode('mail', value, undefined)).toThrow(EchoArgumentError);
    expect(() => jsonCodec.encode('mail', value, undefined)).toThrow(/^data /);
  });

  it.each(REFUSED)('is refused as a result: %s', (_, value) => {
    expect(() => jsonCodec.encodeResult(value)).toThrow(EchoArgumentError);
    expect(() => jsonCodec.encodeResult(value)).toThrow(/^result /);
  });
});

it('an object that spells itself as nothing is told from one that cannot be spelt', () => {
  const encode = (data: unknown) => () => jsonCodec.encode('mail', data, undefined);
  const refused = 'data cannot be serialised as JSON: it is';
  expect(encode({ toJSON: () => undefined })).toThrow(`${refused} an object whose toJSON answers nothing`);
  expect(encode(() => 1)).toThrow(`${refused} a function`);
});

describe('data that only looks like what is refused', () => {
  it.each([{ type: 'Buffer', data: [1] }, { 0: 'a' }, '{"0":', '"type":"Buffer"', { at: new Date(0) }])(
    'is taken: %j',
    (data) => {
      const decoded = jsonCodec.decode(bytes(jsonCodec.encode('mail', data, undefined)));
      expect(decoded?.data).toEqual(JSON.parse(JSON.stringify(data)));
    },
  );
});

describe('options that travelled', () => {
  const backoff = { type: 'fixed', delayMs: 10 };
  const good = { attempts: 3, backoff, timeoutMs: 0, keepMs: 5 };

  it('are taken when they make sense', () => {
    expect(travellingOptions(good)).toEqual(good);
    expect(travellingOptions({ ...good, more: 1 })).toEqual(good);
  });

  it.each([undefined, null, 5, 'x', true])('are none when they are %p', (value) => {
    expect(travellingOptions(value)).toBeUndefined();
  });

  it.each<[keyof typeof good, unknown[]]>([
    ['attempts', [0, -1, 1.5, '3', Number.NaN, null]],
    ['backoff', ['fixed', {}, { type: 'fixed', delayMs: -1 }, null]],
    ['timeoutMs', [-1, 1.5, '3', 2 ** 53]],
    ['keepMs', [-1, 1.5, '3', {}]],
  ])('lose %s alone, when that makes no sense', (name, bad) => {
    for (const value of bad)
      expect(travellingOptions({ ...good, [name]: value })).toEqual({ ...good, [name]: undefined });
  });
});

describe('a result', () => {
  it.each([
    [undefined, 'null'],
    [null, 'null'],
    ['', '""'],
    [0, '0'],
    [false, 'false'],
    [{ a: [1, 'b'] }, '{"a":[1,"b"]}'],
  ])('%j is spelt %s', (result, text) => {
    expect(jsonCodec.encodeResult(result)).toBe(text);
  });
});
