import { describe, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { failure, numbers, useStage } from './stage.js';

const LARGEST = Number.MAX_SAFE_INTEGER;

describe('priorities', () => {
  const stage = useStage();

  it('are one total order: lower first, none given is 0, equal ones in mint order (C136)', async () => {
    const echo = await stage.connect();
    const given = [2, undefined, 1, -1, 0, undefined, 2, -LARGEST, LARGEST, 1];
    await echo.jobs.enqueueMany(
      'q',
      given.map((priority, n) => ({ name: `${priority} ${n}`, opts: { priority } })),
    );
    const expected = [
      `${-LARGEST} 7`,
      '-1 3',
      'undefined 1',
      '0 4',
      'undefined 5',
      '1 2',
      '1 9',
      '2 0',
      '2 6',
      `${LARGEST} 8`,
    ];
    expect((await echo.jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(expected);
    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.name));
    await until(() => ran.length === given.length, { what: 'all' });
    expect(ran).toEqual(expected);
  });

  it('decide the next claim, also for a job that comes behind a backlog', async () => {
    const { jobs } = await stage.connect();
    const next = async () => (await jobs.claim('q', { leaseMs: 60_000 }))[0]!.name;
    await jobs.enqueueMany(
      'q',
      numbers(3).map((n) => ({ name: `backlog ${n}`, opts: { priority: 2 } })),
    );
    expect(await next()).toBe('backlog 0');
    await jobs.enqueue('q', 'unset');
    await jobs.enqueue('q', 'one', undefined, { priority: 1 });
    expect([await next(), await next(), await next()]).toEqual(['unset', 'one', 'backlog 1']);
  });

  it('never lose a bit, nor the order of minting (C138)', async () => {
    const { jobs } = await stage.connect();
    const near = [LARGEST, LARGEST - 1, LARGEST - 2, 2 ** 31, 2 ** 31 + 1, -(2 ** 31), -LARGEST, -LARGEST + 1];
    const twice = [...near, ...near];
    const landed = await jobs.enqueueMany(
      'q',
      twice.map((priority) => ({ name: 'a', opts: { priority } })),
    );
    const listed = (await jobs.list('q', 'pending')).jobs.map((job) => [job.priority, job.id]);
    const expected = twice.map((priority, i): [number, string] => [priority, landed[i]!.id]);
    expected.sort(([p, a], [q, b]) => p - q || (a < b ? -1 : 1));
    expect(listed).toEqual(expected);
  });

  it.each([Number.NaN, 1.5, 2 ** 53, -(2 ** 53), Number.POSITIVE_INFINITY, '1', null, 1n])(
    'that are no whole number of 53 bits are refused: %p',
    async (priority) => {
      const { jobs } = await stage.connect();
      const opts = { priority: priority as number };
      const error = await failure(jobs.enqueue('q', 'a', undefined, opts));
      expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG', retryable: false });
      expect(error.message).toMatch(/^priority must be a whole number/);
      expect(await jobs.counts('q')).toMatchObject({ pending: 0, metrics: { enqueued: 0 } });
    },
  );

  it('stay with a job that is released, retried, reaped, reprocessed or rescheduled', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'a', undefined, { priority: 7, maxStalls: 5 });
    const stands = async () => {
      expect(await stage.control.zscore('emq:{q}:pending', id)).toBe('7');
    };
    const claim = async (leaseMs = 60_000) => (await jobs.claim('q', { leaseMs }))[0]!.token;
    await jobs.release('q', id, await claim());
    await stands();
    await jobs.retry('q', id, await claim(), { maxAttempts: 9 });
    await stands();
    await claim(1);
    await until(async () => (await jobs.reap('q')).requeued === 1, { what: 'the lease to lapse' });
    await stands();
    await jobs.release('q', id, await claim(), { delayMs: 60_000 });
    expect(await jobs.reschedule('q', id, { delayMs: 0 })).toBe('ok');
    await stands();
    expect(await jobs.retry('q', id, await claim(), { maxAttempts: 0 })).toBe('dead');
    expect(await jobs.reprocess('q', id)).toBe('ok');
    await stands();
  });
});
