import { describe, expect, it } from '@jest/globals';
import type { Lane, LaneSettings } from '../../../lib/core.js';
import { failure, numbers, useStage } from '../jobs/stage.js';

const none = Number.POSITIVE_INFINITY;

describe('a lane', () => {
  const stage = useStage();

  it('is there from its first job, counts what waits and runs, and leaves nothing behind', async () => {
    const { jobs, lanes } = await stage.connect();
    expect(await lanes.get('q', 'a')).toEqual({
      ...{ lane: 'a', waiting: 0, active: 0, paused: false, turnInMs: undefined, settings: {} },
    });
    for (const _ of numbers(3)) await jobs.enqueue('q', 'job', 1, { lane: 'a' });
    expect(await lanes.get('q', 'a')).toMatchObject({ waiting: 3, active: 0, turnInMs: 0 });
    const claimed = await jobs.claim('q', { leaseMs: 60_000, count: 2 });
    expect(await lanes.get('q', 'a')).toMatchObject({ waiting: 1, active: 2 });
    expect((await jobs.get('q', claimed[0]!.id))!.lane).toBe('a');
    claimed.push(...(await jobs.claim('q', { leaseMs: 60_000 })));
    for (const { id, token } of claimed) await jobs.complete('q', id, token);
    expect(await lanes.list('q')).toEqual({ lanes: [], groups: [], total: 0, next: undefined });
    expect(await stage.control.keys('emq:{q}:lanestate:*')).toEqual([]);
  });

  it('keeps the settings that are not given, and gives one back for null', async () => {
    const { lanes } = await stage.connect();
    const settings = async () => (await lanes.get('q', 'a')).settings;
    await lanes.configure('q', 'a', { weight: 2.5, cap: 3, rate: { limit: 10, perMs: 1000, burst: 4 }, maxWaiting: 7 });
    const all = { weight: 2.5, cap: 3, rate: { intervalMs: 100, burst: 4 }, maxWaiting: 7 };
    expect(await settings()).toEqual(all);
    await lanes.configure('q', 'a', { weight: 4 });
    expect(await settings()).toEqual({ ...all, weight: 4 });
    await lanes.configure('q', 'a', { cap: null, rate: null });
    expect(await settings()).toEqual({ weight: 4, maxWaiting: 7 });
    await lanes.configure('q', 'a', { cap: none, rate: false, maxWaiting: none });
    expect(await settings()).toEqual({ weight: 4, cap: none, rate: false, maxWaiting: none });
    await lanes.configure('q', 'a', { weight: null, cap: null, rate: null, maxWaiting: null });
    expect(await settings()).toEqual({});
  });

  it('that is paused gives no job, stays so while jobs come, and goes on when it is resumed', async () => {
    const { jobs, lanes } = await stage.connect();
    await jobs.enqueue('q', 'held', undefined, { lane: 'a' });
    await lanes.pause('q', 'a');
    await lanes.pause('q', 'a');
    await jobs.enqueue('q', 'held too', undefined, { lane: 'a' });
    await jobs.enqueue('q', 'free', undefined, { lane: 'b' });
    const claim = async () => (await jobs.claim('q', { leaseMs: 60_000, count: 10 })).map(({ name }) => name);
    expect(await claim()).toEqual(['free']);
    expect(await lanes.get('q', 'a')).toMatchObject({ paused: true, waiting: 2, turnInMs: undefined });
    await lanes.resume('q', 'a');
    expect(await lanes.get('q', 'a')).toMatchObject({ paused: false, turnInMs: 0 });
    expect(await claim()).toEqual(['held', 'held too']);
  });

  it('of null stands for the jobs without one: they have a weight, and can be paused', async () => {
    const { jobs, lanes } = await stage.connect();
    await lanes.configure('q', null, { weight: 3, cap: undefined, rate: undefined, maxWaiting: undefined });
    await lanes.pause('q', null);
    await jobs.enqueue('q', 'plain');
    await jobs.enqueue('q', 'laned', undefined, { lane: 'a' });
    expect(await lanes.get('q', null)).toEqual({
      ...{ lane: null, waiting: 1, active: undefined, paused: true, turnInMs: undefined, settings: { weight: 3 } },
    });
    expect((await jobs.claim('q', { leaseMs: 60_000, count: 9 })).map(({ name }) => name)).toEqual(['laned']);
    await lanes.resume('q', null);
    expect(await jobs.claim('q', { leaseMs: 60_000, count: 9 })).toHaveLength(1);
  });

  it('of a group is listed with it, the fullest first, page by page', async () => {
    const { jobs, lanes } = await stage.connect();
    const enqueue = (lane: Lane, count: number) =>
      jobs.enqueueMany(
        'q',
        numbers(count).map(() => ({ name: 'job', opts: { lane } })),
      );
    await enqueue('a', 2);
    await enqueue(['g', 'x'], 4);
    await enqueue(['g', 'y'], 3);
    await lanes.configureGroup('q', 'g', { weight: 0.5 });
    const page = await lanes.list('q', { limit: 2 });
    expect(page).toMatchObject({ total: 4, next: 2, groups: [] });
    expect(page.lanes.map(({ lane, waiting }) => [lane, waiting])).toEqual([
      [['g', 'x'], 4],
      [['g', 'y'], 3],
    ]);
    const rest = await lanes.list('q', { offset: 2 });
    expect(rest).toMatchObject({ total: 4, next: undefined, lanes: [{ lane: 'a', waiting: 2 }] });
    const group = { group: 'g', paused: false, lanes: 2, turnInMs: 0, settings: { weight: 0.5 } };
    expect(rest.groups).toEqual([group]);
    expect(await lanes.getGroup('q', 'g')).toEqual(group);
    await lanes.pauseGroup('q', 'g');
    expect((await jobs.claim('q', { leaseMs: 60_000, count: 9 })).length).toBe(2);
    await lanes.resumeGroup('q', 'g');
    expect((await jobs.claim('q', { leaseMs: 60_000, count: 9 })).length).toBe(7);
  });

  it('has its jobs listed by themselves, in their order, and so have the jobs without one', async () => {
    const { jobs } = await stage.connect();
    for (const lane of ['a', null, ['g', 'x'], 'a', null] as const) {
      await jobs.enqueue('q', `${lane}`, undefined, { lane, priority: lane === null ? 0 : -1 });
    }
    await jobs.enqueue('q', 'first', undefined, { lane: 'a', priority: -2 });
    const names = async (lane?: Lane | null) => {
      const { jobs: listed, total } = await jobs.list('q', 'pending', lane === undefined ? {} : { lane });
      return [total, ...listed.map(({ name }) => name)];
    };
    expect(await names('a')).toEqual([3, 'first', 'a', 'a']);
    expect(await names(['g', 'x'])).toEqual([1, 'g,x']);
    expect(await names(null)).toEqual([2, 'null', 'null']);
    expect(await names('none')).toEqual([0]);
    expect((await names())[0]).toBe(6);
    const page = await jobs.list('q', 'pending', { lane: 'a', offset: 1, limit: 1 });
    expect(page).toMatchObject({ total: 3, next: 2, jobs: [{ name: 'a' }] });
    expect((await failure(jobs.list('q', 'dead', { lane: 'a' }))).message).toMatch(/only pending jobs stand in lanes/);
    expect(await failure(jobs.list('q', 'pending', { lane: '' }))).toMatchObject({ code: 'EMQARG' });
  });

  it('that has no setting of its own is judged by the default, those that are known already too', async () => {
    const { jobs, lanes } = await stage.connect();
    for (const lane of ['a', 'a', 'b', 'b', 'own', 'own']) await jobs.enqueue('q', lane, undefined, { lane });
    await lanes.configure('q', 'own', { cap: none });
    const claim = async () => (await jobs.claim('q', { leaseMs: 60_000, count: 9 })).map(({ name }) => name).sort();
    expect(await lanes.getDefault('q')).toEqual({});
    await lanes.configureDefault('q', { cap: 1, maxWaiting: 2 });
    expect(await lanes.getDefault('q')).toEqual({ cap: 1, maxWaiting: 2 });
    expect(await claim()).toEqual(['a', 'b', 'own', 'own']);
    expect(await lanes.get('q', 'a')).toMatchObject({ waiting: 1, active: 1, turnInMs: undefined, settings: {} });
    await jobs.enqueue('q', 'a', undefined, { lane: 'a' });
    expect(await failure(jobs.enqueue('q', 'a', undefined, { lane: 'a' }))).toMatchObject({ lane: 'a' });
    await lanes.configureDefault('q', { cap: null });
    expect(await claim()).toEqual(['a', 'a', 'b']);
  });

  it('that is full refuses a job, by name and retryable, and only that job of a turn or a bulk', async () => {
    const { jobs, lanes } = await stage.connect();
    await lanes.configure('q', ['g', 'x'], { maxWaiting: 1 });
    const lane: Lane = ['g', 'x'];
    const [first, refused, other] = await Promise.allSettled([
      jobs.enqueue('q', 'first', undefined, { lane }),
      jobs.enqueue('q', 'second', undefined, { lane }),
      jobs.enqueue('q', 'other', undefined, { lane: 'b' }),
    ]);
    expect([first.status, other.status]).toEqual(['fulfilled', 'fulfilled']);
    expect((refused as PromiseRejectedResult).reason).toMatchObject({
      ...{ name: 'EchoLaneFullError', code: 'ECHO_LANE_FULL', retryable: true, lane },
    });
    const items = [
      { name: 'b', opts: { lane: 'b' } },
      { name: 'x', opts: { lane } },
    ];
    const error = await failure(jobs.enqueueMany('q', items));
    expect(error).toMatchObject({ name: 'EchoBulkError', cause: { code: 'ECHO_LANE_FULL' }, retryable: true });
    expect(error).toMatchObject({ results: [{ status: 'landed' }, undefined] });
    await jobs.enqueue('q', 'later', undefined, { lane, delayMs: 60_000 }); // only what waits for its turn counts
    expect((await jobs.claim('q', { leaseMs: 60_000, count: 9 })).length).toBe(3);
    expect(await jobs.enqueue('q', 'second', undefined, { lane })).toMatchObject({ status: 'landed' });
  });
});

describe('a queue that is obliterated', () => {
  const stage = useStage();

  it('leaves nothing of its lanes, limits and keys behind, and says how many jobs went', async () => {
    const { jobs, lanes } = await stage.connect();
    await Promise.all(numbers(1500).map((n) => lanes.configure('q', `lane ${n}`, { weight: 2 })));
    await lanes.configureDefault('q', { cap: 5 });
    await lanes.configureGroup('q', 'g', { weight: 3 });
    await lanes.pause('q', null);
    await jobs.limit('q', { concurrency: 50, rate: { limit: 1, perMs: 1 } });
    const lanesOf = [null, 'lane 1', ['g', 'x'], ['g', 'y']] as const;
    for (const lane of lanesOf) {
      for (const mode of ['until-settled', 'throttle'] as const) {
        const dedup = { key: `${mode} ${lane}`, mode, ttlMs: 3_600_000 };
        await jobs.enqueue('q', 'job', undefined, { lane, dedup });
      }
    }
    const [claimed] = await jobs.claim('q', { leaseMs: 60_000 });
    await jobs.complete('q', claimed!.id, claimed!.token);
    expect(await jobs.obliterate('q')).toBe(7);
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });
});

describe('the order of a queue with lanes', () => {
  const stage = useStage();

  it('is total: whose turn it is, then the priority, then the order of the ids (C136)', async () => {
    const { jobs } = await stage.connect();
    const add = (name: string, lane: Lane | null, priority: number) => jobs.enqueue('q', name, 1, { lane, priority });
    for (const lane of ['a', 'b', null] as const) {
      await add(`${lane} late`, lane, 0);
      await add(`${lane} later`, lane, 0);
      await add(`${lane} first`, lane, lane === 'b' ? -5 : -1);
    }
    const names = (await jobs.claim('q', { leaseMs: 60_000, count: 9 })).map(({ name }) => name);
    const round = (which: string) => ['null', 'a', 'b'].map((lane) => `${lane} ${which}`);
    expect(new Set(names.slice(0, 3))).toEqual(new Set(round('first')));
    expect(new Set(names.slice(3, 6))).toEqual(new Set(round('late')));
    expect(new Set(names.slice(6))).toEqual(new Set(round('later')));
  });
});

describe('nonsense about lanes is refused before anything is written:', () => {
  const stage = useStage();

  it.each<[string, LaneSettings, RegExp]>([
    ['no setting', {}, /at least one setting/],
    ['an unknown one', { max: 1 } as LaneSettings, /unknown option 'max'/],
    ['weight 0', { weight: 0 }, /weight must be a number from 0.1 to 100, got 0/],
    ['weight NaN', { weight: Number.NaN }, /weight/],
    ['weight 101', { weight: 101 }, /weight/],
    ['a weight in words', { weight: '1' as unknown as number }, /weight/],
    ['cap 0', { cap: 0 }, /cap must be a whole number from 1, got 0/],
    ['cap -1', { cap: -1 }, /cap/],
    ['cap 1.5', { cap: 1.5 }, /cap/],
    ['maxWaiting 0', { maxWaiting: 0 }, /maxWaiting/],
    ['a rate without a time (C114)', { rate: { limit: 1 } as never }, /rate needs perMs/],
    ['rate 0', { rate: { limit: 0, perMs: 1000 } }, /rate\.limit/],
    ['rate NaN', { rate: { limit: Number.NaN, perMs: 1000 } }, /rate\.limit/],
    ['a negative time', { rate: { limit: 1, perMs: -1 } }, /rate\.perMs/],
    ['burst 0', { rate: { limit: 1, perMs: 1, burst: 0 } }, /rate\.burst/],
    ['more than can be counted', { rate: { limit: 10_000, perMs: 1 } }, /more than the server can count/],
    ['rate true', { rate: true as never }, /rate must be an object/],
  ])('%s', async (_, settings, message) => {
    const { lanes } = await stage.connect();
    const error = await failure(lanes.configure('q', 'a', settings));
    expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
    expect(error.message).toMatch(message);
    expect((await failure(lanes.configureDefault('q', settings))).message).toMatch(message);
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['an empty name', ''],
    ['a long one', 'x'.repeat(201)],
    ['a control character', 'a\u001fb'],
    ['half a pair', '\ud800'],
    ['three names', ['a', 'b', 'c']],
    ['an empty group', ['', 'a']],
    ['a number', 7],
  ])('a lane that is %s', async (_, lane) => {
    const { jobs, lanes } = await stage.connect();
    const calls = [
      lanes.configure('q', lane as Lane, { weight: 1 }),
      lanes.pause('q', lane as Lane),
      lanes.get('q', lane as Lane),
      ...(lane === undefined ? [] : [jobs.enqueue('q', 'a', undefined, { lane: lane as Lane })]),
    ];
    for (const call of calls) expect(await failure(call)).toMatchObject({ code: 'EMQARG', name: 'EchoArgumentError' });
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });

  it('what a group, or the jobs without a lane, cannot have; pages out of bounds', async () => {
    const { lanes } = await stage.connect();
    const refused = async (call: Promise<unknown>) => (await failure(call)).message;
    expect(await refused(lanes.configure('q', null, { cap: 1 } as never))).toMatch(/no cap: .*jobs\.limit/);
    expect(await refused(lanes.configureGroup('q', 'g', { rate: false } as never))).toMatch(/no rate: .*single lanes/);
    expect(await refused(lanes.configureGroup('q', ['g'] as never, { weight: 1 }))).toMatch(/group must be a string/);
    expect(await refused(lanes.list('q', { limit: 1001 }))).toMatch(/limit/);
    expect(await refused(lanes.list('q', { offset: -1 }))).toMatch(/offset/);
    expect(await stage.control.keys('emq:{q}:*')).toEqual([]);
  });
});
