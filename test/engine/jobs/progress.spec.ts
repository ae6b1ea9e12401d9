import { describe, expect, it } from '@jest/globals';
import { type Codec, type EchoError, type Job, jsonCodec, Snooze } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { listenTo } from '../bus/listened.js';
import { fastClock } from '../fast-clock.js';
import { latch, numbers, quiet, useStage } from './stage.js';

describe('the progress of a job', () => {
  const stage = useStage();

  it('stands in its row while it runs, as it was reported', async () => {
    const echo = await stage.connect();
    const [reported, gate] = [latch(), latch()];
    echo.consume('q', {}, async (job) => {
      await job.progress({ done: 1, of: [2, 'three'] });
      reported.open();
      await gate.opened;
    });
    const { id } = await echo.jobs.enqueue('q', 'job');
    await reported.opened;
    expect(await echo.jobs.get('q', id)).toMatchObject({ state: 'active', progress: { done: 1, of: [2, 'three'] } });
    gate.open();
  });

  it('is absent before it is reported', async () => {
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    expect(await echo.jobs.get('q', id)).toHaveProperty('progress', undefined);
  });

  it('goes out at most once in 200 ms, and the latest value arrives', async () => {
    const echo = await stage.connect({ clock: fastClock(1 / 5) }); // a second, or a busy machine could not keep within it
    const heard = await listenTo(echo, 'q');
    const gate = latch();
    const times: number[] = [];
    echo.bus.listen('q', ({ event }) => event === 'progress' && times.push(performance.now()));
    echo.consume('q', {}, async (job) => {
      for (let i = 1; i <= 1_000; i++) job.progress(i);
      await until(() => heard.of('progress').length === 1, { what: 'the first' });
      for (let i = 1_001; i <= 2_000; i++) await job.progress(i); // held back, and not waited for
      await gate.opened;
    });
    await echo.jobs.enqueue('q', 'job');
    await heard.count('progress', 2);
    // What was said in one turn is one report, and what came before the time was over another.
    expect(heard.of('progress').map(({ value }) => value)).toEqual([1_000, 2_000]);
    expect(times[1]! - times[0]!).toBeGreaterThan(750);
    gate.open();
    await heard.first('completed');
    expect(heard.of('progress')).toHaveLength(2);
  });

  it('of several jobs that report in one turn is one call', async () => {
    const echo = await stage.connect();
    const ear = await stage.overhear();
    const heard = await listenTo(echo, 'q');
    const [all, gate] = [latch(), latch()];
    let running = 0;
    echo.consume('q', { concurrency: 20 }, async (job: Job<number>) => {
      running += 1;
      if (running === 20) all.open();
      await all.opened;
      await job.progress(job.data);
      await gate.opened;
    });
    const landed = await echo.jobs.enqueueMany(
      'q',
      numbers(20).map((data) => ({ name: 'job', data })),
    );
    await heard.count('progress', 20);
    const calls = (await ear.said()).filter((args) => /^eval/i.test(args[0]!) && args.length === 5 + 20 * 3);
    expect(calls).toHaveLength(1);
    expect(calls[0]!.slice(2, 6)).toEqual(['2', 'emq:{q}:active', 'emq:{q}:', landed[0]!.id]);
    gate.open();
  });

  const ends: [string, (job: Job) => unknown, string][] = [
    ['completes', () => 'done', 'completed'],
    ['fails', () => Promise.reject(new Error('boom')), 'retried'],
    ['dies', (job) => Promise.reject(new Error(`boom ${job.id}`)), 'dead'],
  ];
  it.each(ends)('that is held back goes out before the end when the job %s', async (_how, end, event) => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    echo.consume('q', { attempts: event === 'dead' ? 1 : 2, backoff: () => 60_000, keepMs: 60_000 }, async (job) => {
      await job.progress('begun');
      job.progress('nearly there');
      return end(job);
    });
    const { id } = await echo.jobs.enqueue('q', 'job');
    await heard.first(event as 'dead');
    expect(heard.events.slice(2).map((told) => [told.event, 'value' in told ? told.value : ''])).toEqual([
      ['progress', 'begun'],
      ['progress', 'nearly there'],
      [event, ''],
    ]);
    expect(await echo.jobs.get('q', id)).toMatchObject({ progress: 'nearly there' });
  });

  it('of a handler that returns in the same turn arrives, also on a server that has never seen the script', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    echo.consume('q', { keepMs: 60_000 }, (job) => {
      job.progress('all of it');
    });
    for (let round = 1; round <= 3; round++) {
      const { id } = await echo.jobs.enqueue('q', 'job');
      await heard.count('completed', round);
      expect(await echo.jobs.get('q', id)).toMatchObject({ state: 'done', progress: 'all of it' });
      expect(heard.of('progress')).toHaveLength(round);
    }
  });

  it('of a job that is snoozed stays in its row for the next run', async () => {
    const echo = await stage.connect();
    const seen: unknown[] = [];
    echo.consume('q', {}, async (job) => {
      seen.push((await echo.jobs.get('q', job.id))?.progress);
      if (seen.length > 1) return;
      job.progress({ cursor: 17 });
      throw new Snooze(0);
    });
    await echo.jobs.enqueue('q', 'job');
    await until(() => seen.length === 2, { what: 'the second run' });
    expect(seen).toEqual([undefined, { cursor: 17 }]);
  });

  it('is dropped once the job is settled, given back or taken away', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    const jobs: Job[] = [];
    const gate = latch();
    const consumer = echo.consume('q', { concurrency: 3, timeoutMs: 100, attempts: 1, keepMs: 60_000 }, (job) => {
      jobs.push(job);
      return job.name === 'quick' ? undefined : gate.opened;
    });
    const lost: Job[] = [];
    consumer.on('lease-lost', (job) => lost.push(job));
    const [quick, late] = await echo.jobs.enqueueMany('q', [{ name: 'quick' }, { name: 'late' }]);
    await heard.first('completed');
    await heard.first('dead');
    for (const job of jobs) await job.progress('too late');
    await quiet(echo, 'q');
    expect(heard.of('progress')).toEqual([]);
    for (const { id } of [quick!, late!]) expect(await echo.jobs.get('q', id)).toHaveProperty('progress', undefined);
    gate.open();
  });

  it('of somebody who has lost his claim changes nothing, and is no error of the handler', async () => {
    const echo = await stage.connect();
    const [begun, taken] = [latch<Job>(), latch()];
    const outcomes: string[] = [];
    const consumer = echo.consume('q', { leaseMs: 60_000 }, async (job) => {
      begun.open(job);
      await taken.opened;
      await job.progress('mine'); // the server refuses it
      outcomes.push('reported');
    });
    consumer.on('lease-lost', () => outcomes.push('lost'));
    const { id } = await echo.jobs.enqueue('q', 'job');
    await begun.opened;
    consumer.pause();
    await stage.control.zadd('emq:{q}:active', 1, id);
    await echo.jobs.reap('q'); // unless the leader did
    await until(async () => (await echo.jobs.get('q', id))?.state === 'pending', { what: 'the lapse' });
    const [other] = await echo.jobs.claim('q', { leaseMs: 60_000 });
    taken.open();
    await until(() => outcomes.length === 2, { what: 'the end' });
    expect(outcomes).toEqual(['reported', 'lost']);
    expect(await echo.jobs.get('q', id)).toMatchObject({ state: 'active', attempts: 2, progress: undefined });
    expect(await echo.jobs.complete('q', id, other!.token)).toBe('ok');
  });

  it('that cannot be encoded, or is too large, is refused at once: the attempt fails unless the handler catches it', async () => {
    const echo = await stage.connect({ maxPayloadBytes: 1_000 });
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const values = [circular, 1n, () => undefined, Number.NaN, Buffer.from('x'), 'x'.repeat(1_000)];
    const errors: EchoError[] = [];
    const told: [string, unknown][] = [];
    const consumer = echo.consume('q', { attempts: 1 }, (job) => {
      if (job.name === 'careless') return job.progress(circular);
      for (const value of values) {
        try {
          job.progress(value);
        } catch (error) {
          errors.push(error as EchoError);
        }
      }
      return 'done';
    });
    consumer.on('completed', (job) => told.push([job.name, 'completed']));
    consumer.on('failed', (job, error) => told.push([job.name, (error as EchoError).name]));
    await echo.jobs.enqueueMany('q', [{ name: 'careful' }, { name: 'careless' }]);
    await until(() => told.length === 2, { what: 'both ends' });
    expect(told).toEqual([
      ['careful', 'completed'],
      ['careless', 'EchoArgumentError'],
    ]);
    expect(errors).toHaveLength(values.length);
    for (const error of errors) expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
    expect(errors.map(({ message }) => message).filter((message) => !/^(the )?progress /.test(message))).toEqual([]);
    expect(errors[0]!.message).toMatch(/^progress cannot be serialised: Converting circular/);
    expect(errors[2]!.message).toBe('progress cannot be serialised as JSON: it is a function');
  });

  it('is whatever the codec makes of it, and its bytes where the codec cannot read it', async () => {
    const bytes = Buffer.from([0xff, 0x00, 0xc3]);
    const codec: Codec = { ...jsonCodec, encodeResult: () => bytes, decodeResult: undefined };
    const echo = await stage.connect({ codec });
    const gate = latch();
    const begun = latch();
    echo.consume('q', {}, async (job) => {
      await job.progress('anything');
      begun.open();
      await gate.opened;
    });
    const { id } = await echo.jobs.enqueue('q', 'job');
    await begun.opened;
    expect(await echo.jobs.get('q', id)).toMatchObject({ progress: bytes });
    const reader = await stage.connect();
    expect(await reader.jobs.get('q', id)).toMatchObject({ progress: bytes });
    gate.open();
  });

  it('that was lost with the connection is sent again, unless there is a later one', async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url, onError: () => undefined });
    const watcher = await stage.connect();
    const heard = await listenTo(watcher, 'q');
    const gate = latch();
    const running = latch<Job>();
    echo.consume('q', { leaseMs: 60_000 }, async (job) => {
      running.open(job);
      await gate.opened;
    });
    await watcher.jobs.enqueue('q', 'job');
    const job = await running.opened;
    let cut = proxy.cutBefore('lost, and sent again');
    await job.progress('lost, and sent again');
    await cut;
    await heard.count('progress', 1);
    cut = proxy.cutBefore('lost, and overtaken');
    job.progress('lost, and overtaken');
    await cut;
    await echo.jobs.counts('q'); // connected again
    job.progress('the latest');
    await heard.count('progress', 2);
    gate.open();
    await heard.first('completed');
    expect(heard.of('progress').map(({ value }) => value)).toEqual(['lost, and sent again', 'the latest']);
  });

  it('that the server cannot take under full memory is told, and arrives when it can', async () => {
    const faults: Error[] = [];
    const echo = await stage.connect({ onError: (error) => faults.push(error) });
    const gate = latch();
    const running = latch<Job>();
    echo.consume('q', {}, async (job) => {
      running.open(job);
      await gate.opened;
    });
    const { id } = await echo.jobs.enqueue('q', 'job');
    const job = await running.opened;
    await stage.control.config('SET', 'maxmemory', '1');
    try {
      await job.progress('some');
      expect(faults).toMatchObject([{ code: 'OOM' }]);
    } finally {
      await stage.control.config('SET', 'maxmemory', '0');
    }
    await until(async () => (await echo.jobs.get('q', id))?.progress === 'some', { what: 'the value' });
    gate.open();
  });

  it('can be reported by who claims by hand, as long as the claim is his', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'job');
    const [claimed] = await jobs.claim('q', { leaseMs: 60_000 });
    expect(await jobs.progress('q', id, claimed!.token, { done: 1 })).toBe('ok');
    expect(await jobs.progress('q', id, claimed!.token, { done: 2 })).toBe('ok');
    expect(await jobs.get('q', id)).toMatchObject({ progress: { done: 2 } });
    expect(await jobs.progress('q', id, '7@nobody', { done: 3 })).toBe('stale');
    await expect(jobs.progress('q', id, claimed!.token, 1n)).rejects.toMatchObject({ code: 'EMQARG' });
    expect(await jobs.complete('q', id, claimed!.token)).toBe('ok');
    expect(await jobs.progress('q', id, claimed!.token, { done: 4 })).toBe('gone');
  });

  it('sets no timer that is left behind when the job ends', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    echo.consume('q', { concurrency: 100 }, async (job) => {
      await job.progress(1);
      job.progress(2);
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(100).map(() => ({ name: 'job' })),
    );
    await heard.count('completed', 100);
    expect(heard.of('progress').filter(({ value }) => value === 2)).toHaveLength(100);
    await echo.close();
  });
});
