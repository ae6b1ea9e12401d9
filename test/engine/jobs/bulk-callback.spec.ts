import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import {
  type BulkCallback,
  type ChildrenReport,
  defineQueue,
  type EchoMq,
  EchoStateError,
  type EnqueueEntry,
  type Job,
  type Queue,
} from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Diary, stateOf, useFlowStage } from '../flows/stage.js';
import { failure, latch, numbers } from './stage.js';

/** The third argument of enqueueMany. */
function under<Of extends string | Queue>(callback: BulkCallback<Of>): { then: BulkCallback<Of> } {
  // biome-ignore lint/suspicious/noThenProperty: it is what the option is called, and no function
  return { then: callback };
}

describe('the callback of a bulk', () => {
  const stage = useFlowStage();

  /** Consumes a queue, with a handler for jobs called `slow`; what callbacks called `summary` were told of their items. */
  const serve = (echo: EchoMq, queue = 'q', slow: () => unknown = () => undefined) => {
    const reports: ChildrenReport[] = [];
    const diary = new Diary();
    const handlers = {
      slow,
      bad: () => Promise.reject(new Error('bad luck')),
      summary: async (job: Job) => void reports.push(await job.children()),
    };
    diary.serve(echo, [queue], handlers, { attempts: 1, concurrency: 10 });
    return { reports, diary };
  };

  it('runs once, when all have settled, completed or dead, and is told what became of them', async () => {
    const echo = await stage.connect();
    const gate = latch<string>();
    const { reports, diary } = serve(echo, 'q', () => gate.opened);
    const { jobs, callback } = await echo.jobs.enqueueMany(
      'q',
      [{ name: 'good' }, { name: 'bad' }, { name: 'slow' }],
      under({ name: 'summary', data: { of: 3 } }),
    );
    expect(jobs).toEqual(numbers(3).map(() => ({ id: expect.stringMatching(/^JOB/), status: 'landed' })));
    expect(callback.status).toBe('landed');
    await stateOf(echo, 'q', jobs[1]!.id, 'dead');
    expect(await echo.jobs.get('q', callback.id)).toMatchObject({ state: 'awaiting_children', data: { of: 3 } });
    gate.open('at last');
    await until(() => reports.length > 0, { what: 'the callback' });
    expect(reports).toEqual([
      {
        outstanding: 0,
        values: { [jobs[0]!.id]: 'good', [jobs[2]!.id]: 'at last' },
        ignored: { [jobs[1]!.id]: expect.stringMatching(/^Error: bad luck/) },
        failed: {},
      },
    ]);
    expect(diary.names.at(-1)).toBe('summary');
    expect(diary.count('summary')).toBe(1);
  });

  it('runs at once when there are no items', async () => {
    const echo = await stage.connect();
    const { reports } = serve(echo);
    const { jobs, callback } = await echo.jobs.enqueueMany('q', [], under({ name: 'summary' }));
    expect(jobs).toEqual([]);
    expect(callback.status).toBe('landed');
    await until(() => reports.length === 1, { what: 'the callback' });
    expect(reports[0]).toEqual({ outstanding: 0, values: {}, ignored: {}, failed: {} });
  });

  it('runs once for 2,500 of them', async () => {
    const echo = await stage.connect();
    const { reports, diary } = serve(echo);
    const items = numbers(2500).map((n) => ({ name: n % 100 === 0 ? 'bad' : 'good' }));
    const { jobs } = await echo.jobs.enqueueMany('q', items, under({ name: 'summary' }));
    expect(jobs).toHaveLength(2500);
    await until(() => reports.length > 0, { what: 'the callback', timeoutMs: 20_000 });
    expect(Object.keys(reports[0]!.values)).toHaveLength(2475);
    expect(Object.keys(reports[0]!.ignored)).toEqual(jobs.filter((_, i) => i % 100 === 0).map(({ id }) => id));
    expect(diary.names).toHaveLength(2501);
    expect(diary.count('summary')).toBe(1);
  });

  it('may stand in another queue', async () => {
    const echo = await stage.connect();
    const { reports } = serve(echo, 'reports');
    serve(echo);
    const { jobs, callback } = await echo.jobs.enqueueMany(
      'q',
      [{ name: 'good' }, { name: 'bad' }],
      under({ queue: 'reports', name: 'summary' }),
    );
    await until(() => reports.length === 1, { what: 'the callback' });
    expect(Object.keys({ ...reports[0]!.values, ...reports[0]!.ignored })).toEqual(jobs.map(({ id }) => id));
    expect(await echo.jobs.get('q', callback.id)).toBeUndefined();
  });

  it('counts items that are cancelled or removed as settled', async () => {
    const echo = await stage.connect();
    const { jobs, callback } = await echo.jobs.enqueueMany(
      'q',
      [{ name: 'a' }, { name: 'b', opts: { delayMs: 3_600_000 } }],
      under({ name: 'summary' }),
    );
    expect(await echo.jobs.cancel('q', jobs[0]!.id)).toBe('removed');
    expect(await echo.flows.dependencies('q', callback.id)).toBe(1);
    expect(await echo.jobs.remove('q', jobs[1]!.id)).toBe('ok');
    expect(await echo.jobs.get('q', callback.id)).toMatchObject({ state: 'pending' });
  });

  it('leaves the options of items as they are', async () => {
    const { jobs: queue } = await stage.connect();
    const id = queue.mintId();
    const { jobs } = await queue.enqueueMany(
      'q',
      [
        { name: 'later', opts: { delayMs: 60_000 } },
        { name: 'low', opts: { priority: 1 } },
        { name: 'known', opts: { id, attempts: 7, keepMs: 5 } },
      ],
      under({ name: 'summary', opts: { attempts: 2 } }),
    );
    expect(jobs[2]).toEqual({ id, status: 'landed' });
    expect((await queue.list('q', 'pending')).jobs.map(({ name }) => name)).toEqual(['known', 'low']);
    expect((await queue.list('q', 'scheduled')).jobs.map(({ name }) => name)).toEqual(['later']);
    expect((await queue.get('q', id))!.opts).toEqual({ attempts: 7, keepMs: 5 });
  });

  it('under an id of its own can be sent again: it and the items land once', async () => {
    const { jobs: queue } = await stage.connect();
    const [id, item] = [queue.mintId(), queue.mintId()];
    const send = () =>
      queue.enqueueMany('q', [{ name: 'a', opts: { id: item } }], under({ name: 'summary', opts: { id } }));
    expect(await send()).toEqual({ jobs: [{ id: item, status: 'landed' }], callback: { id, status: 'landed' } });
    expect(await send()).toEqual({ jobs: [{ id: item, status: 'duplicate' }], callback: { id, status: 'duplicate' } });
    expect(await queue.counts('q')).toMatchObject({ pending: 1, awaitingChildren: 1, metrics: { enqueued: 2 } });
  });

  it('does not land, and nor do the items, when the id of one of them is taken', async () => {
    const { jobs: queue } = await stage.connect();
    const { id } = await queue.enqueue('q', 'there');
    const error = await failure(
      queue.enqueueMany('q', [{ name: 'a' }, { name: 'b', opts: { id } }], under({ name: 'summary' })),
    );
    expect(error).toBeInstanceOf(EchoStateError);
    expect(error.message).toContain(id);
    expect(await queue.counts('q')).toMatchObject({ pending: 1, awaitingChildren: 0, metrics: { enqueued: 1 } });
  });

  it('is checked with every item before anything is sent', async () => {
    const { jobs: queue } = await stage.connect();
    const id = queue.mintId();
    const refused = async (items: EnqueueEntry[], then: unknown) => {
      const error = await failure(queue.enqueueMany('q', items, under(then as BulkCallback)));
      expect(error).toMatchObject({ code: 'EMQARG' });
      return error.message;
    };
    const good = { name: 'summary' };
    expect(await refused([{ name: 'a' }, { name: '' }], good)).toMatch(/^item 1: a job's name must be a string/);
    expect(await refused([{ name: 'a' }], { name: '' })).toMatch(/^then: a job's name must be a string/);
    expect(await refused([{ name: 'a' }], 5)).toBe('then: it must be an object, got 5');
    expect(await refused([{ name: 'a' }], { name: 'x', optss: {} })).toMatch(/^then: it: unknown option 'optss'/);
    expect(await refused([{ name: 'a' }], { name: 'x', queue: '' })).toMatch(/^then: /);
    for (const nowhere of [null, 5]) {
      expect(await refused([], { name: 'x', queue: nowhere })).toMatch(/^then: queue name must be a string/);
    }
    expect(await refused([{ name: 'a' }], { name: 'x', data: 1n })).toMatch(/^then: data cannot be serialised/);
    for (const items of [[], [{ name: 'a' }]]) {
      expect(await refused(items, { name: 'x', opts: { delayMs: 5 } })).toBe(
        'then: it runs when the jobs have settled, not after a delay',
      );
    }
    const twice = [
      { name: 'a', opts: { id } },
      { name: 'b', opts: { id } },
    ];
    expect(await refused(twice, good)).toBe(`item 1: the id ${id} stands twice in the bulk`);
    expect(await refused(twice.slice(1), { name: 'x', opts: { id } })).toBe(
      `item 0: the id ${id} stands twice in the bulk`,
    );
    const dedup = { name: 'a', opts: { dedup: { key: 'k' } } };
    expect(await refused([{ name: 'a' }, dedup], good)).toMatch(/^item 1: dedup is not for/);
    expect(await refused([], dedup)).toMatch(/^then: dedup is not for/);
    const misspelt = await failure(queue.enqueueMany('q', [], { than: good } as never));
    expect(misspelt.message).toMatch(/^enqueueMany options: unknown option 'than'/);
    expect(await stage.control.keys('emq:{*')).toEqual([]);
  });

  it('has its data validated by the queue that it goes to', async () => {
    const Rows = defineQueue('rows', { row: z.object({ n: z.number() }) });
    const Reports = defineQueue('reports', { summary: z.object({ to: z.string() }).refine(async () => true) });
    const { jobs: queue } = await stage.connect();
    const items = [{ name: 'row', data: { n: 1 } } as const];
    const to = { queue: Reports, name: 'summary', data: { to: 5 as unknown as string } } as const;
    const error = await failure(queue.enqueueMany(Rows, items, under<typeof Reports>(to)));
    expect(error).toMatchObject({ name: 'EchoDataError', issues: [{ path: ['to'] }] });
    expect(error.message).toMatch(/^then: the data of 'summary' for queue 'reports' does not fit/);
    expect(await stage.control.keys('emq:{*')).toEqual([]);
    const { callback } = await queue.enqueueMany(
      Rows,
      items,
      under<typeof Reports>({ queue: Reports, name: 'summary', data: { to: 'Ada' } }),
    );
    expect(await queue.get(Reports, callback.id)).toMatchObject({ state: 'awaiting_children', data: { to: 'Ada' } });
  });
});
