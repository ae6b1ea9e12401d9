import { describe, expect, it } from '@jest/globals';
import { EchoBulkError, EchoError } from '../../../lib/core.js';
import { describeWithProcess } from '../../support/availability.js';
import { failure, numbers, useStage } from './stage.js';

describe('enqueueMany', () => {
  const stage = useStage();

  it('checks every item before the first is sent, and names the bad one (C140)', async () => {
    const { jobs } = await stage.connect();
    const items = numbers(5).map((n) => ({ name: 'a', data: n === 3 ? 1n : n }));
    const error = await failure(jobs.enqueueMany('q', items));
    expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
    expect(error.message).toMatch(/^item 3: data cannot be serialised/);
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('lands 20,000 jobs in order, and answers for each', async () => {
    const { jobs } = await stage.connect();
    const results = await jobs.enqueueMany(
      'q',
      numbers(20_000).map((n) => ({ name: 'a', data: n })),
    );
    expect(results.every(({ status }) => status === 'landed')).toBe(true);
    const ids = results.map(({ id }) => id);
    expect(await stage.control.zrange('emq:{q}:pending', '0', '-1')).toEqual(ids);
    expect((await jobs.get('q', ids[12_345]!))!.data).toBe(12_345);
    expect(await jobs.counts('q')).toMatchObject({ pending: 20_000, metrics: { enqueued: 20_000 } });
  });

  it('of nothing answers nothing; of something that is no array is refused', async () => {
    const { jobs } = await stage.connect();
    expect(await jobs.enqueueMany('q', [])).toEqual([]);
    for (const entries of [undefined, null, {}, 'a', { length: 1 }]) {
      const error = await failure(jobs.enqueueMany('q', entries as never));
      expect(error).toMatchObject({ code: 'EMQARG' });
    }
  });

  it('says which items are duplicates, also of one another', async () => {
    const { jobs } = await stage.connect();
    const [there, twice] = [jobs.mintId(), jobs.mintId()];
    await jobs.enqueue('q', 'first', undefined, { id: there });
    const results = await jobs.enqueueMany('q', [
      { name: 'a', opts: { id: twice } },
      { name: 'b', opts: { id: there } },
      { name: 'c', opts: { id: twice } },
      { name: 'd' },
    ]);
    expect(results.map(({ status }) => status)).toEqual(['landed', 'duplicate', 'duplicate', 'landed']);
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(['first', 'a', 'd']);
  });

  it('takes options per item', async () => {
    const { jobs } = await stage.connect();
    await jobs.enqueueMany('q', [
      { name: 'later', opts: { delayMs: 60_000 } },
      { name: 'low', opts: { priority: 1 } },
      { name: 'plain' },
    ]);
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(['plain', 'low']);
    expect((await jobs.list('q', 'scheduled')).jobs.map((job) => job.name)).toEqual(['later']);
  });

  it('sends large jobs in several calls, none lost', async () => {
    const { jobs } = await stage.connect();
    const data = 'x'.repeat(1_000_000);
    const results = await jobs.enqueueMany(
      'q',
      numbers(20).map(() => ({ name: 'a', data })),
    );
    expect(results).toHaveLength(20);
    expect((await jobs.counts('q')).pending).toBe(20);
  });
});

describeWithProcess('enqueueMany when memory runs out midway (C140)', () => {
  const stage = useStage({ config: { 'maxmemory-policy': 'noeviction' } });

  it('says which items landed, and lands the others under their ids later', async () => {
    const { jobs } = await stage.connect();
    const items = numbers(5000).map((n) => ({ name: String(n), data: 'x'.repeat(2000) }));
    const used = Number(/used_memory:(\d+)/.exec(await stage.control.info('memory'))![1]);
    await stage.control.config('SET', 'maxmemory', String(used + 5_000_000));
    const error = await failure<EchoBulkError>(jobs.enqueueMany('q', items));
    expect(error).toBeInstanceOf(EchoBulkError);
    expect(error).toBeInstanceOf(EchoError);
    expect(error).toMatchObject({ name: 'EchoBulkError', code: 'OOM', retryable: true });
    expect(error.ids).toHaveLength(5000);
    const landed = error.results.filter((result) => result !== undefined);
    expect(landed.length).toBeGreaterThan(0);
    expect(landed.length % 500).toBe(0);
    expect((await jobs.counts('q')).pending).toBe(landed.length);
    for (const [i, result] of error.results.entries()) {
      if (result) expect(result).toEqual({ id: error.ids[i], status: 'landed' });
    }

    await stage.control.config('SET', 'maxmemory', '0');
    const again = await jobs.enqueueMany(
      'q',
      items.map((item, i) => ({ ...item, opts: { id: error.ids[i]! } })),
    );
    expect(again.map(({ status }) => status)).toEqual(error.results.map((result) => (result ? 'duplicate' : 'landed')));
    expect(await stage.control.zrange('emq:{q}:pending', '0', '-1')).toEqual(error.ids);
  });

  it('rejects as a whole when nothing landed, and what is there can still be worked off', async () => {
    const { jobs } = await stage.connect();
    const landed = await jobs.enqueueMany(
      'q',
      numbers(10).map((n) => ({ name: 'a', data: n })),
    );
    await stage.control.config('SET', 'maxmemory', '1');
    try {
      const error = await failure(
        jobs.enqueueMany(
          'q',
          numbers(1000).map(() => ({ name: 'b' })),
        ),
      );
      expect(error).toMatchObject({ code: 'OOM', retryable: true });
      expect(await failure(jobs.enqueue('q', 'c'))).toMatchObject({ name: 'EchoStoreError', code: 'OOM' });
      const claimed = await jobs.claim('q', { leaseMs: 60_000, count: 10 });
      expect(claimed.map(({ id }) => id)).toEqual(landed.map(({ id }) => id));
      const outcomes = await Promise.all(
        claimed.map(({ id, token, data }) =>
          (data as number) % 2 ? jobs.complete('q', id, token) : jobs.release('q', id, token),
        ),
      );
      expect(new Set<string>(outcomes)).toEqual(new Set(['ok']));
    } finally {
      await stage.control.config('SET', 'maxmemory', '0');
    }
    expect(await jobs.counts('q')).toMatchObject({ pending: 5, active: 0, metrics: { completed: 5 } });
  });
});
