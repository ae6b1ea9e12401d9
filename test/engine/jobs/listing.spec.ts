import { describe, expect, it } from '@jest/globals';
import type { Jobs, ListableState, Page } from '../../../lib/core.js';
import { describeWithProcess } from '../../support/availability.js';
import { dumpQueue } from '../../support/dump.js';
import { expectInvariants } from '../../support/invariants.js';
import { until } from '../../support/until.js';
import { LongestCall } from '../../transitions/server-cpu.js';
import { rareBeats } from '../fast-clock.js';
import { hungry, numbers, queuesOn, useStage } from './stage.js';

/** Every job in a state, page by page. */
async function all(jobs: Jobs, state: ListableState, limit?: number) {
  const pages: Page[] = [];
  for (let offset: number | undefined = 0; offset !== undefined; offset = pages.at(-1)!.next) {
    pages.push(await jobs.list('q', state, { offset, limit }));
  }
  return { pages, jobs: pages.flatMap((page) => page.jobs) };
}

describe('list', () => {
  const stage = useStage();

  it('shows each state in the order in which it would be taken', async () => {
    const { jobs } = await stage.connect();
    await jobs.enqueueMany(
      'q',
      numbers(4).map((n) => ({ name: `running ${n}` })),
    );
    const claimed = await jobs.claim('q', { leaseMs: 60_000, count: 4 });
    for (const { id, token } of claimed.slice(2).reverse()) await jobs.retry('q', id, token, { maxAttempts: 0 });
    await jobs.extend('q', claimed[0]!.id, claimed[0]!.token, { leaseMs: 120_000 });
    await jobs.enqueueMany('q', [
      { name: 'late', opts: { delayMs: 90_000 } },
      { name: 'early', opts: { delayMs: 60_000 } },
      { name: 'low', opts: { priority: 5 } },
      { name: 'first' },
      { name: 'second' },
    ]);
    const names = async (state: ListableState) =>
      (await all(jobs, state)).jobs.map((job) => `${job.state} ${job.name}`);
    expect(await names('pending')).toEqual(['pending first', 'pending second', 'pending low']);
    expect(await names('scheduled')).toEqual(['scheduled early', 'scheduled late']);
    expect(await names('active')).toEqual(['active running 1', 'active running 0']);
    expect(await names('dead')).toEqual(['dead running 2', 'dead running 3']);
    expect(await names('awaiting_children')).toEqual([]);
  });

  it('gives pages of 100, from an offset, with the total and where to go on', async () => {
    const { jobs } = await stage.connect();
    await jobs.enqueueMany(
      'q',
      numbers(250).map((n) => ({ name: String(n) })),
    );
    const { pages } = await all(jobs, 'pending');
    expect(pages.map((page) => [page.jobs.length, page.total, page.next])).toEqual([
      [100, 250, 100],
      [100, 250, 200],
      [50, 250, undefined],
    ]);
    expect(await jobs.list('q', 'pending', { offset: 250 })).toEqual({ jobs: [], total: 250, next: undefined });
    expect(await jobs.list('q', 'pending', { offset: 9999, limit: 5 })).toMatchObject({ jobs: [], next: undefined });
    const some = await jobs.list('q', 'pending', { offset: 10, limit: 3 });
    expect(some.jobs.map(({ name }) => name)).toEqual(['10', '11', '12']);
    expect(some.next).toBe(13);
    expect(await jobs.list('nothing', 'pending')).toEqual({ jobs: [], total: 0, next: undefined });
  });

  it('ends a page of large payloads early, and leaves none out', async () => {
    const { jobs } = await stage.connect();
    const data = 'x'.repeat(3_000_000);
    await jobs.enqueueMany(
      'q',
      numbers(7).map((n) => ({ name: String(n), data })),
    );
    await jobs.enqueue('q', 'huge', 'x'.repeat(9_000_000));
    const { pages, jobs: seen } = await all(jobs, 'pending', 1000);
    expect(pages.length).toBeGreaterThan(3);
    expect(seen.map(({ name }) => name)).toEqual([...numbers(7).map(String), 'huge']);
  });
});

describeWithProcess('200,000 jobs (C142)', () => {
  const SHORT_MS = 50;
  const stage = useStage();

  /** What the server computed for a script of this work, in ms on the average, and how many scripts there were. */
  const scripts = async (work: () => Promise<unknown>) => {
    const called = async () => {
      const stats = await stage.control.info('commandstats');
      return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
    };
    const before = await called();
    const all = new LongestCall(stage.control);
    await all.around(work);
    const count = (await called()) - before;
    return { count, ms: all.ms / count };
  };

  it('are listed in pages, counted, and removed by short scripts, and all are seen', async () => {
    const enqueueTimeoutMs = Number.POSITIVE_INFINITY;
    const { jobs } = await stage.connect({ requestTimeoutMs: 60_000, enqueueTimeoutMs });
    const total = 200_000;
    let ids: string[] = [];
    const landing = await scripts(async () => {
      const landed = await jobs.enqueueMany(
        'q',
        numbers(total).map((n) => ({ name: 'a', data: n })),
      );
      ids = landed.map(({ id }) => id);
    });
    expect(landing.count).toBeGreaterThanOrEqual(total / 500);
    expect(landing.ms).toBeLessThan(SHORT_MS);
    const longest = new LongestCall(stage.control);
    const page = (options?: { offset: number; limit?: number }) =>
      longest.around(() => jobs.list('q', 'pending', options));
    const first = await page();
    expect(first).toMatchObject({ total, next: 100 });
    expect(first.jobs).toHaveLength(100);
    const seen: string[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const { jobs: some, next }: Page = await page({ offset, limit: 1000 });
      for (const { id } of some) seen.push(id);
      offset = next;
    }
    expect(seen).toHaveLength(total);
    expect(seen.every((id, i) => id === ids[i])).toBe(true);
    expect((await page({ offset: 199_950 })).jobs).toHaveLength(50);
    const counts = await longest.around(() => jobs.counts('q'));
    expect(counts).toMatchObject({ pending: total, metrics: { enqueued: total } });
    expect(longest.ms).toBeLessThan(SHORT_MS);
    const removing = await scripts(async () => expect(await jobs.obliterate('q')).toBe(total));
    expect(removing.count).toBeGreaterThanOrEqual(total / 1000);
    expect(removing.ms).toBeLessThan(SHORT_MS);
  }, 300_000);
});

describe('obliterate (C146)', () => {
  const stage = useStage();

  const everything = async (jobs: Jobs) => {
    await jobs.enqueueMany(
      'q',
      numbers(8).map((n) => ({ name: 'a', data: n })),
    );
    const claimed = await jobs.claim('q', { leaseMs: 60_000, count: 5 });
    const [kept, dead, again, completed, running] = claimed;
    await jobs.complete('q', kept!.id, kept!.token, { keepMs: 600_000, result: 5 });
    await jobs.retry('q', dead!.id, dead!.token, { maxAttempts: 0, error: 'dead' });
    await jobs.retry('q', again!.id, again!.token, { maxAttempts: 5, delayMs: 60_000 });
    await jobs.complete('q', completed!.id, completed!.token);
    await jobs.enqueue('q', 'later', undefined, { delayMs: 60_000, priority: 3 });
    return running!;
  };
  const left = async (queue: string) => {
    const found: string[] = [];
    let cursor = '0';
    do {
      const [next, keys] = await stage.control.scan(cursor, 'MATCH', `emq:{${queue}}:*`, 'COUNT', 1000);
      found.push(...keys);
      cursor = next;
    } while (cursor !== '0');
    return found;
  };

  it('leaves nothing, kept results included, and nothing of other queues is touched', async () => {
    const { jobs } = await stage.connect();
    const running = await everything(jobs);
    await jobs.complete('q', running.id, running.token, { keepMs: 600_000 });
    await jobs.enqueue('q*', 'a');
    await jobs.enqueue('qq', 'a');
    expect(await left('q')).not.toEqual([]);
    expect(await jobs.obliterate('q')).toBe(6);
    expect(await left('q')).toEqual([]);
    expect((await queuesOn(stage.control)).map(({ queue }) => queue).sort()).toEqual(['q*', 'qq']);
    expect(await jobs.obliterate('q')).toBe(0);
  });

  it('takes the name of the queue as it is, not as a pattern', async () => {
    const { jobs } = await stage.connect();
    for (const queue of ['*', '[ab]', 'a', 'a?', 'ab', '\\a']) {
      const id = jobs.mintId();
      await jobs.enqueue(queue, 'x', undefined, { id });
      const [claimed] = await jobs.claim(queue, { leaseMs: 1000 });
      await jobs.complete(queue, id, claimed!.token, { keepMs: 600_000 });
    }
    for (const queue of ['*', '[ab]', 'a?', '\\a']) await jobs.obliterate(queue);
    expect((await queuesOn(stage.control)).map(({ queue }) => queue).sort()).toEqual(['a', 'ab']);
  });

  it('is refused while jobs run, and touches nothing then', async () => {
    const { jobs } = await stage.connect();
    await everything(jobs);
    const before = await jobs.counts('q');
    await expect(jobs.obliterate('q')).rejects.toMatchObject({ name: 'EchoStateError', code: 'EMQSTATE' });
    expect(await jobs.counts('q')).toEqual(before);
  });

  it('forced, takes running jobs with it: their holders are told gone', async () => {
    const { jobs } = await stage.connect();
    const running = await everything(jobs);
    expect(await jobs.obliterate('q', { force: true })).toBe(7);
    expect(await jobs.complete('q', running.id, running.token, { keepMs: 5000 })).toBe('gone');
    expect(await jobs.retry('q', running.id, running.token, { maxAttempts: 5 })).toBe('gone');
    expect(await left('q')).toEqual([]);
  });

  it('loses no job that lands after it, although others land all the while', async () => {
    const { jobs } = await stage.connect();
    const producer = await stage.connect();
    const running = await everything(jobs);
    await jobs.complete('q', running.id, running.token, { keepMs: 600_000 });
    let producing = true;
    let round = 0; // 0 from the beginning of an obliteration to its end
    let landed: { id: string; round: number }[] = [];
    const produced = (async () => {
      while (producing) {
        const sentIn = round;
        const { id } = await producer.jobs.enqueue('q', 'a');
        landed.push({ id, round: sentIn });
        await new Promise((next) => setImmediate(next));
      }
    })();
    await until(() => landed.length >= 20, { what: 'the producer' });
    for (let n = 1; n <= 5; n++) {
      round = 0;
      await jobs.obliterate('q');
      round = n;
      landed = [];
      await until(() => landed.filter((job) => job.round === n).length >= 20, { what: 'jobs after the end' });
      const after = landed.filter((job) => job.round === n).map(({ id }) => id);
      await expectInvariants(stage.control, 'q');
      const kept = new Set((await jobs.list('q', 'pending', { limit: 1000 })).jobs.map(({ id }) => id));
      expect(after.filter((id) => !kept.has(id))).toEqual([]);
      expect(await jobs.isPaused('q')).toBe(false);
    }
    producing = false;
    await produced;
  });

  it('spares a job that lands while kept results are looked for, and its consumer runs it at the end', async () => {
    const proxy = await stage.proxy();
    const { jobs } = await stage.connect({ connection: proxy.url });
    const echo = await stage.connect({ clock: rareBeats() });
    const running = await everything(jobs);
    await jobs.complete('q', running.id, running.token, { keepMs: 600_000 });
    const looking = proxy.hold('SCAN');
    const obliterated = jobs.obliterate('q');
    const { release } = await looking;
    const { id } = await echo.jobs.enqueue('q', 'new');
    const ran: string[] = [];
    const consumer = echo.consume('q', {}, (job) => void ran.push(job.id));
    await hungry(stage.control, 'q');
    expect(ran).toEqual([]); // the queue is paused to the end
    release();
    expect(await obliterated).toBe(6);
    await until(() => ran.length === 1, { what: 'the new job' });
    expect(ran).toEqual([id]);
    await consumer.close();
    expect(Object.keys(await dumpQueue(stage.control, 'q')).filter((key) => key.startsWith('job:'))).toEqual([]);
  });

  it('leaves its parked consumers to be woken, not found by the beat', async () => {
    const [echo, producer] = [await stage.connect({ clock: rareBeats() }), await stage.connect()];
    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.name));
    for (let round = 1; round <= 3; round++) {
      await hungry(stage.control, 'q');
      await producer.jobs.obliterate('q');
      await hungry(stage.control, 'q');
      await producer.jobs.enqueue('q', `round ${round}`);
      await until(() => ran.length === round, { what: 'the new job' });
      await until(async () => (await producer.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    }
  });

  it('of a paused queue leaves a queue that is not paused, and its consumers go on with new jobs', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    await echo.jobs.pause('q');
    await echo.jobs.enqueue('q', 'old');
    echo.consume('q', {}, (job) => void ran.push(job.name));
    expect(await echo.jobs.obliterate('q')).toBe(1);
    await echo.jobs.enqueue('q', 'new');
    await until(() => ran.length === 1, { what: 'the new job' });
    expect(ran).toEqual(['new']);
  });
});
