import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { type BulkCallback, defineQueue, type FlowOptions, type Lane, type LaneBy } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { failure, useStage } from '../jobs/stage.js';

interface Mails {
  welcome: { tenant: string };
  digest: { group: string; tenant: string };
  internal: undefined;
}

const Mail = defineQueue<Mails>('mail', {
  lane: (job) => {
    if (job.name === 'digest') return [job.data.group, job.data.tenant];
    return job.name === 'welcome' ? job.data.tenant : undefined;
  },
});

function under(callback: BulkCallback): { then: BulkCallback } {
  // biome-ignore lint/suspicious/noThenProperty: the option has this name
  return { then: callback };
}

const byTenant: LaneBy = ({ data }) => data?.tenant;

describe('the lane of a job that is given none', () => {
  const stage = useStage();

  it('is what its definition says: a name, a group and a name, or none', async () => {
    const { jobs } = await stage.connect();
    const lane = async (id: string) => (await jobs.get(Mail, id))!.lane;
    const one = await jobs.enqueue(Mail, 'welcome', { tenant: 'a' });
    const two = await jobs.enqueue(Mail, 'digest', { group: 'g', tenant: 'b' }, { delayMs: 60_000 });
    const three = await jobs.enqueue(Mail, 'internal');
    expect([await lane(one.id), await lane(two.id), await lane(three.id)]).toEqual(['a', ['g', 'b'], undefined]);
    const bulk = await jobs.enqueueMany(Mail, [{ name: 'welcome', data: { tenant: 'c' } }, { name: 'internal' }]);
    expect([await lane(bulk[0]!.id), await lane(bulk[1]!.id)]).toEqual(['c', undefined]);
    // The queue's bare name knows nothing of a definition.
    const bare = await jobs.enqueue('mail', 'welcome', { tenant: 'a' });
    expect(await lane(bare.id)).toBeUndefined();
  });

  it('is not asked for where one is given, or null, which is none', async () => {
    const { jobs } = await stage.connect();
    const data = { tenant: 'a' };
    const given = await jobs.enqueue(Mail, 'welcome', data, { lane: 'other' });
    const none = await jobs.enqueue(Mail, 'welcome', data, { lane: null });
    expect((await jobs.get(Mail, given.id))!.lane).toBe('other');
    expect((await jobs.get(Mail, none.id))!.lane).toBeUndefined();
  });

  it('is what a process has assigned to the queue, for every way a job lands through it', async () => {
    const echo = await stage.connect();
    const { jobs, flows, schedules, lanes } = echo;
    expect(lanes.assign('q', byTenant).assign('q', byTenant)).toBe(lanes);
    const data = { tenant: 't' };
    const lane = async (queue: string, id: string) => (await jobs.get(queue, id))!.lane;
    expect(await lane('q', (await jobs.enqueue('q', 'a', data)).id)).toBe('t');
    const { jobs: items, callback } = await jobs.enqueueMany(
      'q',
      [{ name: 'a', data }],
      under({ name: 'then', data: { tenant: 'u' } }),
    );
    expect(await lane('q', items[0]!.id)).toBe('t');
    expect(await lane('q', callback.id)).toBe('u');
    const children = [
      { queue: 'q', name: 'near', data },
      { queue: 'other', name: 'far', data, opts: { lane: 'given' } },
    ];
    const flow = await flows.add({ queue: 'q', name: 'parent', data: { tenant: 'p' }, children });
    expect(await lane('q', flow.id)).toBe('p');
    expect(await lane('q', flow.children[0]!.id)).toBe('t');
    await until(async () => (await jobs.get('other', flow.children[1]!.id)) !== undefined, { what: 'the far child' });
    expect(await lane('other', flow.children[1]!.id)).toBe('given');
    await jobs.schedule('q', 'k', { everyMs: 1_000_000_000 }, 'tick', data);
    expect(await schedules.get('q', 'k')).toMatchObject({ lane: 't' });
    const { id } = await schedules.runNow('q', 'k');
    expect(await lane('q', id!)).toBe('t');
    const waited = jobs.enqueueAndWait('q', 'a', { tenant: 'w' }, { timeoutMs: 60_000 });
    await until(async () => (await jobs.list('q', 'pending')).jobs.some(({ lane }) => lane === 'w'), {
      what: 'its job',
    });
    echo.consume('q', { concurrency: 10 }, () => 'done');
    expect(await waited).toBe('done');
  });

  it('is chosen by one function: another one for the same queue is refused', async () => {
    const { jobs, lanes } = await stage.connect();
    lanes.assign('q', byTenant);
    expect(() => lanes.assign('q', () => 'x')).toThrow(
      expect.objectContaining({
        code: 'ECHO_REGISTRATION',
        message: expect.stringMatching(/queue 'q': two functions/),
      }),
    );
    expect(() => lanes.assign(Mail, byTenant)).toThrow(/queue 'mail': two functions/);
    expect(lanes.assign(Mail, Mail.lane!)).toBe(lanes);
    expect(() => lanes.assign('p', 'x' as never)).toThrow(/a function, got "x"/);
    expect(() => defineQueue('p', { lane: 'x' } as never)).toThrow(/'lane' has no schema but "x"/);
    expect(() => defineQueue('p', { a: z.string() }, { lane: 5 } as never)).toThrow(/lane must be a function/);
    expect(() => defineQueue('p', { a: z.string() }, { lanes: byTenant } as never)).toThrow(/unknown option 'lanes'/);
    expect((await jobs.counts('q')).pending).toBe(0);
  });

  it.each<[string, LaneBy, RegExp]>([
    ['throws', ({ data }) => data.tenant.name, /^the function that chooses lanes of queue 'q' threw for a job 'a'/],
    ['answers a number', () => 7 as never, /answered 7 for a job 'a': lane must be a name, or \[group, lane\]/],
    ['answers an empty name', () => '', /answered "" for a job 'a': lane "" is empty/],
    ['is asynchronous', (async () => 'x') as never, /answered a promise for a job 'a'/],
    ['rejects', (() => Promise.reject(new Error('nobody asks for it'))) as never, /answered a promise for a job 'a'/],
  ])('is refused before anything is sent, when the function %s', async (_, by, message) => {
    const { jobs, flows, lanes } = await stage.connect();
    lanes.assign('q', by);
    const calls: [string, Promise<unknown>][] = [
      ['', jobs.enqueue('q', 'a')],
      ['item 1: ', jobs.enqueueMany('q', [{ name: 'b', opts: { lane: 'x' } }, { name: 'a' }])],
      ['flow: ', flows.add({ queue: 'q', name: 'a' })],
      ['', jobs.schedule('q', 'k', { everyMs: 1000 }, 'a')],
      ['', jobs.enqueueAndWait('q', 'a', undefined)],
    ];
    for (const [place, call] of calls) {
      const error = await failure(call);
      expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
      expect(error.message.startsWith(place)).toBe(true);
      expect(error.message.slice(place.length)).toMatch(message);
    }
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });

  it('is chosen once the schema has found that the data fits', async () => {
    const Orders = defineQueue(
      'orders',
      { paid: z.object({ tenant: z.string() }), sent: z.object({ tenant: z.string().trim() }) },
      { lane: ({ data }) => data.tenant.toUpperCase() },
    );
    const { jobs } = await stage.connect();
    const error = await failure(jobs.enqueue(Orders, 'paid', {} as never));
    expect(error).toMatchObject({ name: 'EchoDataError' });
    const { id } = await jobs.enqueue(Orders, 'sent', { tenant: ' a ' });
    expect((await jobs.get(Orders, id))!.lane).toBe(' A ');
  });
});

describe('a lane of a schedule', () => {
  const stage = useStage();

  it('is that of its jobs, changes as its other options do, and is refused when it makes no sense', async () => {
    const { jobs, schedules } = await stage.connect();
    const put = (lane: Lane | null | undefined) =>
      jobs.schedule('q', 'k', { everyMs: 1_000_000_000 }, 'tick', undefined, lane === undefined ? {} : { lane });
    expect((await put(['g', 'x'])).what).toBe('new');
    expect((await put(['g', 'x'])).what).toBe('unchanged');
    expect(await schedules.get('q', 'k')).toMatchObject({ lane: ['g', 'x'] });
    const { id } = await schedules.runNow('q', 'k');
    expect((await jobs.get('q', id!))!.lane).toEqual(['g', 'x']);
    expect((await put('y')).what).toBe('changed');
    expect((await put(undefined)).what).toBe('changed');
    expect((await put(null)).what).toBe('unchanged');
    const plain = await schedules.runNow('q', 'k');
    expect((await jobs.get('q', plain.id!))!.lane).toBeUndefined();
    expect(await failure(put(''))).toMatchObject({ code: 'EMQARG' });
  });
});

describe('a job of a flow', () => {
  const stage = useStage();

  it('has no deduplication key, nor has one of a bulk with a callback: another job would be waited for', async () => {
    const { jobs, flows } = await stage.connect();
    const dedup = { key: 'k' };
    const message = async (call: Promise<unknown>) => (await failure(call)).message;
    const child = { queue: 'q', name: 'child', opts: { dedup } as FlowOptions };
    expect(await message(flows.add({ queue: 'q', name: 'root', children: [child] }))).toMatch(
      /^flow\.children\[0\]: dedup is not for jobs of a flow/,
    );
    const bulk = under({ name: 'then' });
    expect(await message(jobs.enqueueMany('q', [{ name: 'a' }, { name: 'b', opts: { dedup } }], bulk))).toMatch(
      /^item 1: dedup is not for a job of a bulk with a callback/,
    );
    expect(await message(jobs.enqueueMany('q', [], under({ name: 'then', opts: { dedup } })))).toMatch(/^then: dedup/);
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });
});
