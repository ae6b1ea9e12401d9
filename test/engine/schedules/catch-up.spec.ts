import { describe, expect, it } from '@jest/globals';
import type { CatchUp, EchoMq, ScheduleOptions } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { hungry, numbers, quiet, serverMs, useStage } from '../jobs/stage.js';

const MINUTE_MS = 60_000;
/** Slots are so far apart that none comes while a test runs. */
const UNIT_MS = 864_000_000;

describe('slots for which no process was there', () => {
  const stage = useStage();

  /** A schedule that has stood still for so many slots; the newest is late by less than another. */
  async function missed(echo: EchoMq, count: number, options: ScheduleOptions) {
    await echo.jobs.schedule('q', 'k', { everyMs: UNIT_MS }, 'tick', undefined, options);
    const now = await serverMs(stage.control);
    const newest = Math.floor(now / UNIT_MS) * UNIT_MS;
    await stage.control.zadd('emq:{q}:schedules', newest - (count - 1) * UNIT_MS, 'k');
    return { newest, late: now - newest };
  }

  /** The slots that fire once a process is there, by how many come behind them. */
  async function fired(echo: EchoMq, newest: number): Promise<number[]> {
    const slots: number[] = [];
    echo.consume('q', {}, (job) => void slots.push((newest - job.slot!.getTime()) / UNIT_MS));
    await until(async () => (await echo.schedules.get('q', 'k'))!.nextSlot!.getTime() > newest, {
      what: 'it to go on',
    });
    await hungry(stage.control, 'q');
    await quiet(echo, 'q', 5);
    const { nextSlot } = (await echo.schedules.get('q', 'k'))!;
    expect(nextSlot!.getTime()).toBe(newest + UNIT_MS);
    return slots;
  }

  it.each<[CatchUp, number[]]>([
    ['one', [0]],
    [{ withinMs: 3 * UNIT_MS, max: 10 }, [2, 1, 0]],
    [{ withinMs: 24 * UNIT_MS, max: 2 }, [1, 0]],
    [{ withinMs: 24 * UNIT_MS, max: 100 }, [4, 3, 2, 1, 0]],
  ])('are made up for under catchUp %j', async (catchUp, slots) => {
    const echo = await stage.connect();
    const { newest } = await missed(echo, 5, { catchUp });
    expect(await fired(echo, newest)).toEqual(slots);
  });

  it('are let go by default, unless the newest is less than a minute late', async () => {
    const echo = await stage.connect();
    const { newest, late } = await missed(echo, 5, {});
    expect(await fired(echo, newest)).toEqual(late < MINUTE_MS - 5000 ? [0] : []);
  });

  it('fire late by default when it is less than a minute', async () => {
    const echo = await stage.connect();
    await echo.jobs.schedule('q', 'k', { everyMs: 2 ** 40 }, 'tick');
    const slot = (await serverMs(stage.control)) - 30_000;
    await stage.control.zadd('emq:{q}:schedules', slot, 'k');
    const slots: number[] = [];
    echo.consume('q', {}, (job) => void slots.push(job.slot!.getTime()));
    await until(() => slots.length > 0, { what: 'the slot' });
    expect(slots).toEqual([slot]);
  });

  it('are one under overlap skip, however many may be made up for', async () => {
    const echo = await stage.connect();
    const { newest } = await missed(echo, 4, { catchUp: { withinMs: 24 * UNIT_MS, max: 100 }, overlap: 'skip' });
    expect(await fired(echo, newest)).toEqual([3]);
    expect(await echo.schedules.get('q', 'k')).toMatchObject({ skipped: 3, lastSlot: new Date(newest) });
  });

  it('are made up for once, by whichever of several processes comes first', async () => {
    const echoes = await Promise.all(numbers(4).map(() => stage.connect()));
    const { newest } = await missed(echoes[0]!, 50, { catchUp: { withinMs: 1000 * UNIT_MS, max: 100 } });
    const slots: number[] = [];
    for (const echo of echoes)
      echo.consume('q', {}, (job) => void slots.push((newest - job.slot!.getTime()) / UNIT_MS));
    await until(() => slots.length >= 50, { what: 'fifty slots' });
    await quiet(echoes[0]!, 'q', 5);
    expect(slots.sort((a, b) => a - b)).toEqual(numbers(50));
  });
});
