import { describe, expect, it } from '@jest/globals';
import type { EchoMq, Job } from '../../../lib/core.js';
import type { ProxiedConnection } from '../../support/proxied-connection.js';
import { until } from '../../support/until.js';
import { Gates } from '../gates.js';
import { hashOf } from '../hashes.js';
import { hungry, latch, numbers, quiet, serverMs, useStage } from '../jobs/stage.js';

/** Slots so far apart that none comes while a test runs. */
const UNIT_MS = 864_000_000;
/** Far more than a wake-up takes. With the slots here still before the second beat, after 3 s, which would find due slots too. */
const PROMPT_MS = 1500;

/** A slot that is late by a whole one is made up for: a busy machine is not what this is about. */
const LATE_TOO = { catchUp: { withinMs: 60_000, max: 100 } } as const;

describe('a slot', () => {
  const stage = useStage();

  /** Consumes `q`, noting which slots ran and when, on the server's clock. */
  const record = (echo: EchoMq) => {
    const ran: { slot: number; at: number; job: Job }[] = [];
    echo.consume('q', {}, async (job) => {
      ran.push({ slot: job.slot!.getTime(), at: await serverMs(stage.control), job });
    });
    return ran;
  };

  it('fires at its time, never before, one after the other', async () => {
    const echo = await stage.connect();
    const ran = record(echo);
    await echo.jobs.schedule('q', 'k', { everyMs: 500 }, 'tick', { a: 1 }, LATE_TOO);
    await until(() => ran.length === 4, { what: 'four slots' });
    expect(ran.map(({ slot }) => slot)).toEqual(numbers(4).map((n) => ran[0]!.slot + n * 500));
    for (const { slot, at } of ran) {
      expect(at).toBeGreaterThanOrEqual(slot);
      expect(at).toBeLessThan(slot + PROMPT_MS);
    }
  });

  it('tells its job which it is, and gives it the options and priority of its schedule', async () => {
    const echo = await stage.connect();
    const gates = new Gates();
    const options = { attempts: 7, timeoutMs: 60_000, priority: -2, maxStalls: 5, keepMs: 60_000 };
    const { nextSlot } = await echo.jobs.schedule('q', 'k', { everyMs: 500 }, 'tick', { a: 1 }, options);
    echo.consume('q', {}, gates.handler);
    const { job, end } = await gates.run(1);
    expect(job).toMatchObject({ name: 'tick', data: { a: 1 }, schedule: 'k' });
    expect(job.slot!.getTime()).toBeGreaterThanOrEqual(nextSlot!.getTime());
    expect(job.opts).toMatchObject({ attempts: 7, timeoutMs: 60_000, keepMs: 60_000 });
    await echo.schedules.remove('q', 'k');
    expect(await echo.jobs.get('q', job.id)).toMatchObject({ priority: -2, opts: { attempts: 7 } });
    expect(await stage.control.hget(`emq:{q}:job:${job.id}`, 'max_stalls')).toBe('5');
    end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its end' });
  });

  it('fires once, though each of several processes takes itself for the leader now and then (C082)', async () => {
    const echoes = await Promise.all(numbers(4).map(() => stage.connect()));
    const slots: number[] = [];
    for (const echo of echoes) echo.consume('q', {}, (job) => void slots.push(job.slot!.getTime()));
    await echoes[0]!.jobs.schedule('q', 'k', { everyMs: 50 }, 'tick');
    while (slots.length < 40) {
      await stage.control.del('emq:{q}:leader');
      await stage.control.publish('emq:{q}:beat', 'lead');
      await quiet(echoes[0]!, 'q', 5);
    }
    await echoes[0]!.schedules.pause('q', 'k');
    expect(new Set(slots).size).toBe(slots.length);
    expect(await echoes[0]!.jobs.counts('q')).toMatchObject({ dead: 0, scheduled: 0 });
  });

  it('fires at its time although the leader sleeps until a later one, when another process declares it', async () => {
    const [leader, other] = [await stage.connect(), await stage.connect()];
    const ran = record(leader);
    await leader.jobs.schedule('q', 'far', { everyMs: 1_000_000_000_000 }, 'far');
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'a leader' });
    await hungry(stage.control, 'q');
    const { nextSlot } = await other.jobs.schedule('q', 'near', { everyMs: 150 }, 'near', undefined, LATE_TOO);
    await until(() => ran.length > 0, { what: 'the near one' });
    expect(ran[0]!.slot).toBe(nextSlot!.getTime());
    expect(ran[0]!.at).toBeLessThan(nextSlot!.getTime() + PROMPT_MS);
  });

  it('fires at its time when the process that led the queue closes before', async () => {
    const leader = await stage.connect();
    const first = leader.consume('q', {}, () => undefined);
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'a leader' });
    const heir = await stage.connect();
    const ran = record(heir);
    await hungry(stage.control, 'q', 2);
    const { nextSlot } = await heir.jobs.schedule('q', 'k', { everyMs: 700 }, 'tick');
    await first.close();
    await until(() => ran.length === 1, { what: 'the slot' });
    expect(ran[0]!.at).toBeLessThan(nextSlot!.getTime() + PROMPT_MS);
  });

  it('fires at its time when it is declared while its leader waits for the answer that makes it one', async () => {
    const proxy = await stage.proxy();
    const asked = latch<ProxiedConnection>();
    const forget = proxy.onRequest((command, connection) => {
      if (!command.includes('{q}:leader')) return undefined;
      forget();
      connection.toClient.setShut(true);
      asked.open(connection);
      return 'pass';
    });
    const leader = await stage.connect({ connection: proxy.url });
    const ran = record(leader);
    const connection = await asked.opened;
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'the server to have answered' });
    const other = await stage.connect();
    const { nextSlot } = await other.jobs.schedule('q', 'k', { everyMs: 300 }, 'tick');
    await quiet(other, 'q', 5);
    connection.toClient.setShut(false);
    await until(() => ran.length > 0, { what: 'the slot' });
    expect(ran[0]!.at).toBeLessThan(nextSlot!.getTime() + 300 + PROMPT_MS);
  });

  it('fires once when the answer of the step is lost with its connection', async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url, onError: () => undefined });
    const ran = record(echo);
    await echo.jobs.schedule('q', 'k', { everyMs: 400 }, 'tick');
    await until(() => ran.length === 1, { what: 'the first' });
    await proxy.passAndDropReply(hashOf('schedule_fire'));
    await until(() => ran.length >= 4, { what: 'more slots' });
    await echo.schedules.remove('q', 'k');
    const slots = ran.map(({ slot }) => slot);
    expect(new Set(slots).size).toBe(slots.length);
    const { metrics } = await echo.jobs.counts('q');
    expect(metrics.enqueued).toBeLessThanOrEqual(slots.length + 1);
  });

  it('fires of a paused queue too, whose jobs then wait', async () => {
    const echo = await stage.connect();
    const ran = record(echo);
    await echo.jobs.pause('q');
    await echo.jobs.schedule('q', 'k', { everyMs: 50 }, 'tick');
    await until(async () => (await echo.jobs.counts('q')).pending >= 3, { what: 'three jobs' });
    expect(ran).toEqual([]);
    await echo.schedules.remove('q', 'k');
    await echo.jobs.resume('q');
    await until(async () => (await echo.jobs.counts('q')).pending === 0, { what: 'all to be run' });
  });

  it('of a thousand schedules that are due at once fires once each, in bounded steps', async () => {
    const echo = await stage.connect();
    const ran = new Map<string, number>();
    const now = await serverMs(stage.control);
    await echo.schedules.declare(
      'q',
      numbers(1000).map((n) => ({
        key: `k${n}`,
        times: { everyMs: UNIT_MS },
        name: 'tick',
        options: { catchUp: 'one' },
      })),
    );
    const due = Math.floor(now / UNIT_MS) * UNIT_MS;
    await stage.control.zadd('emq:{q}:schedules', ...numbers(1000).flatMap((n) => [due, `k${n}`]));
    echo.consume('q', { concurrency: 50 }, ({ schedule }) => void ran.set(schedule!, (ran.get(schedule!) ?? 0) + 1));
    await until(() => ran.size === 1000, { what: 'all of them', progress: () => ran.size });
    expect([...ran.values()].every((count) => count === 1)).toBe(true);
    const { total, schedules } = await echo.schedules.list('q', { limit: 1000 });
    expect(total).toBe(1000);
    expect(schedules.every(({ lastSlot, nextSlot }) => lastSlot!.getTime() === due && nextSlot!.getTime() > due)).toBe(
      true,
    );
  });

  it('costs a process that has none nothing: no call but the beat', async () => {
    const echo = await stage.connect();
    echo.consume('q', {}, () => undefined);
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'a leader' });
    await hungry(stage.control, 'q');
    const ear = await stage.overhear();
    await stage.control.publish('emq:{q}:beat', 'lead');
    const calls: string[][] = [];
    await until(
      async () => {
        calls.push(...(await ear.said()).filter(([command]) => command!.toLowerCase().startsWith('eval')));
        return calls.length > 0;
      },
      { what: 'a beat' },
    );
    await quiet(echo, 'q', 3);
    calls.push(...(await ear.said()).filter((args) => args.some((arg) => arg.includes('schedules'))));
    expect(calls.map((args) => args.includes('emq:{q}:leader'))).toEqual([true]);
  });
});
