import { describe, expect, it } from '@jest/globals';
import type { EchoMq, Job } from '../../lib/core.js';
import { until } from '../support/until.js';
import { fastClock } from './fast-clock.js';
import { hashOf } from './hashes.js';
import { failure, numbers, useStage } from './jobs/stage.js';

describe('whoever waits for a job over a bad connection', () => {
  const stage = useStage();
  const quietly = { onError: () => {} };

  const waited = (id: string) =>
    until(async () => (await stage.control.hget(`emq:{q}:job:${id}`, 'awaited')) === '1', {
      what: 'the wait to begin',
    });
  const subscribers = async () =>
    String(await stage.control.client('LIST'))
      .split('\n')
      .filter((line) => line.includes('name=echomq:subscriber'));

  /** Claims the job and completes it. */
  async function finish({ jobs }: EchoMq, result: unknown): Promise<void> {
    const [job] = await jobs.claim('q', { leaseMs: 60_000 });
    await jobs.complete('q', job!.id, job!.token, { result });
  }

  it('hears of an end that came while all its connections were lost', async () => {
    const proxy = await stage.proxy();
    const waiting = await stage.connect({ connection: proxy.url, ...quietly });
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    const result = waiting.jobs.wait('q', id);
    await waited(id);
    proxy.refuse();
    proxy.cut();
    await finish(echo, 'meanwhile');
    proxy.accept();
    expect(await result).toBe('meanwhile');
  });

  it('hears of an end whose message was lost with the connection', async () => {
    const proxy = await stage.proxy();
    const waiting = await stage.connect({ connection: proxy.url, ...quietly });
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    const result = waiting.jobs.wait('q', id);
    await waited(id);
    proxy.dropReplies();
    await finish(echo, 'unheard');
    await until(async () => (await echo.jobs.get('q', id))?.state === 'done', { what: 'it to end' });
    proxy.dropReplies(false);
    proxy.cut();
    expect(await result).toBe('unheard');
  });

  it('finds out by itself of an end that was told to nobody, and asks no more when nobody waits', async () => {
    const waiting = await stage.connect({ clock: fastClock(20) });
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    const result = waiting.jobs.wait('q', id);
    await waited(id);
    const [job] = await echo.jobs.claim('q', { leaseMs: 60_000 });
    await stage.control.hdel(`emq:{q}:job:${id}`, 'awaited');
    await echo.jobs.complete('q', id, job!.token, { result: 'silently', keepMs: 60_000 });
    expect(await result).toBe('silently');
    const other = await echo.jobs.enqueue('elsewhere', 'job');
    const ear = await stage.overhear();
    const late = failure(waiting.jobs.wait('elsewhere', other.id, { timeoutMs: 25_000 }));
    expect(await late).toMatchObject({ code: 'ECHO_TIMEOUT' });
    const looks = (await ear.said()).filter((args) => args.includes(hashOf('watch')));
    expect(looks.map((args) => args.at(-2))).toEqual(looks.map(() => 'emq:{elsewhere}:'));
    expect([2, 3]).toContain(looks.length); // at once, after 10 s, and on a machine that is not too busy after 20 s
  });

  it('hears of every end while its subscriptions are killed again and again', async () => {
    const waiting = await stage.connect(quietly);
    const echo = await stage.connect(quietly);
    echo.consume('q', { concurrency: 10 }, (job: Job) => job.data).on('error', () => {});
    let over = false;
    const killing = (async () => {
      while (!over) {
        await stage.control.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
        await until(async () => over || (await subscribers()).length === 2, { what: 'both subscribers' });
      }
    })();
    for (let round = 0; round < 8; round++) {
      const some = numbers(10).map((i) => 10 * round + i);
      expect(await Promise.all(some.map((n) => waiting.jobs.enqueueAndWait('q', 'job', n)))).toEqual(some);
    }
    over = true;
    await killing;
  });

  it('is not heard twice over: who begins to wait while the subscriber is being made anew makes no second one', async () => {
    const proxy = await stage.proxy();
    const waiting = await stage.connect({ connection: proxy.url, ...quietly });
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    const first = waiting.jobs.wait('q', id);
    await waited(id);
    proxy.refuse();
    proxy.cut();
    const others = numbers(20).map((i) => failure(waiting.jobs.wait(`other ${i}`, echo.jobs.mintId())));
    await until(async () => (await subscribers()).length === 0, { what: 'the subscriber to be gone' });
    others.push(...numbers(20).map((i) => failure(waiting.jobs.wait(`more ${i}`, echo.jobs.mintId()))));
    proxy.accept();
    for (const error of await Promise.all(others)) expect(error).toMatchObject({ code: 'ECHO_JOB_REMOVED' });
    await finish(echo, 1);
    expect(await first).toBe(1);
    expect(await subscribers()).toHaveLength(1);
    await waiting.close();
    await until(async () => (await subscribers()).length === 0, { what: 'its end' });
  });

  it('is told in time that it was in vain, wherever the server is lost', async () => {
    const proxy = await stage.proxy();
    const waiting = await stage.connect({
      connection: proxy.url,
      enqueueTimeoutMs: Number.POSITIVE_INFINITY,
      ...quietly,
    });
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    const keeping = waiting.jobs.wait('q', id, { timeoutMs: 60_000 }); // so that the channel is there
    await waited(id);
    const started = performance.now();
    const held = proxy.hold(hashOf('enqueue'));
    // Long enough for the job to be on its way on a busy machine too: what is given up before that is not sent.
    const enqueued = failure(waiting.jobs.enqueueAndWait('q', 'job', undefined, { timeoutMs: 1000 }));
    await held;
    const looking = failure(waiting.jobs.wait('q', id, { timeoutMs: 100 }));
    const elsewhere = failure(waiting.jobs.wait('elsewhere', id, { timeoutMs: 100 }));
    for (const error of await Promise.all([enqueued, looking, elsewhere])) {
      expect(error).toMatchObject({ code: 'ECHO_TIMEOUT', retryable: true });
    }
    expect(performance.now() - started).toBeLessThan(4_000); // not the 5 s that a request may take
    proxy.cut();
    await finish(echo, 'after all');
    expect(await keeping).toBe('after all');
    await until(async () => (await echo.jobs.counts('q')).metrics.enqueued === 2, { what: 'the other to land' });
  });

  it('does not enqueue what it gave up before it could', async () => {
    const proxy = await stage.proxy();
    const waiting = await stage.connect({ connection: proxy.url, ...quietly });
    await waiting.jobs.enqueue('other', 'job');
    const held = proxy.hold('\r\nsubscribe\r\n');
    const error = failure(waiting.jobs.enqueueAndWait('q', 'job', undefined, { timeoutMs: 1000 }));
    const { release } = await held;
    expect(await error).toMatchObject({ code: 'ECHO_TIMEOUT' });
    release();
    expect(await failure(waiting.jobs.wait('q', waiting.jobs.mintId()))).toMatchObject({ code: 'ECHO_JOB_REMOVED' });
    expect((await waiting.jobs.counts('q')).metrics.enqueued).toBe(0);
  });

  it('is told when its process closes without a server', async () => {
    const proxy = await stage.proxy();
    const waiting = await stage.connect({ connection: proxy.url, ...quietly });
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    const held = failure(waiting.jobs.wait('q', id));
    await waited(id);
    proxy.freeze();
    const late = failure(waiting.jobs.wait('elsewhere', id));
    await waiting.close();
    expect(await held).toMatchObject({ code: 'ECHO_STATE' });
    expect(await late).toMatchObject({ code: 'ECHO_STATE' });
  });
});
