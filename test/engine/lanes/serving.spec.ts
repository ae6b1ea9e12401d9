import { describe, expect, it } from '@jest/globals';
import { type EchoMq, type Job, type Lane, RateLimited, WaitForChildren } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Gates, Ledger } from '../gates.js';
import { hungry, latch, numbers, quiet, serverMs, useStage } from '../jobs/stage.js';

const TEN_SECONDS = 10_000;

function fill({ jobs }: EchoMq, lane: Lane | null, count: number, name = String(lane)) {
  return jobs.enqueueMany(
    'q',
    numbers(count).map((n) => ({ name, data: n, opts: { lane } })),
  );
}

describe('lanes, as consumers serve them:', () => {
  const stage = useStage();

  it('one that its rate holds back does not hold back another (C118)', async () => {
    const echo = await stage.connect();
    await echo.lanes.configure('q', 'A', { rate: { limit: 1, perMs: TEN_SECONDS } });
    await fill(echo, 'A', 10);
    await fill(echo, 'B', 10);
    const ledger = new Ledger();
    echo.consume('q', { concurrency: 10 }, ledger.handler);
    await ledger.ran(11);
    await hungry(stage.control, 'q');
    const ran = ledger.jobs.map(({ name }) => name);
    expect(ran.filter((name) => name === 'B')).toHaveLength(10);
    expect(ran.filter((name) => name === 'A')).toHaveLength(1);
    const { turnInMs, waiting } = await echo.lanes.get('q', 'A');
    expect(waiting).toBe(9);
    expect(turnInMs).toBeGreaterThan(TEN_SECONDS / 2);
    expect(turnInMs).toBeLessThanOrEqual(TEN_SECONDS);
  });

  it('a cap of 1 is kept by ten consumers, and the jobs behind it are all to be seen (C120)', async () => {
    const echo = await stage.connect();
    await echo.lanes.configure('q', 'A', { cap: 1 });
    await fill(echo, 'A', 50);
    expect((await echo.jobs.list('q', 'pending')).total).toBe(50);
    let running = 0;
    let most = 0;
    let ended = 0;
    const others = await Promise.all(numbers(10).map(() => stage.connect()));
    for (const other of others) {
      other.consume('q', { concurrency: 2 }, async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((next) => setImmediate(next));
        running -= 1;
        ended += 1;
      });
    }
    await until(() => ended >= 5, { what: 'some of them' });
    const { jobs, total } = await echo.jobs.list('q', 'pending', { limit: 1000 });
    expect(jobs).toHaveLength(total);
    expect(new Set(jobs.map(({ lane }) => lane))).toEqual(new Set(['A']));
    await until(() => ended === 50, { what: 'all of them', timeoutMs: 10_000 });
    expect(most).toBe(1);
    await until(async () => (await echo.jobs.counts('q')).active === 0, { what: 'the last settlement' });
  });

  it('a parent that waits for its children takes up nothing of its lane (C122)', async () => {
    const echo = await stage.connect();
    await echo.lanes.configure('q', 'A', { cap: 1 });
    const ledger = new Ledger();
    echo.consume('q', { concurrency: 4 }, ledger.handler);
    const opts = { lane: 'A' };
    await echo.flows.add({ queue: 'q', name: 'parent', opts, children: [{ queue: 'q', name: 'child', opts }] });
    await ledger.ran(2);
    expect(ledger.jobs.map(({ name }) => name)).toEqual(['child', 'parent']);
    await until(async () => (await echo.jobs.counts('q')).active === 0, { what: 'the end' });
  });

  it('a handler that waits for the children it adds gives its place in the lane back too (C122)', async () => {
    const echo = await stage.connect();
    await echo.lanes.configure('q', 'A', { cap: 1 });
    const ran: string[] = [];
    echo.consume('q', { concurrency: 4 }, async (job) => {
      ran.push(job.name);
      if (job.name !== 'parent' || job.attempts > 1) return;
      await job.addChildren([{ queue: 'q', name: 'child', opts: { lane: 'A' } }]);
      throw new WaitForChildren();
    });
    await echo.jobs.enqueue('q', 'parent', undefined, { lane: 'A' });
    await until(() => ran.length === 3, { what: 'the parent again' });
    expect(ran).toEqual(['parent', 'child', 'parent']);
    await until(async () => (await echo.jobs.counts('q')).active === 0, { what: 'the end' });
  });

  it('counts are exact at every moment, whatever runs, fails and comes (C124)', async () => {
    const [echo, ...others] = await Promise.all(numbers(4).map(() => stage.connect()));
    const TOTAL = 400;
    let ended = 0;
    const handler = async ({ data, attempts }: Job) => {
      await new Promise((next) => setImmediate(next));
      if ((data as number) % 3 === 0 && attempts === 1) throw new Error('the first time');
      ended += 1;
    };
    const backoff = { type: 'fixed', delayMs: 0 } as const;
    for (const other of others) other.consume('q', { concurrency: 7, claimAhead: false, backoff }, handler);
    await echo!.jobs.enqueueMany(
      'q',
      numbers(TOTAL).map((n) => ({ name: 'job', data: n, opts: { lane: `L${n % 5}`, priority: n % 4 } })),
    );
    while (ended < TOTAL) {
      const { pending, active, scheduled, metrics } = await echo!.jobs.counts('q');
      expect(pending + active + scheduled + metrics.completed).toBe(TOTAL);
      expect(active).toBeLessThanOrEqual(2 * 3 * 7); // once, a claim may be ahead of the settlement that made room for it
      const { lanes } = await echo!.lanes.list('q');
      for (const lane of lanes) expect(lane.active).toBeGreaterThanOrEqual(0);
    }
    await until(async () => (await echo!.jobs.counts('q')).metrics.completed === TOTAL, { what: 'the last' });
  });

  it('weights share the claims, also those of the jobs without a lane, and of a group with all its lanes', async () => {
    const echo = await stage.connect();
    await echo.lanes.configure('q', null, { weight: 2 });
    await echo.lanes.configure('q', 'heavy', { weight: 4 });
    await fill(echo, null, 400, 'plain');
    await fill(echo, 'heavy', 400);
    for (const n of numbers(20)) await fill(echo, ['split', `lane ${n}`], 20, 'split');
    const taken: Record<string, number> = {};
    const enough = latch();
    let ran = 0;
    echo.consume('q', { claimAhead: false }, ({ name }) => {
      taken[name] = (taken[name] ?? 0) + 1;
      ran += 1;
      if (ran < 700) return undefined;
      enough.open();
      return new Promise((end) => setImmediate(end));
    });
    await enough.opened;
    await echo.drain();
    const { plain, heavy, split } = taken;
    expect([plain! / 200, heavy! / 400, split! / 100].map((share) => Math.abs(share - 1) < 0.03)).toEqual([
      ...[true, true, true],
    ]);
  });
});

/**
 * The server knows the script of a release: one that it has to be given first comes behind the claim that was sent
 * after it.
 */
async function warm({ jobs }: EchoMq): Promise<void> {
  await jobs.release('q', jobs.mintId(), '1@none');
}

describe('a handler that throws RateLimited', () => {
  const stage = useStage();

  it('holds back its lane: the job keeps its place and its attempt, other lanes go on', async () => {
    const echo = await stage.connect();
    await warm(echo);
    const gates = new Gates();
    const settled: unknown[] = [];
    const consumer = echo.consume('q', { claimAhead: false }, gates.handler);
    consumer.on('failed', (job) => settled.push(job.name));
    await fill(echo, 'A', 2, 'a');
    const first = await gates.run(1);
    first.fail(new RateLimited(60_000));
    await hungry(stage.control, 'q');
    expect(settled).toEqual([]);
    expect((await echo.lanes.get('q', 'A')).turnInMs).toBeGreaterThan(50_000);
    expect(await echo.jobs.get('q', first.job.id)).toMatchObject({ state: 'pending', attempts: 1, uncharged: 1 });
    expect((await echo.jobs.list('q', 'pending')).jobs[0]!.id).toBe(first.job.id);
    await fill(echo, 'B', 1, 'b');
    await fill(echo, null, 1, 'plain');
    for (const n of [2, 3]) (await gates.run(n)).end();
    expect(new Set(gates.runs.slice(1).map(({ job }) => job.name))).toEqual(new Set(['b', 'plain']));
    await echo.lanes.liftHold('q', 'A');
    const again = await gates.run(4);
    expect(again.job).toMatchObject({ id: first.job.id, attempts: 2, attempt: 1 });
    again.end();
    (await gates.run(5)).end();
  });

  it('is back when the time is over, and not before', async () => {
    const echo = await stage.connect();
    const at: number[] = [];
    echo.consume('q', {}, async () => {
      at.push(await serverMs(stage.control));
      if (at.length === 1) throw new RateLimited(300);
    });
    await echo.jobs.enqueue('q', 'job', undefined, { lane: 'A' });
    await until(() => at.length === 2, { what: 'its second run' });
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(300);
  });

  it('of a job without a lane, or with scope queue, holds back the queue in every process, until the hold is lifted', async () => {
    const [echo, other] = await Promise.all([stage.connect(), stage.connect()]);
    await warm(echo);
    for (const [lane, scope] of [
      [null, 'lane'],
      ['A', 'queue'],
    ] as const) {
      const gates = new Gates();
      const consumers = [echo, other].map((each) => each.consume('q', { concurrency: 2 }, gates.handler));
      await fill(echo, lane, 1, 'limited');
      (await gates.run(1)).fail(new RateLimited(60_000, { scope }));
      await until(async () => (await echo.jobs.limits('q')).heldForMs > 50_000, { what: 'the hold' });
      await fill(other, 'B', 1, 'b');
      await quiet(echo, 'q');
      expect(gates.runs).toHaveLength(1);
      expect((await echo.jobs.liftHold('q')).heldForMs).toBe(0);
      for (const n of [2, 3]) (await gates.run(n)).end();
      expect(new Set(gates.runs.slice(1).map(({ job }) => job.name))).toEqual(new Set(['limited', 'b']));
      await Promise.all(consumers.map((consumer) => consumer.close()));
    }
  });
});
