import { describe, expect, it } from '@jest/globals';
import { type Jobs, readId } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { failure, serverMs, useStage } from './stage.js';

const HOUR = 3_600_000;

describe('priorities with ageing', () => {
  const stage = useStage();
  const names = async (jobs: Jobs) => (await jobs.list('q', 'pending')).jobs.map(({ name }) => name);

  it('put a job behind what comes within so many milliseconds, and before what comes later', async () => {
    const { jobs } = await stage.connect();
    const add = (name: string, priority: number, ageingMs: number) =>
      jobs.enqueue('q', name, undefined, { priority, ageingMs });
    await add('low, which an hour would lift', 1, HOUR);
    const { id: lifted } = await add('low, which a millisecond lifts', 1, 1);
    const minted = readId(lifted).mintedAt.getTime();
    await until(async () => (await serverMs(stage.control)) > minted + 5, { what: 'some milliseconds to pass' });
    const { id } = await add('high', 0, HOUR);
    await add('higher', -1, HOUR);
    expect(await names(jobs)).toEqual([
      ...['higher', 'low, which a millisecond lifts', 'high', 'low, which an hour would lift'],
    ]);
    expect((await jobs.get('q', id))!.priority).toBe(readId(id).mintedAt.getTime());
  });

  it('hold in lanes, bulks and flows, for delayed jobs from when they may run, and survive a retry', async () => {
    const { jobs, flows } = await stage.connect();
    const opts = { priority: 2, ageingMs: 1000 };
    const score = async (id: string) => (await jobs.get('q', id))!.priority - readId(id).mintedAt.getTime();
    const laned = await jobs.enqueue('q', 'a', undefined, { ...opts, lane: 'l' });
    const [bulk] = await jobs.enqueueMany('q', [{ name: 'a', opts }]);
    const flow = await flows.add({ queue: 'q', name: 'a', opts });
    const delayed = await jobs.enqueue('q', 'a', undefined, { ...opts, delayMs: 500 });
    expect([await score(laned.id), await score(bulk!.id), await score(flow.id)]).toEqual([2000, 2000, 2000]);
    expect(await score(delayed.id)).toBe(2500);
    const [claimed] = await jobs.claim('q', { leaseMs: 60_000 });
    await jobs.retry('q', claimed!.id, claimed!.token, { maxAttempts: 5 });
    expect(await score(claimed!.id)).toBe(2000);
  });

  it('let jobs without ageing go first, as documented', async () => {
    const { jobs } = await stage.connect();
    await jobs.enqueue('q', 'aged', undefined, { priority: -5, ageingMs: 60_000 });
    await jobs.enqueue('q', 'plain', undefined, { priority: 1000 });
    expect(await names(jobs)).toEqual(['plain', 'aged']);
  });

  it.each([0, -1, 1.5, Number.NaN, '5', null])('refuse an ageingMs of %p', async (ageingMs) => {
    const { jobs } = await stage.connect();
    const error = await failure(jobs.enqueue('q', 'a', undefined, { ageingMs: ageingMs as number }));
    expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
    expect(error.message).toMatch(/^ageingMs must be a whole number from 1/);
  });

  it('refuse what no score can hold exactly', async () => {
    const { jobs } = await stage.connect();
    const add = (priority: number, ageingMs: number) => jobs.enqueue('q', 'a', undefined, { priority, ageingMs });
    expect((await failure(add(2 ** 40, 2 ** 20))).message).toMatch(/more than a score can hold exactly/);
    expect((await jobs.counts('q')).pending).toBe(0);
  });
});
