import { describe, expect, it } from '@jest/globals';
import { EchoArgumentError, EchoConfigError } from '../../lib/kernel/errors.js';
import { assertQueueName, Keyspace } from '../../lib/kernel/keyspace.js';

describe('a queue name', () => {
  const good = [
    'q',
    'pending',
    'active',
    'job:JOB0KHTOWnGLuC',
    'meta',
    'JOB0KHTOWnGLuC',
    'two words',
    'a:b/c*[d]?^e\\f-g',
    'größe',
    '🦊',
    'x'.repeat(200),
    'é'.repeat(100),
    '🦊'.repeat(50),
  ];
  it.each(good)('may be %j', (name) => {
    expect(() => assertQueueName(name)).not.toThrow();
    expect(new Keyspace().queue(name).pending).toBe(`emq:{${name}}:pending`);
  });

  const bad: [why: string, name: unknown, says: RegExp][] = [
    ['empty', '', /empty/],
    ['an opening brace', 'a{b', /brace/],
    ['a closing brace', 'a}b', /brace/],
    ['NUL', 'a\0b', /control/],
    ['a line feed', 'a\nb', /control/],
    ['delete', 'a\x7fb', /control/],
    ['a control character beyond ASCII', 'a\x85b', /control/],
    ['a leading blank', ' a', /blank/],
    ['a trailing blank', 'a ', /blank/],
    ['a leading no-break space', '\u00a0a', /blank/],
    ['blanks alone', '   ', /blank/],
    ['a lone high surrogate', 'a\ud83e', /surrogate/],
    ['a lone low surrogate', '\udd8aa', /surrogate/],
    ['201 bytes', 'x'.repeat(201), /200 bytes/],
    ['201 bytes in fewer characters', `${'é'.repeat(100)}x`, /200 bytes/],
    ['a number', 7, /string/],
    ['undefined', undefined, /string/],
    ['an object', {}, /string/],
  ];
  it.each(bad)('may not be %s', (_, name, says) => {
    expect(() => assertQueueName(name)).toThrow(says);
    expect(() => new Keyspace().queue(name as string)).toThrow(EchoArgumentError);
  });
});

describe('a prefix', () => {
  it.each(['emq', 'A-1_b.c:d', 'x'.repeat(64)])('may be %j', (prefix) => {
    expect(new Keyspace(prefix).queue('q').base).toBe(`${prefix}:{q}:`);
  });

  it.each(['', 'x'.repeat(65), 'a b', 'a{b}', 'ä', 'a\n', 'a*'])('may not be %j', (prefix) => {
    expect(() => new Keyspace(prefix)).toThrow(EchoConfigError);
  });
});

describe('a keyspace', () => {
  it('spells the keys of the wire', () => {
    const keys = new Keyspace().queue('q');
    expect(keys).toMatchObject({
      queue: 'q',
      base: 'emq:{q}:',
      pending: 'emq:{q}:pending',
      active: 'emq:{q}:active',
      schedule: 'emq:{q}:schedule',
      dead: 'emq:{q}:dead',
      waiting: 'emq:{q}:waiting',
      paused: 'emq:{q}:paused',
      leader: 'emq:{q}:leader',
      version: 'emq:{q}:version',
      beatChannel: 'emq:{q}:beat',
    });
    expect(keys.row('JOB0KHTOWnGLuC')).toBe('emq:{q}:job:JOB0KHTOWnGLuC');
    expect(keys.wakeChannel('p1')).toBe('emq:{q}:w:p1');
  });

  it('spells the keys of the prefix', () => {
    const { version, nodes, nodeOwners } = new Keyspace('my');
    expect([version, nodes, nodeOwners]).toEqual(['{my}:version', '{my}:nodes', '{my}:nodes:owner']);
  });

  it('makes the keys of a queue once', () => {
    const keyspace = new Keyspace();
    expect(keyspace.queue('q')).toBe(keyspace.queue('q'));
    expect(keyspace.queue('q')).not.toBe(keyspace.queue('r'));
  });
});
