import { describe, expect, it } from '@jest/globals';
import type { EchoMq, Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { SkewedClock } from '../skewed-clock.js';
import { hungry, latch, numbers, quiet, useStage } from './stage.js';

const WARM = 2000;

describe('claim-ahead', () => {
  const stage = useStage();

  /** A consumer of one slot that has seen fast handlers; then `slow` jobs wait for the gate. */
  const warmed = async (claimAhead = true, connection = stage.server.url) => {
    const echo = await stage.connect({ connection });
    const gate = latch();
    const started = latch();
    const ran: Job[] = [];
    const consumer = echo.consume('q', { claimAhead }, (job) => {
      ran.push(job);
      if (job.name !== 'slow') return undefined;
      started.open();
      return gate.opened;
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(WARM).map(() => ({ name: 'warm' })),
    );
    await until(() => ran.length === WARM, { what: 'the warm-up', progress: () => ran.length });
    await hungry(stage.control, 'q');
    ran.length = 0;
    return { echo, gate, started, ran, consumer };
  };
  const behindASlowOne = ({ jobs }: Pick<EchoMq, 'jobs'>, n: number) =>
    jobs.enqueueMany('q', [{ name: 'slow' }, ...numbers(n).map((i) => ({ name: `fast ${i}` }))]);

  it('claims more than there are slots where handlers are fast', async () => {
    const { echo, gate, started } = await warmed();
    await behindASlowOne(echo, 10);
    await started.opened;
    await until(async () => (await stage.control.zcard('emq:{q}:active')) === 1, { what: 'the others to go back' });
    const rows = await Promise.all(
      (await echo.jobs.list('q', 'pending')).jobs.map(({ attempts, uncharged }) => [attempts, uncharged]),
    );
    expect(rows).toHaveLength(10);
    for (const [attempts, uncharged] of rows) {
      expect(attempts).toBeGreaterThan(0);
      expect(uncharged).toBe(attempts);
    }
    gate.open();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === WARM + 11, { what: 'the rest' });
  });

  it('gives back, uncharged, what cannot start: another process runs it, in order', async () => {
    const { echo, gate, started } = await warmed();
    await behindASlowOne(echo, 10);
    await started.opened;
    const other = await stage.connect();
    const ran: Job[] = [];
    other.consume('q', {}, (job) => void ran.push(job));
    await until(() => ran.length === 10, { what: 'the other process to run them' });
    expect(ran.map(({ name }) => name)).toEqual(numbers(10).map((i) => `fast ${i}`));
    expect(ran.every(({ attempt }) => attempt === 1)).toBe(true);
    gate.open();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === WARM + 11, { what: 'the slow one' });
  });

  it('does not claim again and again what it gave back while its slot stays busy', async () => {
    const { echo, gate, started } = await warmed();
    const other = await stage.connect();
    await behindASlowOne(echo, 400);
    await started.opened;
    const ran: Job[] = [];
    other.consume('q', { claimAhead: false }, async (job) => {
      ran.push(job);
      if (ran.length % 20 === 0) await quiet(other, 'q', 10);
    });
    await until(() => ran.length === 400, { what: 'the other process to run them', progress: () => ran.length });
    expect(Math.max(...ran.map(({ attempts }) => attempts))).toBeLessThanOrEqual(3);
    gate.open();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === WARM + 401, { what: 'the slow one' });
  });

  it('starts nothing before what it gave back, although the server had to be sent the script first', async () => {
    const proxy = await stage.proxy();
    const { gate, started, ran } = await warmed(true, proxy.url);
    const producer = await stage.connect();
    await stage.control.script('FLUSH');
    const release = proxy.request('{q}:schedule');
    await behindASlowOne(producer, 400);
    await started.opened;
    await release;
    gate.open();
    await until(() => ran.length === 401, { what: 'all', progress: () => ran.length });
    expect(ran.map(({ name }) => name)).toEqual(['slow', ...numbers(400).map((i) => `fast ${i}`)]);
  });

  it('does not start jobs whose lease was over before a slot was free, and says so', async () => {
    const clock = new SkewedClock();
    const echo = await stage.connect({ clock });
    const ran: string[] = [];
    const lost: string[] = [];
    const consumer = echo.consume('q', { leaseMs: 10_000 }, (job) => {
      ran.push(job.name);
      if (job.name === 'slow') clock.skip(10_000); // a handler that keeps the process from doing anything else
    });
    consumer.on('lease-lost', (job, why) => lost.push(`${job.name}: ${why}`));
    await echo.jobs.enqueueMany(
      'q',
      numbers(WARM).map(() => ({ name: 'warm' })),
    );
    await until(() => ran.length === WARM, { what: 'the warm-up', progress: () => ran.length });
    await hungry(stage.control, 'q');
    ran.length = 0;
    await behindASlowOne(echo, 10);
    await until(() => lost.length === 10, { what: 'the losses' });
    expect(ran).toEqual(['slow']);
    expect(lost).toEqual(numbers(10).map((i) => `fast ${i}: it was over before a slot was free`));
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === WARM + 1, { what: 'the slow one' });
    const held = await stage.control.zrange('emq:{q}:active', 0, '-1');
    expect(held).toHaveLength(10); // not settled: they belong to whoever claims them next
    await stage.control.zadd('emq:{q}:active', ...held.flatMap((id) => [1, id]));
    expect(await echo.jobs.reap('q')).toMatchObject({ requeued: 10 });
    await until(() => ran.length === 11, { what: 'the second runs' });
    expect(ran).toEqual(['slow', ...numbers(10).map((i) => `fast ${i}`)]);
    expect(consumer.active).toBe(0);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === WARM + 11, { what: 'completions' });
  });

  it('off, claims for free slots only', async () => {
    const { echo, gate, started, ran } = await warmed(false);
    await behindASlowOne(echo, 10);
    await started.opened;
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 1, pending: 10 });
    gate.open();
    await until(() => ran.length === 11, { what: 'the rest' });
    expect(ran.every(({ attempts }) => attempts === 1)).toBe(true);
  });

  it('is not done under a short lease', async () => {
    const echo = await stage.connect();
    let ran = 0;
    const gate = latch();
    const started = latch();
    echo.consume('q', { leaseMs: 2000 }, (job) => {
      ran += 1;
      if (job.name !== 'slow') return undefined;
      started.open();
      return gate.opened;
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(WARM).map(() => ({ name: 'warm' })),
    );
    await until(() => ran === WARM, { what: 'the warm-up', progress: () => ran });
    await behindASlowOne(echo, 10);
    await started.opened;
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 1, pending: 10 });
    gate.open();
    await until(() => ran === WARM + 11, { what: 'the rest' });
  });

  it('gives everything back at once when the consumer closes', async () => {
    const { echo, gate, started, ran, consumer } = await warmed();
    await behindASlowOne(echo, 10);
    await started.opened;
    const closed = consumer.close();
    gate.open();
    await closed;
    const { pending, active } = await echo.jobs.counts('q');
    expect({ pending, active, ran: ran.length }).toEqual({ pending: 10, active: 0, ran: 1 });
    for (const job of (await echo.jobs.list('q', 'pending')).jobs) expect(job.uncharged).toBe(job.attempts);
  });
});
