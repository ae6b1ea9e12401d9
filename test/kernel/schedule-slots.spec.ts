import { describe, expect, it } from '@jest/globals';
import { planSlots, slotAfter } from '../../lib/kernel/schedule-slots.js';
import { type CatchUp, checkedTimes } from '../../lib/kernel/schedule-spec.js';

const at = (text: string) => Date.parse(text);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The slots behind a moment, as times in UTC. */
function slots(cron: string, tz: string, from: string, count: number): string[] {
  const times = checkedTimes({ cron, tz });
  const found: string[] = [];
  for (let ms = at(from); found.length < count; ) {
    ms = slotAfter(times, ms);
    found.push(new Date(ms).toISOString().slice(0, 16));
  }
  return found;
}

describe('on the day when clocks go forward in Rome (C074)', () => {
  it('a time of day that does not exist is due once, at the end of the gap; the days around are normal', () => {
    expect(slots('30 2 * * *', 'Europe/Rome', '2025-03-28T12:00Z', 3)).toEqual([
      '2025-03-29T01:30',
      '2025-03-30T01:00', // 03:00 in Rome
      '2025-03-31T00:30',
    ]);
  });

  it('later times of that day are as they are said', () => {
    expect(slots('0 5 * * *', 'Europe/Rome', '2025-03-29T12:00Z', 2)).toEqual(['2025-03-30T03:00', '2025-03-31T03:00']);
  });

  it('several times in the gap are one', () => {
    expect(slots('0,30 2 * * *', 'Europe/Rome', '2025-03-29T12:00Z', 3)).toEqual([
      '2025-03-30T01:00',
      '2025-03-31T00:00',
      '2025-03-31T00:30',
    ]);
  });

  it('an expression with a wildcard or step goes on by the hour that there is', () => {
    expect(slots('*/30 * * * *', 'Europe/Rome', '2025-03-30T00:00Z', 4)).toEqual([
      '2025-03-30T00:30',
      '2025-03-30T01:00',
      '2025-03-30T01:30',
      '2025-03-30T02:00',
    ]);
    expect(slots('*/30 2 * * *', 'Europe/Rome', '2025-03-29T12:00Z', 2)).toEqual([
      '2025-03-31T00:00',
      '2025-03-31T00:30',
    ]);
  });
});

describe('on the day when clocks go back in Rome (C074)', () => {
  it('a time of day that comes twice is due once, the first time', () => {
    expect(slots('30 2 * * *', 'Europe/Rome', '2025-10-25T12:00Z', 2)).toEqual([
      '2025-10-26T00:30',
      '2025-10-27T01:30',
    ]);
    expect(slots('0,30 2 * * *', 'Europe/Rome', '2025-10-25T12:00Z', 3)).toEqual([
      '2025-10-26T00:00',
      '2025-10-26T00:30',
      '2025-10-27T01:00',
    ]);
  });

  it('an expression with a wildcard or step is due in both hours', () => {
    expect(slots('30 * * * *', 'Europe/Rome', '2025-10-25T23:00Z', 4)).toEqual([
      '2025-10-25T23:30',
      '2025-10-26T00:30',
      '2025-10-26T01:30',
      '2025-10-26T02:30',
    ]);
    expect(slots('*/30 2 * * *', 'Europe/Rome', '2025-10-25T12:00Z', 4)).toEqual([
      '2025-10-26T00:00',
      '2025-10-26T00:30',
      '2025-10-26T01:00',
      '2025-10-26T01:30',
    ]);
  });

  it.each([
    ['America/Sao_Paulo', '2018-11-03T12:00Z', '2018-11-04T03:00'], // midnight does not exist there
    ['Asia/Beirut', '2025-03-29T12:00Z', '2025-03-29T22:00'],
    ['Africa/Cairo', '2025-04-24T12:00Z', '2025-04-24T22:00'],
    ['America/Havana', '2025-03-08T12:00Z', '2025-03-09T05:00'],
  ])('midnight in %s, where clocks change at midnight, is due once a day', (tz, from, first) => {
    const [one, two, three] = slots('0 0 * * *', tz, from, 3);
    expect(one).toBe(first);
    const gaps = [at(`${two}Z`) - at(`${one}Z`), at(`${three}Z`) - at(`${two}Z`)];
    for (const gap of gaps) expect(Math.abs(gap - DAY_MS)).toBeLessThanOrEqual(HOUR_MS);
  });
});

describe('the slot after a moment', () => {
  it('of an interval is the next on a grid counted from 1970, the same whenever it is declared', () => {
    const times = checkedTimes({ everyMs: HOUR_MS });
    expect(slotAfter(times, at('2025-06-01T10:00:00.001Z'))).toBe(at('2025-06-01T11:00Z'));
    expect(slotAfter(times, at('2025-06-01T10:59:59.999Z'))).toBe(at('2025-06-01T11:00Z'));
    expect(slotAfter(times, at('2025-06-01T11:00Z'))).toBe(at('2025-06-01T12:00Z'));
  });

  it('of an expression counts seconds where it names them', () => {
    const times = checkedTimes({ cron: '*/20 * * * * *' });
    expect(slotAfter(times, at('2025-06-01T10:00:39.500Z'))).toBe(at('2025-06-01T10:00:40Z'));
    expect(slotAfter(times, at('2025-06-01T10:00:40Z'))).toBe(at('2025-06-01T10:01:00Z'));
  });

  it('is always later, and the same whether it is counted from the last slot or from any moment since', () => {
    for (const times of [
      checkedTimes({ everyMs: 700 }),
      checkedTimes({ cron: '*/7 1-3 * * *', tz: 'Europe/Rome' }),
      checkedTimes({ cron: '15 2 * * *', tz: 'Australia/Lord_Howe' }),
    ]) {
      let slot = at('2025-03-28T00:00Z');
      for (let n = 0; n < 60; n++) {
        const next = slotAfter(times, slot);
        expect(next).toBeGreaterThan(slot);
        for (const part of [0.1, 0.5, 0.99])
          expect(slotAfter(times, Math.floor(slot + (next - slot) * part))).toBe(next);
        slot = next;
      }
    }
  });
});

describe('what is to be done when a slot has come', () => {
  const daily = checkedTimes({ cron: '0 8 * * *', tz: 'UTC' });
  const DUE = at('2025-06-01T08:00Z');
  const day = (n: number) => DUE + n * DAY_MS;
  const every: readonly CatchUp[] = ['skip', 'one', { withinMs: 1000, max: 3 }];

  it.each(every)('on time, under catchUp %j: it fires, and the next is counted from it', (catchUp) => {
    expect(planSlots(daily, catchUp, DUE, DUE)).toEqual({ fire: [DUE], next: day(1) });
    expect(planSlots(daily, catchUp, DUE, DUE + 900)).toEqual({ fire: [DUE], next: day(1) });
  });

  it.each([
    ['skip' as const, 59_999, 1],
    ['skip' as const, 60_000, 1],
    ['skip' as const, 60_001, 0],
    ['one' as const, 23 * HOUR_MS, 1],
    [{ withinMs: HOUR_MS, max: 1 }, HOUR_MS, 1],
    [{ withinMs: HOUR_MS, max: 1 }, HOUR_MS + 1, 0],
  ])('late, under catchUp %j by %d ms: %d fire', (catchUp, lateMs, count) => {
    expect(planSlots(daily, catchUp, DUE, DUE + lateMs)).toEqual({ fire: [DUE].slice(0, count), next: day(1) });
  });

  it.each([
    ['skip' as const, []],
    ['one' as const, [5]],
    [{ withinMs: 3 * DAY_MS, max: 100 }, [3, 4, 5]],
    [{ withinMs: 3 * DAY_MS, max: 2 }, [4, 5]],
    [{ withinMs: 365 * DAY_MS, max: 100 }, [0, 1, 2, 3, 4, 5]],
    [{ withinMs: 365 * DAY_MS, max: 1 }, [5]],
    [{ withinMs: HOUR_MS, max: 100 }, []],
  ])('five days later, under catchUp %j: those of days %j fire, the oldest first', (catchUp, days) => {
    const plan = planSlots(daily, catchUp, DUE, day(5) + 2 * HOUR_MS);
    expect(plan).toEqual({ fire: days.map(day), next: day(6) });
  });

  it('fires the newest of several that are a little late, under skip', () => {
    const times = checkedTimes({ everyMs: 100 });
    expect(planSlots(times, 'skip', 1_000_000, 1_000_350)).toEqual({ fire: [1_000_300], next: 1_000_400 });
    const seconds = checkedTimes({ cron: '* * * * * *' });
    expect(planSlots(seconds, 'skip', DUE, DUE + 5500)).toEqual({ fire: [DUE + 5000], next: DUE + 6000 });
  });

  it('makes up for intervals too', () => {
    const times = checkedTimes({ everyMs: 100 });
    const plan = planSlots(times, { withinMs: 250, max: 9 }, 1_000_000, 1_000_350);
    expect(plan).toEqual({ fire: [1_000_100, 1_000_200, 1_000_300], next: 1_000_400 });
  });

  it('fires nothing from before the slot that it stands at', () => {
    const plan = planSlots(daily, { withinMs: 365 * DAY_MS, max: 100 }, day(4), day(5));
    expect(plan).toEqual({ fire: [day(4), day(5)], next: day(6) });
  });

  it('knows each slot of the days when clocks change once, looking back', () => {
    const times = checkedTimes({ cron: '0,30 2,3 * * *', tz: 'Europe/Rome' });
    for (const from of ['2025-03-28T12:00Z', '2025-10-24T12:00Z']) {
      const forward: number[] = [];
      for (let slot = slotAfter(times, at(from)); slot < at(from) + 4 * DAY_MS; slot = slotAfter(times, slot))
        forward.push(slot);
      const plan = planSlots(times, { withinMs: 30 * DAY_MS, max: 100 }, forward[0]!, at(from) + 4 * DAY_MS);
      expect(plan.fire).toEqual(forward);
    }
  });
});
