import { describe, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { rareBeats } from '../fast-clock.js';
import { hungry, latch, numbers, quiet, useStage } from './stage.js';

describe('a consumer paused in its process', () => {
  const stage = useStage();

  it('takes nothing, although it is the one that is parked and would be woken (C060)', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    const consumer = echo.consume('q', {}, (job) => void ran.push(job.name));
    await hungry(stage.control, 'q');
    consumer.pause();
    expect(consumer.isPaused).toBe(true);
    await echo.jobs.enqueue('q', 'a');
    await quiet(echo, 'q');
    expect(ran).toEqual([]);
    expect(await echo.jobs.counts('q')).toMatchObject({ pending: 1, active: 0, paused: false });

    consumer.resume();
    await until(() => ran.length === 1, { what: 'the job after resume' });
    expect(consumer.isPaused).toBe(false);
  });

  it('leaves the wake-up to another process', async () => {
    const [first, second] = [await stage.connect(), await stage.connect({ clock: rareBeats() })];
    const ran: string[] = [];
    const paused = first.consume('q', {}, () => void ran.push('first'));
    await hungry(stage.control, 'q');
    second.consume('q', {}, () => void ran.push('second'));
    await hungry(stage.control, 'q', 2);
    paused.pause();
    await first.jobs.enqueueMany('q', [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    await until(() => ran.length === 3, { what: 'the other process to run them' });
    expect(ran).toEqual(['second', 'second', 'second']);
  });

  it('gives back, uncharged, what a claim under way brings', async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url });
    const ran: number[] = [];
    const held = proxy.hold('emq:{q}:active');
    const consumer = echo.consume('q', {}, (job) => void ran.push(job.attempt));
    const claim = await held;
    const other = await stage.connect();
    const { id } = await other.jobs.enqueue('q', 'a');
    consumer.pause();
    claim.release();
    await until(async () => (await other.jobs.get('q', id))?.uncharged === 1, { what: 'the job to be given back' });
    await quiet(other, 'q');
    expect(await other.jobs.get('q', id)).toMatchObject({ state: 'pending', attempts: 1, uncharged: 1 });
    expect(ran).toEqual([]);
    consumer.resume();
    await until(() => ran.length === 1, { what: 'the job' });
    expect(ran).toEqual([1]);
  });

  it('is woken as before when paused and resumed while a claim was under way', async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url, clock: rareBeats() });
    const ran: string[] = [];
    const held = proxy.hold('emq:{q}:active');
    const consumer = echo.consume('q', {}, (job) => void ran.push(job.name));
    const claim = await held;
    consumer.pause();
    consumer.resume();
    claim.release();
    await quiet(echo, 'q');
    const other = await stage.connect();
    await other.jobs.enqueue('q', 'a');
    await until(() => ran.length === 1, { what: 'the job, by a wake-up' });
  });

  it('lets running handlers end, and counts no slot twice afterwards', async () => {
    const echo = await stage.connect();
    const first = latch();
    let running = 0;
    let most = 0;
    let done = 0;
    const consumer = echo.consume('q', { concurrency: 2 }, async () => {
      most = Math.max(most, ++running);
      await first.opened;
      running -= 1;
      done += 1;
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(6).map(() => ({ name: 'a' })),
    );
    await until(() => running === 2, { what: 'two handlers' });
    consumer.pause();
    consumer.pause();
    first.open();
    await until(() => done === 2, { what: 'the two to end' });
    await quiet(echo, 'q');
    expect(await echo.jobs.counts('q')).toMatchObject({ pending: 4, active: 0 });
    consumer.resume();
    consumer.resume();
    await until(() => done === 6, { what: 'the rest' });
    expect(most).toBe(2);
  });
});

describe('a queue paused for everybody', () => {
  const stage = useStage();

  it('keeps all its jobs visible, and their order (C062)', async () => {
    const echo = await stage.connect();
    const { jobs } = echo;
    await jobs.enqueueMany(
      'q',
      numbers(5).map((n) => ({ name: `before ${n}` })),
    );
    expect(await jobs.pause('q')).toBe(true);
    await jobs.enqueueMany(
      'q',
      numbers(2).map((n) => ({ name: `during ${n}` })),
    );
    expect(await jobs.counts('q')).toMatchObject({ pending: 7, active: 0, scheduled: 0, paused: true });
    const { jobs: listed, total, next } = await jobs.list('q', 'pending');
    expect({ total, next }).toEqual({ total: 7, next: undefined });
    const order = listed.map((job) => job.name);
    expect(order).toEqual([...numbers(5).map((n) => `before ${n}`), 'during 0', 'during 1']);

    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.name));
    expect(await jobs.claim('q', { leaseMs: 1000 })).toEqual([]);
    expect(ran).toEqual([]);
    expect(await jobs.resume('q')).toBe(true);
    await until(() => ran.length === 7, { what: 'all to run' });
    expect(ran).toEqual(order);
  });

  it('says whether it changed anything, and whether it is paused', async () => {
    const { jobs } = await stage.connect();
    expect(await jobs.isPaused('q')).toBe(false);
    expect(await jobs.resume('q')).toBe(false);
    expect(await jobs.pause('q')).toBe(true);
    expect(await jobs.pause('q')).toBe(false);
    expect(await jobs.isPaused('q')).toBe(true);
    expect(await jobs.isPaused('another')).toBe(false);
    expect(await jobs.resume('q')).toBe(true);
    expect(await jobs.isPaused('q')).toBe(false);
  });

  it('lets only the handlers end that had started (C064)', async () => {
    const echo = await stage.connect();
    const gate = latch();
    const started: string[] = [];
    const ended: string[] = [];
    await echo.jobs.enqueueMany(
      'q',
      numbers(50).map((n) => ({ name: String(n) })),
    );
    echo.consume('q', { concurrency: 10 }, async (job) => {
      started.push(job.name);
      await gate.opened;
      ended.push(job.name);
    });
    await until(() => started.length === 10, { what: 'ten handlers' });
    const other = await stage.connect();
    await other.jobs.pause('q');
    gate.open();
    await until(async () => (await other.jobs.counts('q')).active === 0, { what: 'the handlers to end' });
    await quiet(other, 'q');
    expect(started).toEqual(numbers(10).map(String));
    expect(ended).toEqual(started);
    expect((await other.jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(
      numbers(50).slice(10).map(String),
    );
    await other.jobs.resume('q');
    await until(() => ended.length === 50, { what: 'the rest' });
    expect(started).toEqual(numbers(50).map(String));
  });

  it.each([1, 10])(
    'gives back what was claimed and not started, with fast handlers in %i slots',
    async (concurrency) => {
      const echo = await stage.connect();
      const other = await stage.connect();
      const total = 3000;
      await echo.jobs.enqueueMany(
        'q',
        numbers(total).map((n) => ({ name: String(n) })),
      );
      const started: string[] = [];
      let ended = 0;
      let paused: Promise<boolean> | undefined;
      echo.consume('q', { concurrency }, async (job) => {
        started.push(job.name);
        if (started.length === 500) paused = other.jobs.pause('q');
        await null;
        ended += 1;
      });
      await until(() => started.length >= 500, { what: 'the middle of the burst', progress: () => started.length });
      await paused;
      await until(async () => (await other.jobs.counts('q')).active === 0, { what: 'nothing to be active' });
      await quiet(other, 'q');
      const { pending } = await other.jobs.counts('q');
      const before = started.length;
      expect(ended).toBe(before);
      expect(pending).toBe(total - before);
      await other.jobs.resume('q');
      await until(() => ended === total, { what: 'the rest', progress: () => ended });
      expect(started.length).toBe(total);
      expect(new Set(started).size).toBe(total);
      if (concurrency === 1) expect(started).toEqual(numbers(total).map(String));
    },
  );

  it('stays paused for what is promoted, given back or retried meanwhile', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    await echo.jobs.enqueueMany('q', [{ name: 'released' }, { name: 'retried' }]);
    const [released, retried] = await echo.jobs.claim('q', { leaseMs: 10_000, count: 2 });
    echo.consume('q', {}, (job) => void ran.push(job.name));
    await echo.jobs.pause('q');
    await echo.jobs.enqueue('q', 'promoted', undefined, { delayMs: 1 });
    expect(await echo.jobs.release('q', released!.id, released!.token)).toBe('ok');
    expect(await echo.jobs.retry('q', retried!.id, retried!.token, { maxAttempts: 3 })).toBe('pending');
    await until(async () => (await echo.jobs.counts('q')).pending === 3, { what: 'all three to be pending' });
    await quiet(echo, 'q');
    expect(ran).toEqual([]);
    await echo.jobs.resume('q');
    await until(() => ran.length === 3, { what: 'all three' });
    expect(ran).toEqual(['released', 'retried', 'promoted']);
  });
});
