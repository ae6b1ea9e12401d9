import { describe, expect, it } from '@jest/globals';
import { type QueueLimitSettings, RateLimited } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Gates, Ledger } from '../gates.js';
import { failure, hungry, numbers, quiet, serverMs, useStage } from '../jobs/stage.js';

const plain = (count: number) => numbers(count).map((n) => ({ name: 'job', data: n }));

describe('a limit of a queue', () => {
  const stage = useStage();

  it('is set, shown and taken back; what is not given stays', async () => {
    const { jobs } = await stage.connect();
    const nothing = { concurrency: undefined, rate: undefined, heldForMs: 0 };
    expect(await jobs.limits('q')).toEqual(nothing);
    const rate = { intervalMs: 50, burst: 3 };
    const set = await jobs.limit('q', { concurrency: 4, rate: { limit: 20, perMs: 1000, burst: 3 } });
    expect(set).toEqual({ concurrency: 4, rate, heldForMs: 0 });
    expect(await jobs.limit('q', { concurrency: null })).toEqual({ ...nothing, rate });
    expect(await jobs.limit('q', { concurrency: 1 })).toEqual({ concurrency: 1, rate, heldForMs: 0 });
    expect(await jobs.limit('q', { rate: null })).toEqual({ ...nothing, concurrency: 1 });
    expect(await jobs.limit('q', { concurrency: null })).toEqual(nothing);
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });

  it.each<[string, QueueLimitSettings, RegExp]>([
    ['nothing', {}, /limit needs a setting/],
    ['no object', 5 as never, /must be an object/],
    ['an unknown setting', { max: 1 } as never, /unknown option 'max'/],
    ['concurrency 0', { concurrency: 0 }, /concurrency must be a whole number from 1/],
    ['concurrency -1', { concurrency: -1 }, /concurrency/],
    ['concurrency NaN', { concurrency: Number.NaN }, /concurrency/],
    [
      'a rate without a time',
      { rate: { limit: 1 } as never },
      /rate needs perMs: a limit without a time limits nothing/,
    ],
    ['a rate of 0', { rate: { limit: 0, perMs: 1 } }, /rate\.limit/],
    ['a rate of -1', { rate: { limit: -1, perMs: 1 } }, /rate\.limit/],
    ['a rate of NaN', { rate: { limit: Number.NaN, perMs: 1 } }, /rate\.limit/],
    ['a time of 0', { rate: { limit: 1, perMs: 0 } }, /rate\.perMs/],
  ])('that is %s is refused, and nothing is written (C114)', async (_, settings, message) => {
    const { jobs } = await stage.connect();
    const error = await failure(jobs.limit('q', settings));
    expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
    expect(error.message).toMatch(message);
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });

  it('drops nothing: of 100 jobs, 2 a long time, 98 stay pending (C116)', async () => {
    const echo = await stage.connect();
    await echo.jobs.limit('q', { rate: { limit: 2, perMs: 3_600_000, burst: 2 } });
    const ledger = new Ledger();
    echo.consume('q', { concurrency: 10 }, ledger.handler);
    await echo.jobs.enqueueMany('q', plain(100));
    await ledger.ran(2);
    await hungry(stage.control, 'q');
    await quiet(echo, 'q');
    expect(ledger.jobs).toHaveLength(2);
    expect(await echo.jobs.counts('q')).toMatchObject({ pending: 98, active: 0, metrics: { completed: 2 } });
    await echo.jobs.limit('q', { rate: null });
    await ledger.ran(100);
  });

  it('on how many run holds for all processes together, and the next one runs when one ends', async () => {
    const [echo, ...others] = await Promise.all(numbers(4).map(() => stage.connect()));
    await echo!.jobs.limit('q', { concurrency: 3 });
    let running = 0;
    let most = 0;
    let ended = 0;
    for (const other of others) {
      other.consume('q', { concurrency: 5 }, async () => {
        running += 1;
        most = Math.max(most, running);
        for (const _ of numbers(3)) await new Promise((next) => setImmediate(next));
        running -= 1;
        ended += 1;
      });
    }
    await echo!.jobs.enqueueMany('q', plain(300));
    while (ended < 300) expect((await echo!.jobs.counts('q')).active).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(3);
  });

  it('that is raised or taken back lets waiting jobs run at once', async () => {
    const echo = await stage.connect();
    await echo.jobs.limit('q', { concurrency: 1 });
    const gates = new Gates();
    echo.consume('q', { concurrency: 10, claimAhead: false }, gates.handler);
    await echo.jobs.enqueueMany('q', plain(6));
    await gates.run(1);
    await hungry(stage.control, 'q');
    expect(gates.runs).toHaveLength(1);
    await echo.jobs.limit('q', { concurrency: 3 });
    await gates.run(3);
    await hungry(stage.control, 'q');
    expect(gates.runs).toHaveLength(3);
    await echo.jobs.limit('q', { concurrency: null });
    await gates.run(6);
    for (const { end } of gates.runs) end();
  });

  it('of time starts no two jobs nearer to each other than it says, in whatever process', async () => {
    const [echo, ...others] = await Promise.all(numbers(3).map(() => stage.connect()));
    await echo!.jobs.limit('q', { rate: { limit: 20, perMs: 1000 } });
    const ledger = new Ledger();
    for (const other of others) other.consume('q', { concurrency: 4 }, ledger.handler);
    const before = await serverMs(stage.control);
    await echo!.jobs.enqueueMany('q', plain(9));
    await ledger.ran(9);
    expect((await serverMs(stage.control)) - before).toBeGreaterThanOrEqual(8 * 50);
  });
});

describe('a queue that is limited', () => {
  const stage = useStage();

  it('is not asked again until the exact time: nobody polls, and then it is woken', async () => {
    const [echo, other] = await Promise.all([stage.connect(), stage.connect()]);
    await echo.jobs.limit('q', { rate: { limit: 1, perMs: 1200 } });
    const at: number[] = [];
    const handler = async () => void at.push(await serverMs(stage.control));
    for (const each of [echo, other]) each.consume('q', { concurrency: 3 }, handler);
    await hungry(stage.control, 'q', 2);
    await echo.jobs.enqueueMany('q', plain(2));
    await until(() => at.length === 1, { what: 'the first' });
    await until(async () => (await echo.jobs.counts('q')).active === 0, { what: 'its end' });
    await hungry(stage.control, 'q', 2);
    const ear = await stage.overhear();
    await ear.said();
    await until(() => at.length === 2, { what: 'the second' });
    const keysOf = ([command, , , key]: string[]) => (command!.toLowerCase().startsWith('eval') ? key : undefined);
    const asked = (await ear.said()).map(keysOf);
    // In 1.2 s: the leader says once that time is up, and is given the script for it; who leads claims, who is woken may too.
    expect(asked.filter((key) => key === 'emq:{q}:lanes').length).toBeLessThanOrEqual(2);
    expect(asked.filter((key) => key === 'emq:{q}:pending').length).toBeLessThanOrEqual(2);
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(1190);
    expect(at[1]! - at[0]!).toBeLessThan(1200 + 1500);
  });

  it('goes on promoting jobs whose time has come', async () => {
    const echo = await stage.connect();
    const ledger = new Ledger();
    echo.consume('q', { concurrency: 3 }, (job) => {
      ledger.handler(job);
      throw new RateLimited(60_000, { scope: 'queue' });
    });
    await echo.jobs.enqueue('q', 'limited');
    await until(async () => (await echo.jobs.limits('q')).heldForMs > 0, { what: 'the hold' });
    await echo.jobs.enqueue('q', 'delayed', undefined, { delayMs: 50, lane: 'A' });
    await until(async () => (await echo.jobs.counts('q')).pending === 2, { what: 'the promotion' });
    expect(ledger.jobs).toHaveLength(1);
  });

  it('is looked after by another process when the one that leads it closes', async () => {
    const [echo, other] = await Promise.all([stage.connect(), stage.connect()]);
    await echo.jobs.limit('q', { rate: { limit: 1, perMs: 400 } });
    const ledger = new Ledger();
    echo.consume('q', {}, ledger.handler);
    await echo.jobs.enqueueMany('q', plain(3));
    await ledger.ran(1);
    other.consume('q', {}, ledger.handler);
    await hungry(stage.control, 'q', 2);
    await echo.close();
    await ledger.ran(3, 8_000);
  });
});
