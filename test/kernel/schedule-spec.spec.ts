import { describe, expect, it } from '@jest/globals';
import { EchoArgumentError } from '../../lib/kernel/errors.js';
import {
  checkedRules,
  checkedTimes,
  readRules,
  readTimes,
  rulesText,
  timesText,
} from '../../lib/kernel/schedule-spec.js';

describe('the times of a schedule', () => {
  it.each([
    [{ cron: '0 8 * * *', tz: 'Europe/Berlin' }, '{"cron":"0 8 * * *","tz":"Europe/Berlin"}'],
    [{ tz: 'UTC', cron: ' 0  8\t* * MON-FRI ' }, '{"cron":"0 8 * * MON-FRI","tz":"UTC"}'],
    [{ cron: '*/10 * * * * *' }, '{"cron":"*/10 * * * * *","tz":"UTC"}'],
    [{ cron: '@daily', tz: undefined }, '{"cron":"@daily","tz":"UTC"}'],
    [{ everyMs: 50 }, '{"everyMs":50}'],
  ])('%j are kept as %s, and read back', (given, text) => {
    const times = checkedTimes(given);
    expect(timesText(times)).toBe(text);
    expect(readTimes(text)).toEqual(times);
  });

  it.each([
    [undefined, /are \{ cron, tz \} or \{ everyMs \}, got undefined/],
    [{}, /are \{ cron, tz \} or \{ everyMs \}/],
    ['* * * * *', /are \{ cron, tz \} or \{ everyMs \}/],
    [{ cron: '* * * * *', everyMs: 1000 }, /unknown option 'everyMs'/],
    [{ everyMs: 1000, tz: 'UTC' }, /unknown option 'tz'/],
    [{ cron: '* * * * *', timezone: 'UTC' }, /unknown option 'timezone'/],
    [{ everyMs: 49 }, /'everyMs' must be a whole number from 50 to 3153600000000, got 49/],
    [{ everyMs: 1000.5 }, /'everyMs' must be a whole number/],
    [{ everyMs: '1000' }, /'everyMs' must be a whole number/],
    [{ everyMs: 3_153_600_000_001 }, /'everyMs' must be a whole number/],
    [{ everyMs: Number.POSITIVE_INFINITY }, /'everyMs' must be a whole number/],
    [{ cron: 5 }, /'cron' must be a string, got 5/],
    [{ cron: undefined }, /'cron' must be a string/],
  ])('%j are refused', (times, message) => {
    expect(() => checkedTimes(times)).toThrow(EchoArgumentError);
    expect(() => checkedTimes(times)).toThrow(message);
  });

  it.each(['', 'Nowhere/City', 'local', '+02:00', 'Europe/Berlin ', 'UTC\0', 7, null, 'E'.repeat(1000)])(
    'are refused in the zone %j',
    (tz) => {
      expect(() => checkedTimes({ cron: '* * * * *', tz })).toThrow(EchoArgumentError);
      expect(() => checkedTimes({ cron: '* * * * *', tz })).toThrow(/option 'tz'/);
    },
  );

  it.each([
    '',
    '   ',
    '*',
    '* * * *',
    '* * * * * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * 32 * *',
    '* * * 13 *',
    '* * * * 8',
    '-5 * * * *',
    '5-1 * * * *',
    '*/0 * * * *',
    '*/61 * * * *',
    '5/5 * * * *',
    '1,,2 * * * *',
    '1e1 * * * *',
    '0x1 * * * *',
    '1.5 * * * *',
    'H * * * *',
    'a b c d e',
    '* * * JANUARY *',
    '* * * * MONDAY',
    '0 0 * * 5#6',
    '@reboot',
    '@never',
    '2031-01-01T00:00:00',
    '0 0 1 1 * 2031 *',
    '0 0 * * +MON',
    `${'0,'.repeat(200)}0 * * * *`,
    '(((((((((((((((((((( * * * *',
    '* * * * *; DROP TABLE',
  ])('are refused by the expression %j', (cron) => {
    expect(() => checkedTimes({ cron })).toThrow(EchoArgumentError);
    expect(() => checkedTimes({ cron })).toThrow(/option 'cron'/);
  });

  it.each([
    ['0 0 30 2 *', 'UTC'],
    ['0 0 30 2 *', 'America/Sao_Paulo'],
    ['0 0 31 2,4,6,9,11 *', 'Europe/Lisbon'],
    ['0 0 30W 2 *', 'UTC'],
    ['* * * 31 4 *', 'Australia/Lord_Howe'],
  ])('are refused when %j in %s never comes (C076)', (cron, tz) => {
    expect(() => checkedTimes({ cron, tz })).toThrow(/which is never due/);
  });

  it.each([
    ['0 1 30 3 *', 'Europe/Lisbon'],
    ['0 0 29 2 *', 'UTC'],
    ['0 0 * * *', 'America/Sao_Paulo'],
    ['0 0 * * *', 'Asia/Beirut'],
    ['0 0 * * *', 'America/Havana'],
    ['30 23 31 12 *', 'Pacific/Apia'],
    ['15 2 * * *', 'Antarctica/Troll'],
  ])('are taken when %j in %s comes, if rarely or in a zone whose clocks change at midnight (C076)', (cron, tz) => {
    expect(checkedTimes({ cron, tz })).toEqual({ cron, tz });
  });

  it('that are no longer understood read as undefined', () => {
    for (const text of [
      '',
      'null',
      '{',
      '{"cron":"x","tz":"UTC"}',
      '{"cron":"* * * * *","tz":"Moon/Sea"}',
      '{"every":5}',
    ]) {
      expect(readTimes(text)).toBeUndefined();
    }
  });
});

describe('the rules of a schedule', () => {
  it.each([
    [{}, '{"catchUp":"skip","overlap":"allow"}'],
    [{ catchUp: undefined, overlap: 'skip' as const }, '{"catchUp":"skip","overlap":"skip"}'],
    [{ catchUp: 'one' as const }, '{"catchUp":"one","overlap":"allow"}'],
    [{ catchUp: { max: 3, withinMs: 1000 } }, '{"catchUp":{"withinMs":1000,"max":3},"overlap":"allow"}'],
  ])('%j are kept as %s, and read back', (given, text) => {
    const rules = checkedRules(given);
    expect(rulesText(rules)).toBe(text);
    expect(readRules(text)).toEqual(rules);
  });

  it.each([
    [{ catchUp: 'all' }, /'catchUp' is 'skip', 'one' or \{ withinMs, max \}, got "all"/],
    [{ catchUp: null }, /'catchUp' is/],
    [{ catchUp: { withinMs: 1000 } }, /'catchUp.max' must be a whole number from 1 to 100/],
    [{ catchUp: { withinMs: 0, max: 1 } }, /'catchUp.withinMs' must be a whole number from 1/],
    [{ catchUp: { withinMs: 1, max: 101 } }, /'catchUp.max' must be a whole number from 1 to 100/],
    [{ catchUp: { withinMs: 1, max: 1, min: 1 } }, /unknown option 'min'/],
    [{ overlap: true }, /'overlap' is 'allow' or 'skip', got true/],
    [{ overlaps: 'skip' }, /unknown option 'overlaps'/],
  ])('%j are refused', (rules, message) => {
    expect(() => checkedRules(rules as never)).toThrow(EchoArgumentError);
    expect(() => checkedRules(rules as never)).toThrow(message);
  });

  it('that are no longer understood read as undefined', () => {
    for (const text of ['', '[]', '{"overlap":"queue"}', '{"jitter":5}']) expect(readRules(text)).toBeUndefined();
  });
});
