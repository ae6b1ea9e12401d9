import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { type Dedup, EchoLaneFullError, type EchoMq, RateLimited } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Gates } from '../gates.js';
import { wholeHashOf } from '../hashes.js';
import { failure, hungry, numbers, useStage } from '../jobs/stage.js';

const LONG = 3_600_000;

/** The server is given the whole editions of the scripts, by whose hashes the proxy then knows the calls. */
async function warm({ jobs }: EchoMq, queue = 'q'): Promise<void> {
  await jobs.enqueueMany(queue, [
    { name: 'warm', opts: { lane: 'warm' } },
    { name: 'warm', opts: { lane: 'warm' } },
    { name: 'warm', opts: { lane: 'warm' } },
  ]);
  const [one, two, three] = await jobs.claim(queue, { leaseMs: 60_000, count: 3 });
  await jobs.complete(queue, one!.id, one!.token);
  await jobs.retry(queue, two!.id, two!.token, { maxAttempts: 1 });
  await jobs.release(queue, three!.id, three!.token);
  await jobs.remove(queue, two!.id);
  await jobs.remove(queue, three!.id);
}

/** Ids of the running jobs of lanes, by lane. */
const running = (control: Redis) => control.hgetall('emq:{q}:lanes:active');

describe('an enqueue whose answer was lost', () => {
  const stage = useStage();

  const start = async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url, onError: () => undefined });
    await warm(echo);
    const loseNext = () => proxy.passAndDropReply(wholeHashOf('enqueue'));
    /** Loses the answer, and keeps the producer from sending again until `meanwhile` has happened. */
    const loseNextAnd = async <T>(send: () => Promise<T>, meanwhile: () => Promise<unknown>): Promise<T> => {
      const lost = loseNext();
      const sent = send();
      proxy.refuse();
      await lost;
      await meanwhile();
      proxy.accept();
      return sent;
    };
    return { echo, jobs: echo.jobs, other: await stage.connect(), loseNext, loseNextAnd };
  };

  it('lands in its lane once', async () => {
    const { echo, jobs, loseNext } = await start();
    const lost = loseNext();
    const { id, status } = await jobs.enqueue('q', 'job', 1, { lane: 'A' });
    await lost;
    expect(status).toBe('landed');
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.id)).toEqual([id]);
    expect(await echo.lanes.get('q', 'A')).toMatchObject({ waiting: 1, active: 0 });
    expect((await jobs.counts('q')).metrics.enqueued).toBe(4);
  });

  it.each<[Dedup, object]>([
    [{ key: 'k' }, { status: 'duplicate', state: 'pending' }],
    [
      { key: 'k', mode: 'throttle', ttlMs: LONG },
      { status: 'duplicate', state: 'pending' },
    ],
    [
      { key: 'k', mode: 'debounce', ttlMs: LONG },
      { status: 'replaced', state: 'scheduled' },
    ],
    [
      { key: 'k', mode: 'latest-wins' },
      { status: 'replaced', state: 'pending' },
    ],
  ])('is no duplicate of itself: its own key is held by its own job (%j)', async (dedup, next) => {
    const { jobs, loseNext } = await start();
    const lost = loseNext();
    const { id, ...rest } = await jobs.enqueue('q', 'job', 1, { dedup, lane: 'A' });
    await lost;
    expect(rest).toEqual({ status: 'landed' });
    expect(await jobs.enqueue('q', 'job', 2, { dedup, lane: 'A' })).toEqual({ id, ...next });
    expect((await jobs.counts('q')).metrics.enqueued).toBe(4);
  });

  it('answers the same of each job of its turn as it would have', async () => {
    const { jobs, loseNext } = await start();
    const lost = loseNext();
    const dedup = { key: 'k', mode: 'latest-wins' } as const;
    const [one, two, three] = await Promise.all(
      numbers(3).map((n) => jobs.enqueue('q', 'job', n, { dedup, lane: 'A' })),
    );
    await lost;
    expect(one).toEqual({ id: one!.id, status: 'landed' });
    expect([two, three]).toEqual(numbers(2).map(() => ({ id: one!.id, status: 'replaced', state: 'pending' })));
    expect(await jobs.get('q', one!.id)).toMatchObject({ data: 2 });
  });

  it('does not take back what another has given its job meanwhile', async () => {
    const { jobs, other, loseNextAnd } = await start();
    const dedup = { key: 'k', mode: 'latest-wins' } as const;
    const { id, status } = await loseNextAnd(
      () => jobs.enqueue('q', 'job', 'older', { dedup }),
      () => other.jobs.enqueue('q', 'job', 'newer', { dedup }),
    );
    expect(status).toBe('landed');
    expect(await jobs.get('q', id)).toMatchObject({ data: 'newer' });
  });

  it('of a throttle is known to have landed even when its job has run meanwhile', async () => {
    const { jobs, other, loseNextAnd } = await start();
    const dedup = { key: 'k', mode: 'throttle', ttlMs: LONG } as const;
    const run = async () => {
      const [job] = await other.jobs.claim('q', { leaseMs: 60_000 });
      await other.jobs.complete('q', job!.id, job!.token);
    };
    expect(await loseNextAnd(() => jobs.enqueue('q', 'job', 1, { dedup, lane: 'A' }), run)).toMatchObject({
      status: 'landed',
    });
    expect(await jobs.counts('q')).toMatchObject({ pending: 0, metrics: { enqueued: 4, completed: 2 } });
  });

  it('is not told that its lane is full, which it has filled itself', async () => {
    const { echo, jobs, loseNext } = await start();
    await echo.lanes.configure('q', 'A', { maxWaiting: 2 });
    const lost = loseNext();
    const items = numbers(3).map((n) => ({ name: 'job', data: n, opts: { lane: 'A' } }));
    const turn = await Promise.allSettled(items.map(({ name, data, opts }) => jobs.enqueue('q', name, data, opts)));
    await lost;
    expect(turn.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(turn.slice(0, 2)).toMatchObject(numbers(2).map(() => ({ value: { status: 'landed' } })));
    expect((turn[2] as PromiseRejectedResult).reason).toBeInstanceOf(EchoLaneFullError);
    expect((await echo.lanes.get('q', 'A')).waiting).toBe(2);
  });

  it('has landed also when its job runs by now, and another has filled the lane', async () => {
    const { echo, jobs, other, loseNextAnd } = await start();
    await echo.lanes.configure('q', 'A', { maxWaiting: 1 });
    const fill = async () => {
      await other.jobs.claim('q', { leaseMs: 60_000 });
      await other.jobs.enqueue('q', 'another', 1, { lane: 'A' });
    };
    expect(await loseNextAnd(() => jobs.enqueue('q', 'job', 1, { lane: 'A' }), fill)).toMatchObject({
      status: 'landed',
    });
    expect(await failure(jobs.enqueue('q', 'job', 1, { lane: 'A' }))).toBeInstanceOf(EchoLaneFullError);
    expect(await echo.lanes.get('q', 'A')).toMatchObject({ waiting: 1, active: 1 });
  });

  it('is heard of once by those who listen', async () => {
    const { jobs, other, loseNext } = await start();
    const heard: string[] = [];
    await other.bus.listen('q', ({ event, id }) => heard.push(`${event} ${id}`)).ready;
    const lost = loseNext();
    const { id } = await jobs.enqueue('q', 'job', 1, { lane: 'A', dedup: { key: 'k' } });
    await lost;
    const next = await jobs.enqueue('q', 'next');
    await until(() => heard.length >= 2, { what: 'the second event' });
    expect(heard).toEqual([`landed ${id}`, `landed ${next.id}`]);
  });
});

describe('a lane with a cap of 1, in a queue that runs 2 jobs at most, when the answer is lost', () => {
  const stage = useStage();

  const start = async (leaseMs = 60_000) => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url, onError: () => undefined });
    const looker = await stage.connect();
    await warm(echo);
    await echo.lanes.configure('q', 'A', { cap: 1 });
    await echo.jobs.limit('q', { concurrency: 2 });
    const gates = new Gates();
    const backoff = { type: 'fixed', delayMs: 0 } as const;
    const consumer = echo.consume('q', { concurrency: 5, claimAhead: false, leaseMs, backoff }, gates.handler);
    consumer.on('error', () => undefined);
    await hungry(stage.control, 'q');
    return { proxy, jobs: looker.jobs, lanes: looker.lanes, gates };
  };

  type Ground = Awaited<ReturnType<typeof start>>;
  const fill = ({ jobs }: Ground, count: number) =>
    jobs.enqueueMany(
      'q',
      numbers(count).map((n) => ({ name: 'job', data: n, opts: { lane: 'A' } })),
    );

  /** Ends the runs from the n-th on, one at a time: at no moment two of them run. */
  const finish = async ({ gates, jobs }: Ground, from: number, to: number, completed: number) => {
    for (let n = from; n <= to; n++) {
      const { job, end } = await gates.run(n, 10_000);
      expect(await running(stage.control)).toEqual({ [job.id]: 'A' });
      expect(gates.runs).toHaveLength(n);
      end();
    }
    await until(async () => (await jobs.counts('q')).metrics.completed === completed, { what: 'the completions' });
    expect(await running(stage.control)).toEqual({});
  };

  it('of a claim, gives the cap back with the lease', async () => {
    const here = await start(300);
    const lost = here.proxy.passAndDropReply(wholeHashOf('claim'));
    await fill(here, 3);
    await lost;
    const first = await here.gates.run(1, 10_000);
    expect(first.job.attempts).toBe(2);
    await finish(here, 1, 3, 4);
  });

  it('of a completion, gives the cap back once: the repetition does not touch that of the next job', async () => {
    const here = await start();
    await fill(here, 3);
    const lost = here.proxy.passAndDropReply(wholeHashOf('complete'));
    (await here.gates.run(1)).end();
    await lost;
    await finish(here, 2, 3, 4);
  });

  it('of a retry, likewise', async () => {
    const here = await start();
    await fill(here, 2);
    const lost = here.proxy.passAndDropReply(wholeHashOf('retry'));
    (await here.gates.run(1)).fail(new Error('boom'));
    await lost;
    const again = await here.gates.run(2);
    expect(again.job).toMatchObject({ id: here.gates.runs[0]!.job.id, attempts: 2 });
    await finish(here, 2, 3, 3);
    expect((await here.jobs.counts('q')).metrics.retried).toBe(1);
  });

  it('of a release that holds the lane back, holds it back once: lifted, it stays so', async () => {
    const here = await start();
    await fill(here, 2);
    const lost = here.proxy.passAndDropReply(wholeHashOf('release'));
    here.proxy.refuse();
    (await here.gates.run(1)).fail(new RateLimited(LONG));
    await lost;
    expect((await here.lanes.get('q', 'A')).turnInMs).toBeGreaterThan(LONG / 2);
    await here.lanes.liftHold('q', 'A');
    here.proxy.accept();
    await finish(here, 2, 3, 3);
    expect((await here.lanes.get('q', 'A')).turnInMs ?? 0).toBe(0);
  });
});

describe('while all connections are cut, again and again,', () => {
  const stage = useStage();

  it('every job that landed ends once, none that was refused runs, and no lane is fuller than it may be', async () => {
    const proxy = await stage.proxy();
    const looker = await stage.connect();
    const connect = () => stage.connect({ connection: proxy.url, onError: () => undefined });
    const [producers, workers] = await Promise.all([
      Promise.all(numbers(3).map(connect)),
      Promise.all(numbers(3).map(connect)),
    ]);
    await looker.lanes.configureDefault('q', { cap: 2, maxWaiting: 8 });
    const options = { concurrency: 4, leaseMs: 500, keepMs: 600_000, maxStalls: 100, record: 100_000 };
    const handler = () => new Promise<void>((next) => setImmediate(next));
    for (const worker of workers) worker.consume('q', options, handler).on('error', () => undefined);
    await hungry(stage.control, 'q', 3);

    const landed: string[] = [];
    let full = 0;
    let left = producers.length;
    const produce = async ({ jobs }: EchoMq, p: number) => {
      for (const n of numbers(120)) {
        const opts = { lane: `lane ${n % 4}`, ...(n % 3 === 0 ? { dedup: { key: `${p} ${n}` } } : {}) };
        try {
          const { id, status } = await jobs.enqueue('q', 'job', n, opts);
          expect(status).toBe('landed');
          landed.push(id);
        } catch (error) {
          expect(error).toBeInstanceOf(EchoLaneFullError);
          full += 1;
        }
      }
      left -= 1;
    };
    const producing = Promise.all(producers.map(produce));
    for (let cuts = 0, at = 0; left > 0; ) {
      const lanes = Object.values(await running(stage.control));
      for (const lane of new Set(lanes)) expect(lanes.filter((one) => one === lane).length).toBeLessThanOrEqual(2);
      if (cuts < 12 && landed.length >= at) {
        proxy.cut();
        cuts += 1;
        at = landed.length + 20;
      }
    }
    await producing;
    const ended = async () => (await looker.jobs.counts('q')).metrics.completed === landed.length;
    await until(ended, { what: 'the end of all', timeoutMs: 15_000 });
    expect(landed.length + full).toBe(360);
    const entries = await stage.control.xrange('emq:{q}:stream:completions', '-', '+');
    expect(entries.map(([, [, id]]) => id).sort()).toEqual([...landed].sort());
    expect(await running(stage.control)).toEqual({});
  });
});
