import { describe, expect, it } from '@jest/globals';
import { assertBoolean, assertInteger, assertKnownKeys, assertOption, show } from '../../lib/kernel/arguments.js';
import { EchoArgumentError, EchoConfigError } from '../../lib/kernel/errors.js';

describe('a whole number', () => {
  it.each([0, 5, Number.MAX_SAFE_INTEGER])('may be %d', (value) => {
    expect(() => assertInteger(value, 'count', 0)).not.toThrow();
  });

  it.each([-1, 1.5, Number.NaN, Number.NEGATIVE_INFINITY, '5', null, undefined, 5n, [5], new Number(5)])(
    'may not be %p',
    (value) => {
      expect(() => assertInteger(value, 'count', 0)).toThrow(EchoArgumentError);
      expect(() => assertInteger(value, 'count', 0)).toThrow(/^count must be a whole number from 0, got /);
    },
  );

  it.each([2 ** 53, 2 ** 60, Number.POSITIVE_INFINITY])('may not be %d, and is told how large it may be', (value) => {
    const message = `count must be a whole number from 0 to 9007199254740991, got ${value}`;
    expect(() => assertInteger(value, 'count', 0)).toThrow(new EchoArgumentError(message));
  });

  it('is held within its bounds, and names them', () => {
    expect(() => assertInteger(1, 'count', 1, 500)).not.toThrow();
    expect(() => assertInteger(500, 'count', 1, 500)).not.toThrow();
    expect(() => assertInteger(501, 'count', 1, 500)).toThrow('count must be a whole number from 1 to 500, got 501');
  });

  it('that is an option is the business of the configuration', () => {
    expect(() => assertOption(0, 'leaseMs', 1)).toThrow(EchoConfigError);
    expect(() => assertOption(0, 'leaseMs', 1)).toThrow(/option 'leaseMs'/);
  });
});

describe('a flag', () => {
  it('is true or false', () => {
    expect(() => assertBoolean(false, 'force')).not.toThrow();
    for (const value of [0, 1, 'true', undefined, null]) {
      expect(() => assertBoolean(value, 'force')).toThrow(EchoConfigError);
    }
  });
});

describe('options', () => {
  const known = new Set(['delayMs', 'priority']);

  it('may be left out or known', () => {
    expect(() => assertKnownKeys({}, known, 'enqueue')).not.toThrow();
    expect(() => assertKnownKeys({ priority: 1 }, known, 'enqueue')).not.toThrow();
  });

  it('that are misspelt are refused by name, with those that are known', () => {
    expect(() => assertKnownKeys({ delay: 1 }, known, 'enqueue')).toThrow(EchoArgumentError);
    expect(() => assertKnownKeys({ delay: 1 }, known, 'enqueue')).toThrow(/'delay'.*delayMs, priority/);
    expect(() => assertKnownKeys({ delay: 1 }, known, 'enqueue', EchoConfigError)).toThrow(EchoConfigError);
  });

  it('that have another name here are told by it, where there is such an option', () => {
    const batch = new Set(['size', 'waitMs']);
    expect(() => assertKnownKeys({ delay: 1 }, known, 'enqueue')).toThrow(/'delay' \(here: delayMs\)/);
    expect(() => assertKnownKeys({ delay: 1 }, batch, 'batch')).toThrow(/'delay'\. Known/);
    expect(() => assertKnownKeys({ timeout: 1 }, batch, 'batch')).toThrow(/'timeout' \(here: waitMs\)/);
    expect(() => assertKnownKeys({ jobId: 1 }, known, 'enqueue')).toThrow(/\(here: id, from jobs\.mintId\(\)\)/);
  });

  it.each([null, undefined, 5, 'x', [1], () => 1])('are no %p', (value) => {
    expect(() => assertKnownKeys(value, known, 'enqueue')).toThrow(/enqueue must be an object/);
  });
});

describe('a value in a message', () => {
  it('is quoted, shortened, or named by its type', () => {
    expect(['a"b', 'x'.repeat(100), 5, null, undefined, {}, [1], () => 1, 5n, Symbol('s')].map(show)).toEqual([
      '"a\\"b"',
      `"${'x'.repeat(60)}..."`,
      '5',
      'null',
      'undefined',
      'object',
      'array',
      'function',
      '5n',
      'Symbol(s)',
    ]);
  });
});
