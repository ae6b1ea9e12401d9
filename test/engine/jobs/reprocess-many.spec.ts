import { describe, expect, it } from '@jest/globals';
import { type JobView, type Matching, readId } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { buried } from './dead-jobs.js';
import { failure, numbers, useStage } from './stage.js';

const everyThird = ({ data }: JobView) => (data as number) % 3 === 0;

describe('reprocessMany', () => {
  const stage = useStage();

  it('looks at each of 2,500 dead jobs once, and puts every third that matches back', async () => {
    const { jobs } = await stage.connect();
    const ids = await buried(jobs, 'q', 2500);
    const seen: string[] = [];
    const filter = (job: JobView) => {
      seen.push(job.id);
      return everyThird(job);
    };
    expect(await jobs.reprocessMany('q', { filter })).toBe(834);
    expect(seen).toEqual(ids);
    expect(await jobs.counts('q')).toMatchObject({ pending: 834, dead: 1666 });
    const pending = (await jobs.list('q', 'pending', { limit: 1000 })).jobs;
    expect(pending.map(({ data }) => data)).toEqual(numbers(834).map((n) => 3 * n));
  });

  it('puts all back when nothing else is said, in calls of 500', async () => {
    const { jobs } = await stage.connect();
    await buried(jobs, 'q', 1200);
    const ear = await stage.overhear();
    expect(await jobs.reprocessMany('q')).toBe(1200);
    expect(await jobs.counts('q')).toMatchObject({ pending: 1200, dead: 0 });
    const said = await ear.said();
    const calls = said.filter(([, , keys, dead]) => keys === '3' && dead === 'emq:{q}:dead');
    expect(calls.map((args) => args.length - 7)).toEqual([500, 500, 200]); // evalsha, sha, 3, keys, fresh
    expect(await jobs.reprocessMany('q')).toBe(0);
  });

  it('takes those of a name, the oldest first, and no more than the limit', async () => {
    const { jobs } = await stage.connect();
    const ids = await buried(jobs, 'q', 30, (n) => (n % 2 ? 'odd' : 'even'));
    expect(await jobs.reprocessMany('q', { name: 'odd', limit: 4 })).toBe(4);
    expect((await jobs.list('q', 'pending')).jobs.map(({ id }) => id)).toEqual([1, 3, 5, 7].map((n) => ids[n]));
    const bothMatch = { name: 'even', filter: everyThird };
    expect(await jobs.reprocessMany('q', bothMatch)).toBe(5);
    expect(await jobs.reprocessMany('q', { name: 'neither' })).toBe(0);
    const mintedBefore = ({ id }: JobView) => readId(id).mintedAt <= readId(ids[29]!).mintedAt;
    expect(await jobs.reprocessMany('q', { filter: mintedBefore })).toBe(21);
  });

  it('shows the filter all that there is to know, and with fresh the attempts so far are forgotten', async () => {
    const { jobs } = await stage.connect();
    const [id] = await buried(jobs, 'q', 1);
    const seen: JobView[] = [];
    const filter = (job: JobView) => seen.push(job) > 0;
    expect(await jobs.reprocessMany('q', { filter, fresh: true })).toBe(1);
    expect(seen[0]).toMatchObject({ id, state: 'dead', name: 'a', data: 0, attempts: 1, lastError: 'boom' });
    expect(await jobs.get('q', id!)).toMatchObject({ state: 'pending', attempts: 1, uncharged: 1 });
  });

  it('ends although what it puts back dies again at once', async () => {
    const echo = await stage.connect();
    await buried(echo.jobs, 'q', 1500);
    let ran = 0;
    echo.consume('q', { concurrency: 100, attempts: 1 }, () => {
      ran++;
      throw new Error('again');
    });
    expect(await echo.jobs.reprocessMany('q', { fresh: true })).toBe(1500);
    await until(async () => (await echo.jobs.counts('q')).dead === 1500, {
      what: 'all to die again',
      progress: () => ran,
    });
    expect(ran).toBe(1500);
  });

  it('leaves those to the next time that die meanwhile', async () => {
    const { jobs } = await stage.connect();
    await buried(jobs, 'q', 1500);
    await jobs.enqueueMany(
      'q',
      numbers(400).map(() => ({ name: 'late' })),
    );
    const running = await jobs.claim('q', { leaseMs: 60_000, count: 400 });
    let died: Promise<unknown> | undefined;
    const filter = ({ name }: JobView) => {
      died ??= Promise.all(running.map(({ id, token }) => jobs.retry('q', id, token, { maxAttempts: 0 })));
      expect(name).toBe('a');
      return true;
    };
    expect(await jobs.reprocessMany('q', { filter })).toBe(1500);
    await died;
    expect(await jobs.counts('q')).toMatchObject({ pending: 1500, dead: 400 });
    expect(await jobs.reprocessMany('q')).toBe(400);
  });

  it('counts no job that somebody else has put back, or removed, meanwhile', async () => {
    const proxy = await stage.proxy();
    const slow = await stage.connect({ connection: proxy.url });
    const { jobs } = await stage.connect();
    const ids = await buried(jobs, 'q', 5);
    await slow.jobs.reprocess('q', jobs.mintId()); // its script is known from here on
    const held = proxy.hold(`${ids[4]}`);
    const reprocessed = slow.jobs.reprocessMany('q');
    const { release } = await held;
    await jobs.reprocess('q', ids[1]!);
    await jobs.remove('q', ids[2]!);
    release();
    expect(await reprocessed).toBe(3);
    expect(await jobs.counts('q')).toMatchObject({ pending: 4, dead: 0 });
  });

  it('counts what was put back although the answer was lost', async () => {
    const proxy = await stage.proxy();
    const { jobs } = await stage.connect({ connection: proxy.url, onError: () => undefined });
    const ids = await buried(jobs, 'q', 5);
    await jobs.reprocess('q', jobs.mintId());
    const lost = proxy.passAndDropReply(ids[4]!);
    const reprocessed = jobs.reprocessMany('q');
    await lost;
    expect(await reprocessed).toBe(5);
  });

  it('brings parents back that died of their children, in this queue and in others', async () => {
    const { jobs, flows } = await stage.connect();
    const child = (queue: string) => ({ queue, name: 'child' });
    const here = await flows.add({ queue: 'q', name: 'up', children: [child('q')] });
    const there = await flows.add({ queue: 'r', name: 'up', children: [child('q')] });
    await until(async () => (await jobs.counts('q')).pending === 2, { what: 'both children' });
    for (const { id, token } of await jobs.claim('q', { leaseMs: 60_000, count: 2 })) {
      await jobs.retry('q', id, token, { maxAttempts: 0 });
    }
    await until(async () => (await jobs.get('r', there.id))?.state === 'dead', { what: 'the parent elsewhere to die' });
    expect(await jobs.reprocessMany('q', { name: 'child' })).toBe(2);
    expect((await jobs.get('q', here.id))?.state).toBe('awaiting_children');
    const alive = async () => (await jobs.get('r', there.id))?.state === 'awaiting_children';
    await until(alive, { what: 'the parent elsewhere to live again' });
  });

  it('shows no ghosts, and passes by what somebody else has made of the morgue', async () => {
    const { jobs } = await stage.connect();
    const ids = await buried(jobs, 'q', 3);
    await stage.control.del(`emq:{q}:job:${ids[1]}`);
    expect(await jobs.reprocessMany('q')).toBe(2);
    await stage.control.zrem('emq:{q}:dead', ids[1]!);
    await stage.control.hincrby('emq:{q}:metrics:enqueued', 'count', -1);
  });

  it.each<[string, unknown, RegExp]>([
    ['an unknown option', { names: 'a' }, /unknown option 'names'/],
    ['a name that is none', { name: 5 }, /^name must be a string/],
    ['a filter that is none', { filter: 'a' }, /^filter must be a function/],
    ['a limit of nothing', { limit: 0 }, /^limit must be a whole number from 1/],
    ['fresh that is neither', { fresh: 1 }, /'fresh' must be true or false/],
  ])('refuses %s', async (_, options, message) => {
    const { jobs } = await stage.connect();
    const error = await failure(jobs.reprocessMany('q', options as Matching));
    expect(error).toMatchObject({ name: 'EchoArgumentError', message: expect.stringMatching(message) });
  });

  it('refuses a filter that answers no boolean: a promise, say, would let every job through', async () => {
    const { jobs } = await stage.connect();
    await buried(jobs, 'q', 3);
    for (const [filter, got] of [
      [async () => false, 'a promise'],
      [async () => Promise.reject(new Error('nobody asks for it')), 'a promise'],
      [() => undefined, 'undefined'],
    ] as const) {
      const error = await failure(jobs.reprocessMany('q', { filter: filter as never }));
      expect(error.message).toBe(`filter must answer true or false, got ${got}`);
    }
    expect(await jobs.counts('q')).toMatchObject({ dead: 3 });
    const thrown = new Error('mine');
    const throws = () => {
      throw thrown;
    };
    expect(await failure(jobs.reprocessMany('q', { filter: throws }))).toBe(thrown);
  });
});
