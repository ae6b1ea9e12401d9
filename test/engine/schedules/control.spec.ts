import { describe, expect, it } from '@jest/globals';
import { type Codec, jsonCodec } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Gates } from '../gates.js';
import { hungry, quiet, serverMs, useStage } from '../jobs/stage.js';

describe('a schedule', () => {
  const stage = useStage();

  it('that is paused fires nothing, stays so when it is declared again, and goes on from now when it is resumed', async () => {
    const echo = await stage.connect();
    const slots: number[] = [];
    echo.consume('q', {}, (job) => void slots.push(job.slot!.getTime()));
    const declare = (everyMs: number) =>
      echo.jobs.schedule('q', 'k', { everyMs }, 'tick', undefined, { catchUp: 'one' });
    await declare(100);
    await until(() => slots.length >= 2, { what: 'two slots' });
    expect(await echo.schedules.pause('q', 'k')).toBe('ok');
    expect(await echo.schedules.pause('q', 'k')).toBe('wrong_state');
    await hungry(stage.control, 'q');
    const before = slots.length;
    expect(await declare(50)).toEqual({ key: 'k', what: 'changed', nextSlot: undefined });
    const paused = await serverMs(stage.control);
    await until(async () => (await serverMs(stage.control)) > paused + 200, { what: 'some slots to pass' });
    expect(slots).toHaveLength(before);
    expect(await echo.schedules.get('q', 'k')).toMatchObject({ paused: true, nextSlot: undefined });
    const resumed = await serverMs(stage.control);
    expect(await echo.schedules.resume('q', 'k')).toBe('ok');
    expect(await echo.schedules.resume('q', 'k')).toBe('wrong_state');
    await until(() => slots.length > before, { what: 'the next slot' });
    expect(slots[before]).toBeGreaterThan(resumed - 1);
    expect(slots[before]! % 50).toBe(0);
  });

  it('that is run now lands a job without a slot, paused or not, and no slot moves', async () => {
    const echo = await stage.connect();
    const gates = new Gates();
    echo.consume('q', {}, gates.handler);
    const { nextSlot } = await echo.jobs.schedule(
      'q',
      'k',
      { everyMs: 1_000_000_000 },
      'tick',
      { a: 1 },
      { attempts: 9 },
    );
    const { status, id } = await echo.schedules.runNow('q', 'k');
    expect(status).toBe('landed');
    const { job, end } = await gates.run(1);
    expect(job).toMatchObject({
      id,
      name: 'tick',
      data: { a: 1 },
      schedule: 'k',
      slot: undefined,
      opts: { attempts: 9 },
    });
    expect(await echo.schedules.get('q', 'k')).toMatchObject({ nextSlot, lastJobId: id, lastSlot: undefined });
    await echo.schedules.pause('q', 'k');
    expect(await echo.schedules.runNow('q', 'k')).toMatchObject({ status: 'landed' });
    end();
    (await gates.run(2)).end();
    expect(await echo.schedules.runNow('q', 'none')).toEqual({ status: 'gone', id: undefined });
  });

  it('that is run now under overlap skip lands nothing while the last job has not ended', async () => {
    const echo = await stage.connect();
    const gates = new Gates();
    echo.consume('q', { concurrency: 5 }, gates.handler);
    await echo.jobs.schedule('q', 'k', { everyMs: 1_000_000_000 }, 'tick', undefined, { overlap: 'skip' });
    const { id } = await echo.schedules.runNow('q', 'k');
    const first = await gates.run(1);
    expect(await echo.schedules.runNow('q', 'k')).toEqual({ status: 'overlap', id });
    first.end();
    await until(async () => (await echo.jobs.counts('q')).active === 0, { what: 'its end' });
    expect(await echo.schedules.runNow('q', 'k')).toMatchObject({ status: 'landed' });
    (await gates.run(2)).end();
  });

  it('that is removed fires nothing more; its jobs stay', async () => {
    const { jobs, schedules } = await stage.connect();
    await jobs.schedule('q', 'k', { everyMs: 100 }, 'tick');
    await schedules.runNow('q', 'k');
    expect(await schedules.remove('q', 'k')).toBe(true);
    expect(await schedules.remove('q', 'k')).toBe(false);
    expect(await schedules.pause('q', 'k')).toBe('gone');
    expect(await schedules.resume('q', 'k')).toBe('gone');
    expect(await jobs.counts('q')).toMatchObject({ pending: 1 });
    expect(await stage.control.keys('emq:{q}:schedule*')).toEqual([]);
  });
});

describe('what keeps one schedule from firing keeps no other', () => {
  const stage = useStage();

  it('a row that is gone, of another type, or says what nobody understands', async () => {
    const errors: string[] = [];
    const echo = await stage.connect({ onError: (error) => errors.push(error.message) });
    const declare = (key: string) => echo.jobs.schedule('q', key, { everyMs: 100 }, 'tick');
    for (const key of ['sound', 'zone', 'rules', 'payload', 'gone', 'string']) await declare(key);
    await stage.control.hset('emq:{q}:schedule:zone', 'spec', '{"cron":"0 0 * * *","tz":"Moon/Sea"}');
    await stage.control.hset('emq:{q}:schedule:rules', 'rules', '{"catchUp":"sometimes"}');
    await stage.control.hset('emq:{q}:schedule:payload', 'payload', 'no envelope');
    await stage.control.del('emq:{q}:schedule:gone', 'emq:{q}:schedule:string');
    await stage.control.set('emq:{q}:schedule:string', 'x');
    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.schedule!));
    await until(() => ran.length >= 3, { what: 'three slots of the sound one' });
    expect(new Set(ran)).toEqual(new Set(['sound']));
    await until(() => errors.length >= 3, { what: 'the three to be told' });
    const about = (key: string) => errors.find((message) => message.includes(`schedule '${key}'`));
    expect(about('zone')).toContain('this process cannot make sense of its times or rules');
    expect(about('rules')).toContain('this process cannot make sense of its times or rules');
    expect(about('payload')).toContain('this process cannot read its job by its codec');
    const { schedules } = await echo.schedules.list('q');
    expect(schedules.map(({ key }) => key).sort()).toEqual(['payload', 'rules', 'sound', 'zone']);
    expect(schedules.find(({ key }) => key === 'zone')).toMatchObject({ times: undefined, name: 'tick' });
    // Declared anew they are sound again.
    for (const key of ['zone', 'rules', 'payload']) await declare(key);
    await until(() => new Set(ran).size === 4, { what: 'all of them' });
    await echo.schedules.remove('q', 'string');
    await quiet(echo, 'q', 3);
  });

  it('a codec that writes no bytes: it is told, and others fire', async () => {
    const errors: string[] = [];
    await (await stage.connect()).jobs.schedule('q', 'bad', { everyMs: 100 }, 'bad');
    const codec: Codec = {
      ...jsonCodec,
      encode: (name, ...rest) =>
        name === 'bad' ? (Promise.reject(new Error('of nobody')) as never) : jsonCodec.encode(name, ...rest),
    };
    const echo = await stage.connect({ codec, onError: (error) => errors.push(error.message) });
    await echo.jobs.schedule('q', 'sound', { everyMs: 100 }, 'good');
    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.schedule!));
    await until(() => ran.length >= 2, { what: 'two slots of the sound one' });
    expect(new Set(ran)).toEqual(new Set(['sound']));
    expect(errors).toEqual([expect.stringContaining("schedule 'bad' is due and does not fire")]);
    await expect(echo.schedules.runNow('q', 'bad')).rejects.toMatchObject({ code: 'ECHO_STATE' });
    await echo.schedules.remove('q', 'bad');
    await echo.schedules.remove('q', 'sound');
    await quiet(echo, 'q');
  });

  it('a key of another type in place of the schedules is told, and jobs go on', async () => {
    const errors: string[] = [];
    const echo = await stage.connect({ onError: (error) => errors.push(error.message) });
    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.name));
    await stage.control.set('emq:{q}:schedules', 'x');
    await expect(echo.jobs.schedule('q', 'k', { everyMs: 100 }, 'tick')).rejects.toMatchObject({ code: 'EMQTYPE' });
    await echo.jobs.enqueue('q', 'job');
    await until(() => ran.length === 1, { what: 'the job' });
    await stage.control.del('emq:{q}:schedules');
    await echo.jobs.schedule('q', 'k', { everyMs: 100 }, 'tick');
    await until(() => ran.length > 2, { what: 'slots' });
  });
});
