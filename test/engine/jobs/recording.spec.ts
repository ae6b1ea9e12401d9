import { describe, expect, it } from '@jest/globals';
import type { Completion, ConsumerOptions, EchoMq, Job } from '../../../lib/core.js';
import { describeWithProcess } from '../../support/availability.js';
import { until } from '../../support/until.js';
import { failure, numbers, serverMs, useStage } from './stage.js';

const STREAM = 'emq:{q}:stream:completions';

/** Consumes until so many jobs have settled, then no more; handlers answer their data, those called `fails` throw. */
async function settled(echo: EchoMq, total: number, options: ConsumerOptions): Promise<void> {
  let ran = 0;
  const consumer = echo.consume('q', { attempts: 1, concurrency: 20, ...options }, (job: Job) => {
    ran += 1;
    if (job.name === 'fails') throw new Error('boom');
    return job.data;
  });
  const over = async () => {
    const { metrics } = await echo.jobs.counts('q');
    return metrics.completed + metrics.failed >= total;
  };
  await until(over, { what: 'all to settle', progress: () => ran });
  await consumer.close();
}

async function enqueue(echo: EchoMq, total: number): Promise<string[]> {
  const landed = await echo.jobs.enqueueMany(
    'q',
    numbers(total).map((n) => ({ name: 'a', data: { n } })),
  );
  return landed.map(({ id }) => id);
}

/** All that can be read behind an entry, page by page. */
async function everything({ jobs }: EchoMq, after?: string, limit?: number): Promise<Completion[]> {
  const found: Completion[] = [];
  for (let next = after; ; ) {
    const page = await jobs.completions('q', { after: next, limit });
    if (page.entries.length === 0) return found;
    found.push(...page.entries);
    next = page.next;
  }
}

describe('recording', () => {
  const stage = useStage();

  it('is off unless a consumer says otherwise: no stream is made', async () => {
    const echo = await stage.connect();
    await enqueue(echo, 5);
    await settled(echo, 5, {});
    expect(await stage.control.exists(STREAM)).toBe(0);
    expect(await echo.jobs.completions('q')).toEqual({ entries: [], next: '0-0', restarted: false });
  });

  it('tells of every completion and every death, what they answered, and when', async () => {
    const echo = await stage.connect();
    const from = await serverMs(stage.control);
    const completes = await echo.jobs.enqueue('q', 'a', { n: 1 });
    const silent = await echo.jobs.enqueue('q', 'a');
    const fails = await echo.jobs.enqueue('q', 'fails');
    await settled(echo, 3, { record: true, keepMs: 60_000 });
    const to = await serverMs(stage.control);
    const { entries, next, restarted } = await echo.jobs.completions('q');
    expect(restarted).toBe(false);
    expect(next).toBe(entries.at(-1)!.at);
    expect(Object.fromEntries(entries.map(({ at, atMs, ...entry }) => [entry.id, entry]))).toEqual({
      [completes.id]: { id: completes.id, outcome: 'completed', attempts: 1, result: { n: 1 } },
      [silent.id]: { id: silent.id, outcome: 'completed', attempts: 1, result: null },
      [fails.id]: { id: fails.id, outcome: 'dead', attempts: 1, error: expect.stringMatching(/^Error: boom\n/) },
    });
    for (const { atMs } of entries) {
      expect(atMs).toBeGreaterThanOrEqual(from);
      expect(atMs).toBeLessThanOrEqual(to);
    }
  });

  it('tells of a failure only when it is the last, with all the claims it took', async () => {
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'fails');
    await settled(echo, 1, { record: true, attempts: 3, backoff: { type: 'fixed', delayMs: 1 } });
    const { entries } = await echo.jobs.completions('q');
    expect(entries).toEqual([expect.objectContaining({ id, outcome: 'dead', attempts: 3 })]);
  });

  it('tells of a job that was buried because its lease had lapsed', async () => {
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'a');
    await echo.jobs.claim('q', { leaseMs: 1 });
    await settled(echo, 1, { record: true, maxStalls: 0 });
    const { entries } = await echo.jobs.completions('q');
    expect(entries).toEqual([
      expect.objectContaining({ id, outcome: 'dead', attempts: 1, error: 'lease lapsed 1 times' }),
    ]);
  });

  it('tells of the parents that fall with a child in the same step', async () => {
    const echo = await stage.connect();
    const child = { queue: 'q', name: 'fails' };
    const top = await echo.flows.add({
      queue: 'q',
      name: 'top',
      children: [{ queue: 'q', name: 'up', children: [child] }],
    });
    await settled(echo, 3, { record: true });
    const { entries } = await echo.jobs.completions('q');
    const up = top.children[0]!;
    expect(entries.map(({ id, outcome }) => [id, outcome])).toEqual([
      [up.children[0]!.id, 'dead'],
      [up.id, 'dead'],
      [top.id, 'dead'],
    ]);
    expect(entries[1]).toMatchObject({ error: expect.stringMatching(/^child q\|JOB.*: Error: boom/) });
  });

  it('keeps about as many entries as it is told, the newest', async () => {
    const echo = await stage.connect();
    const ids = await enqueue(echo, 1000);
    await settled(echo, 1000, { record: 200 });
    const length = await stage.control.xlen(STREAM);
    expect(length).toBeGreaterThanOrEqual(200);
    expect(length).toBeLessThanOrEqual(300); // whole nodes of 100 entries go
    const kept = await everything(echo);
    expect(kept).toHaveLength(length);
    expect(ids.slice(-100).every((id) => kept.some((entry) => entry.id === id))).toBe(true);
  });

  it('keeps all for Infinity, about 10,000 for true', async () => {
    const echo = await stage.connect();
    await enqueue(echo, 10_500);
    let ran = 0;
    const options = { concurrency: 500, record: Number.POSITIVE_INFINITY };
    const all = echo.consume('q', options, () => {
      ran += 1;
      return 'r';
    });
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 10_500, {
      what: 'all',
      progress: () => ran,
    });
    await all.close();
    expect(await stage.control.xlen(STREAM)).toBe(10_500);
    await enqueue(echo, 1);
    await settled(echo, 10_501, { record: true });
    const length = await stage.control.xlen(STREAM);
    expect(length).toBeGreaterThanOrEqual(10_000);
    expect(length).toBeLessThanOrEqual(10_100);
  });

  it('goes when the queue is obliterated', async () => {
    const echo = await stage.connect();
    await enqueue(echo, 3);
    await settled(echo, 3, { record: true });
    await echo.jobs.obliterate('q');
    expect(await stage.control.exists(STREAM)).toBe(0);
  });

  it('is done by hand as well, for tests', async () => {
    const echo = await stage.connect();
    const kit = echo.byHand();
    const queue = kit.serve('q', { record: true }, () => 'done');
    const { id } = await echo.jobs.enqueue('q', 'a');
    for (const row of await queue.take(1)) await queue.runOne(row);
    await queue.consumer.close();
    expect((await echo.jobs.completions('q')).entries).toEqual([expect.objectContaining({ id, result: 'done' })]);
  });
});

describe('completions', () => {
  const stage = useStage();

  it('are read in pages, each once, and what comes later is behind them', async () => {
    const echo = await stage.connect();
    const ids = await enqueue(echo, 250);
    await settled(echo, 250, { record: true });
    const { entries, next } = await echo.jobs.completions('q');
    expect(entries).toHaveLength(100);
    const rest = await everything(echo, next, 60);
    expect([...entries, ...rest].map(({ id }) => id).sort()).toEqual(ids);
    const end = rest.at(-1)!.at;
    expect(await echo.jobs.completions('q', { after: end })).toEqual({ entries: [], next: end, restarted: false });
    const [late] = await enqueue(echo, 1);
    await settled(echo, 251, { record: true });
    expect((await echo.jobs.completions('q', { after: end })).entries.map(({ id }) => id)).toEqual([late]);
  });

  it('end a page of large results early, and leave none out', async () => {
    const echo = await stage.connect();
    await echo.jobs.enqueueMany(
      'q',
      numbers(5).map((n) => ({ name: 'a', data: `${n}${'x'.repeat(3_000_000)}` })),
    );
    await settled(echo, 5, { record: true, concurrency: 1 });
    expect((await echo.jobs.completions('q')).entries).toHaveLength(2);
    expect((await everything(echo)).map((entry) => 'result' in entry && String(entry.result)[0])).toEqual([...'01234']);
  });

  it('show the bytes of a result that the codec cannot read, and what is behind it', async () => {
    const { jobs } = await stage.connect();
    await stage.control.xadd(STREAM, '*', 'id', 'JOB00000000001', 'outcome', 'completed', 'at', '5', 'result', '{');
    await stage.control.xadd(STREAM, '*', 'id', 'JOB00000000002', 'outcome', 'completed', 'at', '6', 'result', '7');
    const { entries } = await jobs.completions('q');
    expect(entries).toMatchObject([{ result: Buffer.from('{') }, { result: 7 }]);
  });

  it.each<[unknown, RegExp]>([
    [{ after: '' }, /^after must be the 'next' of a page/],
    [{ after: '5' }, /^after must be/],
    [{ after: 5 }, /^after must be/],
    [{ after: '$' }, /^after must be/],
    [{ after: '05-1' }, /^after must be/],
    [{ after: '9007199254740993-0' }, /^after must be/],
    [{ limit: 0 }, /^limit must be a whole number from 1 to 1000/],
    [{ limit: 1001 }, /^limit must be/],
    [{ count: 1 }, /unknown option 'count'/],
    [null, /must be an object/],
  ])('refuse %p', async (options, message) => {
    const { jobs } = await stage.connect();
    const error = await failure(jobs.completions('q', options as never));
    expect(error).toMatchObject({ name: 'EchoArgumentError', message: expect.stringMatching(message) });
  });
});

describeWithProcess('a reader of completions whose server has lost them (C154)', () => {
  const stage = useStage();

  /** Reads all there is, loses it, and says where the reader stands. */
  const read = async (echo: EchoMq): Promise<string> => {
    await enqueue(echo, 3);
    await settled(echo, 3, { record: true });
    return (await echo.jobs.completions('q')).next;
  };

  it('is told so after FLUSHALL, and goes on with what the new stream holds', async () => {
    const echo = await stage.connect();
    const next = await read(echo);
    await stage.control.flushall();
    const empty = await echo.jobs.completions('q', { after: next });
    expect(empty).toEqual({ entries: [], next: '0-0', restarted: true });
    const [id] = await enqueue(echo, 1);
    await settled(echo, 1, { record: true });
    const page = await echo.jobs.completions('q', { after: empty.next });
    expect(page).toMatchObject({ entries: [{ id }], restarted: false });
  });

  it('is not kept waiting by a new stream whose ids are lower: a server whose clock is behind', async () => {
    const echo = await stage.connect();
    await read(echo);
    const ahead = `${(await serverMs(stage.control)) + 86_400_000}-0`; // as if its old server's clock had been a day ahead
    await stage.control.flushall();
    const ids = await enqueue(echo, 2);
    await settled(echo, 2, { record: true });
    const page = await echo.jobs.completions('q', { after: ahead });
    expect(page).toMatchObject({ restarted: true, next: page.entries.at(-1)!.at });
    expect(page.entries.map(({ id }) => id).sort()).toEqual(ids);
    const again = await echo.jobs.completions('q', { after: page.next });
    expect(again).toEqual({ entries: [], next: page.next, restarted: false });
  });

  it('is told so by a server that was restarted empty', async () => {
    const echo = await stage.connect({ onError: () => undefined });
    const next = await read(echo);
    await stage.server.process.restart();
    const page = await until(() => echo.jobs.completions('q', { after: next }).catch(() => undefined), {
      what: 'the server to be back',
    });
    expect(page).toEqual({ entries: [], next: '0-0', restarted: true });
  });
});
