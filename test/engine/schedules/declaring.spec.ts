import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { defineQueue, EchoArgumentError, EchoDataError, EchoStateError } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { failure, numbers, serverMs, useStage } from '../jobs/stage.js';

const HOUR_MS = 3_600_000;
const NOON = { cron: '0 12 * * *', tz: 'Europe/Berlin' };

describe('a schedule', () => {
  const stage = useStage();

  it('is declared at the first slot from now, and shown as it was declared', async () => {
    const { jobs, schedules } = await stage.connect();
    const before = await serverMs(stage.control);
    const opts = { priority: 3, attempts: 2, keepMs: 60_000, overlap: 'skip', catchUp: 'one' } as const;
    const declared = await jobs.schedule('q', 'noon', NOON, 'digest', { to: 'all' }, opts);
    expect(declared).toEqual({ key: 'noon', what: 'new', nextSlot: expect.any(Date) });
    expect(declared.nextSlot!.getTime()).toBeGreaterThan(before);
    expect(declared.nextSlot!.getTime()).toBeLessThanOrEqual(before + 25 * HOUR_MS);
    expect(declared.nextSlot!.toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' })).toBe('12:00:00');
    expect(await schedules.get('q', 'noon')).toEqual({
      key: 'noon',
      times: NOON,
      catchUp: 'one',
      overlap: 'skip',
      name: 'digest',
      data: { to: 'all' },
      opts: expect.objectContaining({ attempts: 2, keepMs: 60_000 }),
      paused: false,
      nextSlot: declared.nextSlot,
      lastSlot: undefined,
      lastJobId: undefined,
      skipped: 0,
      declared: false,
    });
    expect(await schedules.get('q', 'none')).toBeUndefined();
  });

  it('that is declared again as it is does not move, not even when it is overdue', async () => {
    const { jobs, schedules } = await stage.connect();
    const declare = () => jobs.schedule('q', 'noon', NOON, 'digest', { a: 1 });
    const { nextSlot } = await declare();
    expect(await declare()).toEqual({ key: 'noon', what: 'unchanged', nextSlot });
    const yesterday = nextSlot!.getTime() - 24 * HOUR_MS;
    await stage.control.zadd('emq:{q}:schedules', yesterday, 'noon');
    expect(await declare()).toEqual({ key: 'noon', what: 'unchanged', nextSlot: new Date(yesterday) });
    const changed = await jobs.schedule('q', 'noon', NOON, 'digest', { a: 2 });
    expect(changed).toEqual({ key: 'noon', what: 'changed', nextSlot: new Date(yesterday) });
    expect((await schedules.get('q', 'noon'))?.data).toEqual({ a: 2 });
  });

  it('that is declared with other times has their next slot at once, and its job the new data (C080)', async () => {
    const echo = await stage.connect();
    const ran: { slot: number; data: unknown }[] = [];
    const declare = (everyMs: number, data: string) => echo.jobs.schedule('q', 'k', { everyMs }, 'tick', data);
    await declare(3_000_000_000, 'three');
    expect(await declare(8_000_000_000, 'eight')).toMatchObject({ what: 'changed' });
    const { nextSlot } = await declare(200, 'two');
    expect(nextSlot!.getTime() % 200).toBe(0);
    expect(nextSlot!.getTime()).toBeLessThanOrEqual((await serverMs(stage.control)) + 200);
    echo.consume('q', {}, (job) => void ran.push({ slot: job.slot!.getTime(), data: job.data }));
    await until(() => ran.length >= 3, { what: 'three runs' });
    expect(ran[0]!.slot).toBeGreaterThanOrEqual(nextSlot!.getTime());
    expect(ran.map(({ data }) => data).every((data) => data === 'two')).toBe(true);
    expect(await echo.schedules.list('q')).toMatchObject({ total: 1 });
  });

  it('that eight processes declare fifty times each, while they consume, is one with a steady cadence (C078)', async () => {
    const echoes = await Promise.all(numbers(8).map(() => stage.connect()));
    const slots: number[] = [];
    for (const echo of echoes) echo.consume('q', {}, (job) => void slots.push(job.slot!.getTime()));
    const options = { catchUp: { withinMs: 60_000, max: 100 } } as const; // on a busy machine a slot may be late by a whole one
    const declared = await Promise.all(
      echoes.flatMap(({ jobs }) =>
        numbers(50).map(() => jobs.schedule('q', 'k', { everyMs: 1000 }, 'tick', undefined, options)),
      ),
    );
    expect(declared.filter(({ what }) => what === 'new')).toHaveLength(1);
    expect(declared.filter(({ what }) => what === 'changed')).toHaveLength(0);
    await until(() => slots.length >= 4, { what: 'four slots' });
    expect(await echoes[0]!.schedules.list('q')).toMatchObject({ total: 1 });
    expect(slots.slice(0, 4)).toEqual(numbers(4).map((n) => slots[0]! + n * 1000));
  });

  it('takes its data as a queue with schemas does, and is refused with data that does not fit', async () => {
    const Mail = defineQueue('mail', { digest: z.object({ to: z.string() }), ping: z.undefined() });
    const { jobs, schedules } = await stage.connect();
    await jobs.schedule(Mail, 'noon', NOON, 'digest', { to: 'all' });
    await jobs.schedule(Mail, 'pings', { everyMs: HOUR_MS }, 'ping');
    expect((await schedules.list(Mail)).schedules.map(({ name }) => name).sort()).toEqual(['digest', 'ping']);
    const wrong: unknown = { to: 5 };
    const error = await failure(jobs.schedule(Mail, 'k', NOON, 'digest', wrong as { to: string }));
    expect(error).toBeInstanceOf(EchoDataError);
    // @ts-expect-error the queue declares no such name
    const undeclared = jobs.schedule(Mail, 'k', NOON, 'nonsense', {});
    expect(await failure(undeclared)).toBeInstanceOf(EchoArgumentError);
    expect(await schedules.get(Mail, 'k')).toBeUndefined();
  });

  it('that makes no sense is refused, and nothing is sent', async () => {
    const { jobs, schedules } = await stage.connect();
    const refused: [RegExp, Promise<unknown>][] = [
      [/queue name/, jobs.schedule('', 'k', NOON, 'job')],
      [/key must be a string/, jobs.schedule('q', 5 as never, NOON, 'job')],
      [/key, "", is empty/, jobs.schedule('q', '', NOON, 'job')],
      [/holds a brace/, jobs.schedule('q', 'a{b', NOON, 'job')],
      [/longer than 200 bytes/, jobs.schedule('q', 'ä'.repeat(101), NOON, 'job')],
      [/never due/, jobs.schedule('q', 'k', { cron: '0 0 30 2 *' }, 'job')],
      [/option 'tz'/, jobs.schedule('q', 'k', { cron: '0 0 * * *', tz: '' }, 'job')],
      [/name must be a string/, jobs.schedule('q', 'k', NOON, '')],
      [/unknown option 'runAt'/, jobs.schedule('q', 'k', NOON, 'job', 1, { runAt: 5 } as never)],
      [/unknown option 'id'/, jobs.schedule('q', 'k', NOON, 'job', 1, { id: 'x' } as never)],
      [/attempts/, jobs.schedule('q', 'k', NOON, 'job', 1, { attempts: 0 })],
      [/'overlap' is/, jobs.schedule('q', 'k', NOON, 'job', 1, { overlap: 'no' as never })],
      [/cannot be serialised/, jobs.schedule('q', 'k', NOON, 'job', () => 1)],
      [/larger than maxPayloadBytes/, jobs.schedule('q', 'k', NOON, 'job', 'x'.repeat(11_000_000))],
      ...(['get', 'pause', 'resume', 'runNow', 'remove'] as const).flatMap((method): [RegExp, Promise<unknown>][] => [
        [/key must be a string/, schedules[method]('q', 5 as never)],
        [/queue name must be a string/, schedules[method](5 as never, 'k')],
      ]),
      [/limit/, schedules.list('q', { limit: 0 })],
      [/unknown option 'state'/, schedules.list('q', { state: 1 } as never)],
      [/takes an array/, schedules.declare('q', {} as never)],
      [/declaration must be an object/, schedules.declare('q', ['k'] as never)],
      [/unknown option 'cron'/, schedules.declare('q', [{ key: 'k', name: 'job', cron: '* * * * *' }] as never)],
    ];
    for (const [message, call] of refused) {
      const error = await failure(call);
      expect(error).toBeInstanceOf(EchoArgumentError);
      expect(error.message).toMatch(message);
    }
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('is listed in pages, the next to fire first', async () => {
    const { jobs, schedules } = await stage.connect();
    await Promise.all(
      numbers(25).map((n) => jobs.schedule('q', `k${n}`, { everyMs: (n + 1) * 100_000_000_000 }, 'job')),
    );
    await schedules.pause('q', 'k0');
    const seen: string[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const page = await schedules.list('q', { offset, limit: 10 });
      expect(page.total).toBe(25);
      seen.push(...page.schedules.map(({ key }) => key));
      offset = page.next;
    }
    expect(seen).toHaveLength(25);
    expect(new Set(seen).size).toBe(25);
    expect(seen.at(-1)).toBe('k0');
  });

  it('goes with its queue when that is obliterated (C146)', async () => {
    const echo = await stage.connect();
    await Promise.all(numbers(5).map((n) => echo.jobs.schedule('q', `k${n}`, { everyMs: 100 }, 'tick')));
    const consumer = echo.consume('q', {}, () => undefined);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed >= 5, { what: 'some runs' });
    await echo.jobs.obliterate('q', { force: true });
    expect(await echo.schedules.list('q')).toMatchObject({ schedules: [], total: 0 });
    await consumer.close();
    await echo.jobs.obliterate('q');
    expect(await stage.control.keys('emq:{q}*')).toEqual([]);
  });
});

describe('the schedules that code declares for a queue', () => {
  const stage = useStage();
  const one = { key: 'one', times: NOON, name: 'job' };
  const two = { key: 'two', times: { everyMs: HOUR_MS }, name: 'job', data: 2, options: { overlap: 'skip' } } as const;

  it('are declared together, and those of earlier code are told, and removed on request', async () => {
    const { jobs, schedules } = await stage.connect();
    const first = await schedules.declare('q', [one, two]);
    expect(first.undeclared).toEqual([]);
    expect(first.declared.map(({ key, what }) => [key, what])).toEqual([
      ['one', 'new'],
      ['two', 'new'],
    ]);
    await jobs.schedule('q', 'by hand', NOON, 'job');
    expect(await schedules.get('q', 'two')).toMatchObject({ declared: true, data: 2, overlap: 'skip' });

    const next = await stage.connect();
    const second = await next.schedules.declare('q', [two, { ...one, key: 'three' }]);
    expect(second.undeclared).toEqual(['one']);
    expect(second.declared.map(({ what }) => what)).toEqual(['unchanged', 'new']);
    expect((await next.schedules.list('q')).total).toBe(4);
    expect(await next.schedules.prune('q')).toEqual(['one']);
    expect(await next.schedules.prune('q')).toEqual([]);
    const left = (await next.schedules.list('q')).schedules.map(({ key }) => key);
    expect(left.sort()).toEqual(['by hand', 'three', 'two']);
    expect(await next.schedules.declare('q', [])).toEqual({ declared: [], undeclared: ['three', 'two'] });
  });

  it('are not taken for left over by a process that has not said which it has', async () => {
    const { schedules } = await stage.connect();
    const error = await failure(schedules.prune('q'));
    expect(error).toBeInstanceOf(EchoStateError);
    expect(error.message).toContain('call schedules.declare() before');
  });

  it('are refused as a whole when one makes no sense, or a key comes twice', async () => {
    const { schedules } = await stage.connect();
    expect(await failure(schedules.declare('q', [one, { ...two, times: { everyMs: 1 } }]))).toBeInstanceOf(
      EchoArgumentError,
    );
    expect((await failure(schedules.declare('q', [one, one]))).message).toContain("'one' is declared twice");
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });
});
