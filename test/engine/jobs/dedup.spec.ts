import { describe, expect, it } from '@jest/globals';
import type { Dedup, EnqueueOptions } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { failure, numbers, useStage } from './stage.js';

const LONG = 3_600_000;

describe('a deduplication key', () => {
  const stage = useStage();
  const held = (key: string) => stage.control.get(`emq:{q}:dedup:${key}`);
  const settled = { key: 'k' } as const;

  it('lets one job land until that has settled: pending, scheduled, active or dead, the answer says which and where', async () => {
    const { jobs } = await stage.connect();
    const add = (opts: EnqueueOptions = {}) => jobs.enqueue('q', 'job', undefined, { ...opts, dedup: settled });
    const first = await add({ delayMs: LONG });
    expect(first.status).toBe('landed');
    const again = async (state: string) => expect(await add()).toEqual({ id: first.id, status: 'duplicate', state });
    await again('scheduled');
    await jobs.reschedule('q', first.id, { delayMs: 0 });
    await again('pending');
    const claim = async () => (await jobs.claim('q', { leaseMs: 60_000 }))[0]!.token;
    const token = await claim();
    await again('active');
    await jobs.retry('q', first.id, token, { maxAttempts: 5, delayMs: LONG });
    await again('scheduled');
    await jobs.reschedule('q', first.id, { delayMs: 0 });
    await jobs.complete('q', first.id, await claim());
    expect(await held('k')).toBeNull();
    expect(await add()).toMatchObject({ status: 'landed' });
    expect((await jobs.counts('q')).metrics.enqueued).toBe(2);
  });

  it('is freed by every end of its owner, in that step', async () => {
    const { jobs } = await stage.connect();
    const add = async () => (await jobs.enqueue('q', 'job', undefined, { dedup: settled })).id;
    const claim = async () => (await jobs.claim('q', { leaseMs: 60_000 }))[0]!.token;
    const ends: ((id: string) => Promise<unknown>)[] = [
      async (id) => jobs.complete('q', id, await claim()),
      async (id) => jobs.complete('q', id, await claim(), { keepMs: LONG }),
      async (id) => jobs.retry('q', id, await claim(), { maxAttempts: 0 }),
      (id) => jobs.remove('q', id),
      (id) => jobs.cancel('q', id),
      async () => {
        await jobs.claim('q', { leaseMs: 1 });
        const reaped = async () => (await jobs.reap('q', { maxStalls: 0 })).died === 1;
        await until(reaped, { what: 'its lease to lapse' });
      },
    ];
    for (const end of ends) {
      const id = await add();
      expect(await held('k')).toBe(id);
      expect((await jobs.get('q', id))!.dedupKey).toBe('k');
      await end(id);
      expect(await held('k')).toBeNull();
    }
  });

  it('is freed by nobody else: the end of an older job leaves it to the newer one (C090)', async () => {
    const { jobs } = await stage.connect();
    const add = (opts: EnqueueOptions = {}) => jobs.enqueue('q', 'job', undefined, { ...opts, dedup: settled });
    const one = await add();
    await jobs.retry('q', one.id, (await jobs.claim('q', { leaseMs: 60_000 }))[0]!.token, { maxAttempts: 0 });
    const two = await add({ delayMs: LONG });
    expect(two.status).toBe('landed');
    expect(await jobs.remove('q', one.id)).toBe('ok');
    expect(await add()).toEqual({ id: two.id, status: 'duplicate', state: 'scheduled' });
    expect(await held('k')).toBe(two.id);
  });

  it('is taken again by a job that is reprocessed, if it is free', async () => {
    const { jobs } = await stage.connect();
    const add = () => jobs.enqueue('q', 'job', undefined, { dedup: settled });
    const die = async (id: string) => {
      const [claimed] = await jobs.claim('q', { leaseMs: 60_000 });
      expect(claimed!.id).toBe(id);
      await jobs.retry('q', id, claimed!.token, { maxAttempts: 0 });
    };
    const one = await add();
    await die(one.id);
    await jobs.reprocess('q', one.id);
    expect(await add()).toEqual({ id: one.id, status: 'duplicate', state: 'pending' });
    await die(one.id);
    const two = await add();
    await jobs.reprocess('q', one.id); // the key is taken: both run
    expect(await held('k')).toBe(two.id);
    await jobs.remove('q', one.id);
    expect(await held('k')).toBe(two.id);
  });

  it('is not needed to be told of a job that is kept under its id (C092)', async () => {
    const { jobs } = await stage.connect();
    const id = jobs.mintId();
    const add = () => jobs.enqueue('q', 'job', undefined, { id });
    await add();
    await jobs.complete('q', id, (await jobs.claim('q', { leaseMs: 60_000 }))[0]!.token, { keepMs: LONG });
    expect(await add()).toEqual({ id, status: 'duplicate', state: 'done' });
    expect(await jobs.enqueueMany('q', [{ name: 'job', opts: { id } }])).toEqual([
      { id, status: 'duplicate', state: 'done' },
    ]);
  });

  it('holds within one call too: of a bulk, and of one turn, the first one lands', async () => {
    const { jobs } = await stage.connect();
    const item = { name: 'job', opts: { dedup: settled } };
    const [first, second] = await jobs.enqueueMany('q', [item, item]);
    expect(second).toEqual({ id: first!.id, status: 'duplicate', state: 'pending' });
    const turn = await Promise.all(numbers(3).map(() => jobs.enqueue('q', 'job', 1, { dedup: { key: 'turn' } })));
    expect(turn.map(({ status }) => status)).toEqual(['landed', 'duplicate', 'duplicate']);
  });

  it('lets exactly one job of many producers land', async () => {
    const engines = await Promise.all(numbers(5).map(() => stage.connect()));
    const results = await Promise.all(
      engines.flatMap(({ jobs }, e) =>
        numbers(40).map((n) => jobs.enqueue('q', 'job', `${e} ${n}`, { dedup: { key: `k${n % 4}` } })),
      ),
    );
    const landed = results.filter(({ status }) => status === 'landed').map(({ id }) => id);
    expect(landed).toHaveLength(4);
    expect(new Set(results.map(({ id }) => id))).toEqual(new Set(landed));
    expect((await engines[0]!.jobs.counts('q')).pending).toBe(4);
  });

  it('until-settled with ttlMs is held no longer than that', async () => {
    const { jobs } = await stage.connect();
    const add = (ttlMs: number) => jobs.enqueue('q', 'job', undefined, { dedup: { key: 'k', ttlMs } });
    const first = await add(50);
    let second = await add(LONG);
    await until(
      async () => {
        second = await add(LONG);
        return second.status === 'landed';
      },
      { what: 'the key to be free' },
    );
    expect(await jobs.remove('q', first.id)).toBe('ok');
    expect(await held('k')).toBe(second.id);
  });

  it('of a throttle holds by time only, whatever becomes of the job', async () => {
    const { jobs } = await stage.connect();
    const add = (ttlMs: number, key = 'k') =>
      jobs.enqueue('q', 'job', undefined, { dedup: { key, mode: 'throttle', ttlMs } });
    const { id } = await add(LONG);
    expect(await add(LONG)).toEqual({ id, status: 'duplicate', state: 'pending' });
    await jobs.complete('q', id, (await jobs.claim('q', { leaseMs: 60_000 }))[0]!.token);
    expect(await add(LONG)).toEqual({ id, status: 'duplicate', state: 'gone' });
    await add(40, 'short');
    await until(async () => (await add(40, 'short')).status === 'landed', { what: 'the time to be over' });
  });

  it('of a debounce gives a waiting job the newest data and begins its wait anew', async () => {
    const { jobs } = await stage.connect();
    const add = (data: unknown, ttlMs = LONG) =>
      jobs.enqueue('q', 'job', data, { dedup: { key: 'k', mode: 'debounce', ttlMs } });
    const due = async () => Number(await stage.control.zscore('emq:{q}:schedule', id));
    const { id, status } = await add(1);
    expect(status).toBe('landed');
    const before = await due();
    expect(await add(2, 2 * LONG)).toEqual({ id, status: 'replaced', state: 'scheduled' });
    expect(await due()).toBeGreaterThanOrEqual(before + LONG);
    expect(await jobs.get('q', id)).toMatchObject({ data: 2, state: 'scheduled' });
    await jobs.reschedule('q', id, { delayMs: 0 });
    const next = await add(3); // it waits no more: this is the next one
    expect(next.status).toBe('landed');
    expect(next.id).not.toBe(id);
    await jobs.remove('q', id);
    expect(await held('k')).toBe(next.id);
  });

  it('of latest-wins gives a job that has not started the newest data, in its place', async () => {
    const { jobs } = await stage.connect();
    const add = (data: unknown) => jobs.enqueue('q', 'job', data, { dedup: { key: 'k', mode: 'latest-wins' } });
    const { id } = await add(1);
    await jobs.enqueue('q', 'behind');
    expect(await add(2)).toEqual({ id, status: 'replaced', state: 'pending' });
    const [claimed] = await jobs.claim('q', { leaseMs: 60_000 });
    expect(claimed).toMatchObject({ id, data: 2 });
    const next = await add(3);
    expect(next.status).toBe('landed');
    expect(await add(4)).toEqual({ id: next.id, status: 'replaced', state: 'pending' });
    await jobs.complete('q', id, claimed!.token);
    expect(await held('k')).toBe(next.id);
  });

  it('is one of its queue, and has nothing to do with lanes', async () => {
    const { jobs } = await stage.connect();
    const dedup = settled;
    expect((await jobs.enqueue('q', 'job', 1, { dedup, lane: 'a' })).status).toBe('landed');
    expect((await jobs.enqueue('q', 'job', 1, { dedup, lane: 'b' })).status).toBe('duplicate');
    expect((await jobs.enqueue('p', 'job', 1, { dedup })).status).toBe('landed');
  });

  it('that is held lets who waits for the end of the job wait for that of its owner', async () => {
    const echo = await stage.connect();
    const { jobs } = echo;
    const both = numbers(2).map((n) => jobs.enqueueAndWait('q', 'job', n, { dedup: settled }));
    await until(async () => (await jobs.counts('q')).pending === 1, { what: 'the one job' });
    echo.consume('q', {}, ({ data }) => `it was ${data}`);
    expect(await Promise.all(both)).toEqual(['it was 0', 'it was 0']);
  });

  it.each<[string, unknown]>([
    ['no object', 'k'],
    ['no key', {}],
    ['an empty key', { key: '' }],
    ['a long key', { key: 'x'.repeat(201) }],
    ['a control character', { key: 'a\nb' }],
    ['an unknown mode', { key: 'k', mode: 'once' }],
    ['throttle without a time', { key: 'k', mode: 'throttle' }],
    ['debounce without a time', { key: 'k', mode: 'debounce' }],
    ['a time of 0', { key: 'k', ttlMs: 0 }],
    ['a time in words', { key: 'k', ttlMs: '5' }],
    ['an unknown option', { key: 'k', ttl: 5 }],
  ])('that makes no sense is refused: %s', async (_, dedup) => {
    const { jobs } = await stage.connect();
    const error = await failure(jobs.enqueue('q', 'job', undefined, { dedup: dedup as Dedup }));
    expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });

  it('of a debounce delays the job itself: another delay beside it is refused', async () => {
    const { jobs } = await stage.connect();
    const dedup = { key: 'k', mode: 'debounce', ttlMs: 5 } as const;
    expect((await failure(jobs.enqueue('q', 'job', 1, { dedup, delayMs: 5 }))).message).toMatch(
      /give no delayMs or runAt/,
    );
  });
});
