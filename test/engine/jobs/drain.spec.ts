import { describe, expect, it } from '@jest/globals';
import type { EchoMq, Jobs, JobView, Matching } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { buried } from './dead-jobs.js';
import { failure, numbers, useStage } from './stage.js';

const LONG = { leaseMs: 60_000 };

async function land(jobs: Jobs, total: number, opts = {}): Promise<string[]> {
  const landed = await jobs.enqueueMany(
    'q',
    numbers(total).map((n) => ({ name: n % 2 ? 'odd' : 'even', data: n, opts })),
  );
  return landed.map(({ id }) => id);
}

/** One that runs, one dead, one that waits for a child, one kept, and three of each that drain is about. */
async function everything({ jobs, flows }: EchoMq): Promise<{ running: string; stay: string[] }> {
  const [dead] = await buried(jobs, 'q', 1);
  await land(jobs, 2);
  const [running, kept] = await jobs.claim('q', { ...LONG, count: 2 });
  await jobs.complete('q', kept!.id, kept!.token, { keepMs: 60_000 });
  const waiting = await flows.add({ queue: 'q', name: 'up', children: [{ queue: 'r', name: 'child' }] });
  await until(async () => (await jobs.counts('r')).pending === 1, { what: 'the child elsewhere' });
  await land(jobs, 3);
  await land(jobs, 3, { delayMs: 3_600_000 });
  return { running: running!.id, stay: [dead!, running!.id, kept!.id, waiting.id] };
}

describe('drain', () => {
  const stage = useStage();

  it('removes what waits to be claimed, and nothing else', async () => {
    const echo = await stage.connect();
    const { stay } = await everything(echo);
    expect(await echo.jobs.drain('q')).toBe(3);
    const rest = { pending: 0, active: 1, dead: 1, awaitingChildren: 1 };
    expect(await echo.jobs.counts('q')).toMatchObject({ ...rest, scheduled: 3, metrics: { removed: 3 } });
    expect(await echo.jobs.drain('q')).toBe(0);
    for (const id of stay) expect(await echo.jobs.get('q', id)).toBeDefined();
    expect(await echo.jobs.counts('r')).toMatchObject({ pending: 1 });
  });

  it('removes also what waits for a time, when it is told so', async () => {
    const echo = await stage.connect();
    const { stay } = await everything(echo);
    expect(await echo.jobs.drain('q', { scheduled: true })).toBe(6);
    const rest = { pending: 0, scheduled: 0, active: 1, dead: 1, awaitingChildren: 1 };
    expect(await echo.jobs.counts('q')).toMatchObject({ ...rest, metrics: { removed: 6 } });
    for (const id of stay) expect(await echo.jobs.get('q', id)).toBeDefined();
  });

  it('takes 2,500 of each in steps of about 1,000, leaving no row', async () => {
    const { jobs } = await stage.connect();
    await land(jobs, 2500);
    await land(jobs, 2500, { delayMs: 3_600_000, priority: 5 });
    const ear = await stage.overhear();
    expect(await jobs.drain('q', { scheduled: true })).toBe(5000);
    const said = await ear.said();
    const steps = said
      .filter(([, , , , , only]) => only === 'pending' || only === 'scheduled')
      .map((args) => args.length - 6);
    expect(steps.reduce((all, step) => all + step)).toBeGreaterThanOrEqual(5000);
    expect(Math.max(...steps)).toBeLessThanOrEqual(1000);
    expect(await stage.control.keys('emq:{q}:job:*')).toEqual([]);
    expect(await jobs.counts('q')).toMatchObject({ metrics: { enqueued: 5000, removed: 5000 } });
  });

  it('ends, and removes all that was there when it began, although others land and claim all the while', async () => {
    const { jobs } = await stage.connect();
    const other = await stage.connect();
    const before = await land(jobs, 3000);
    let producing = true;
    const landed: string[] = [];
    const produced = (async () => {
      for (let n = 0; producing; n++) {
        const { id } = await other.jobs.enqueue('q', 'new', n, { priority: n % 2 ? -n : n });
        landed.push(id);
      }
    })();
    const claimed = other.jobs.claim('q', { ...LONG, count: 100 });
    await until(() => landed.length > 10, { what: 'the producer' });
    await jobs.drain('q');
    producing = false;
    await produced;
    const running = new Set((await claimed).map(({ id }) => id));
    const left = await Promise.all(before.map((id) => stage.control.exists(`emq:{q}:job:${id}`)));
    expect(before.filter((id, i) => left[i] === 1 && !running.has(id))).toEqual([]);
  });

  it('leaves a job that dies between the look and the step', async () => {
    const proxy = await stage.proxy();
    const slow = await stage.connect({ connection: proxy.url });
    const { jobs } = await stage.connect();
    const [id, other] = await land(jobs, 2);
    await slow.jobs.remove('q', jobs.mintId()); // its script is known from here on
    const held = proxy.hold(other!);
    const drained = slow.jobs.drain('q');
    const { release } = await held;
    const [claimed] = await jobs.claim('q', LONG);
    expect(await jobs.retry('q', id!, claimed!.token, { maxAttempts: 0 })).toBe('dead');
    release();
    expect(await drained).toBe(1);
    expect((await jobs.get('q', id!))?.state).toBe('dead');
  });

  it('tells parents, here and elsewhere, and takes a released parent with all that it kept of its children', async () => {
    const echo = await stage.connect();
    const { jobs, flows } = echo;
    const released = await flows.add({ queue: 'q', name: 'released', children: [{ queue: 'q', name: 'child' }] });
    const [child] = await jobs.claim('q', LONG);
    await jobs.complete('q', child!.id, child!.token, { result: 1 });
    expect((await jobs.get('q', released.id))?.state).toBe('pending');
    const policy = { parentPolicy: 'ignore' as const };
    const waiting = (queue: string) =>
      flows.add({ queue, name: 'up', children: [{ queue: 'q', name: 'child', opts: policy }] });
    const [here, there] = [await waiting('q'), await waiting('r')];
    await until(async () => (await jobs.counts('q')).pending === 3, { what: 'the child of the parent elsewhere' });
    // The parent in this queue becomes pending under the drain: it was not there when that began, and may go as well.
    expect([3, 4]).toContain(await jobs.drain('q'));
    expect(await stage.control.keys(`emq:{q}:job:${released.id}*`)).toEqual([]);
    const told = async () => (await jobs.get('r', there.id))?.state === 'pending';
    await until(told, { what: 'the parent elsewhere to be told' });
    expect(['pending', undefined]).toContain((await jobs.get('q', here.id))?.state);
  });

  it('takes what waits in lanes, in groups of lanes, and beside them', async () => {
    const { jobs } = await stage.connect();
    const lanes = [undefined, 'a', 'b:c', ['g', 'a'], ['g', 'b']] as const;
    await jobs.enqueueMany(
      'q',
      numbers(500).map((n) => ({ name: n % 2 ? 'odd' : 'even', opts: { lane: lanes[n % 5] } })),
    );
    const running = await jobs.claim('q', { ...LONG, count: 10 });
    expect(await jobs.removeMany('q', 'pending', { name: 'odd', limit: 100 })).toBe(100);
    expect(await jobs.drain('q')).toBe(390);
    expect(await jobs.counts('q')).toMatchObject({ pending: 0, active: 10, metrics: { removed: 490 } });
    for (const { id, token } of running) expect(await jobs.complete('q', id, token)).toBe('ok');
    expect(await stage.control.keys('emq:{q}:lane:*')).toEqual([]);
  });

  it('tells those who wait for a job that it is gone', async () => {
    const { jobs } = await stage.connect();
    const waited = failure(jobs.enqueueAndWait('q', 'a', 1));
    await until(async () => (await jobs.counts('q')).pending === 1, { what: 'the job' });
    await jobs.drain('q');
    expect(await waited).toMatchObject({ code: 'ECHO_JOB_REMOVED' });
  });

  it('passes by ghosts', async () => {
    const { jobs } = await stage.connect();
    const ids = await land(jobs, 3);
    await stage.control.del(`emq:{q}:job:${ids[1]}`);
    expect(await jobs.drain('q')).toBe(2);
    await stage.control.zrem('emq:{q}:pending', ids[1]!);
    await stage.control.hincrby('emq:{q}:metrics:enqueued', 'count', -1);
  });

  it('counts what was removed although the answer was lost', async () => {
    const proxy = await stage.proxy();
    const { jobs } = await stage.connect({ connection: proxy.url, onError: () => undefined });
    const ids = await land(jobs, 5);
    await jobs.remove('q', jobs.mintId());
    const lost = proxy.passAndDropReply(ids[4]!);
    const drained = jobs.drain('q');
    await lost;
    expect(await drained).toBe(5);
  });

  it.each([{ delayed: true }, { scheduled: 1 }, null])('refuses %p', async (options) => {
    const { jobs } = await stage.connect();
    expect(await failure(jobs.drain('q', options as never))).toMatchObject({ name: 'EchoArgumentError' });
  });
});

describe('removeMany', () => {
  const stage = useStage();

  it.each(['pending', 'scheduled', 'dead'] as const)(
    'removes what is %s and matches, and nothing else',
    async (state) => {
      const { jobs } = await stage.connect();
      await buried(jobs, 'q', 200, (n) => (n % 2 ? 'odd' : 'even'));
      await land(jobs, 200);
      await land(jobs, 200, { delayMs: 3_600_000 });
      const seen: JobView[] = [];
      const filter = (job: JobView) => seen.push(job) % 2 === 0;
      expect(await jobs.removeMany('q', state, { name: 'odd', filter })).toBe(50);
      expect(seen).toHaveLength(100);
      expect(seen.every((job) => job.state === state && job.name === 'odd')).toBe(true);
      const all = { pending: 200, scheduled: 200, dead: 200 };
      expect(await jobs.counts('q')).toMatchObject({ ...all, [state]: 150 });
      expect(await jobs.removeMany('q', state, { limit: 7 })).toBe(7);
      expect(await jobs.removeMany('q', state)).toBe(143);
      expect(await jobs.counts('q')).toMatchObject({ ...all, [state]: 0, metrics: { removed: 200 } });
    },
  );

  it('leaves a dead parent with outstanding children, and one that waits', async () => {
    const { jobs, flows } = await stage.connect();
    const child = { queue: 'q', name: 'child' };
    const parent = await flows.add({ queue: 'q', name: 'up', children: [child, child] });
    const [claimed] = await jobs.claim('q', LONG);
    await jobs.retry('q', claimed!.id, claimed!.token, { maxAttempts: 0 });
    expect((await jobs.get('q', parent.id))?.state).toBe('dead');
    expect(await jobs.removeMany('q', 'dead', { name: 'up' })).toBe(0);
    expect((await jobs.get('q', parent.id))?.state).toBe('dead');
  });

  it.each<[unknown, unknown, RegExp]>([
    ['active', {}, /^state "active": removeMany knows pending, scheduled, dead/],
    ['toString', {}, /^state "toString"/],
    [undefined, {}, /^state undefined/],
    [Object.create(null), {}, /^state object/],
    ['dead', { fresh: true }, /unknown option 'fresh'/],
    ['dead', { filter: 1 }, /^filter must be a function/],
  ])('refuses %p with %p', async (state, options, message) => {
    const { jobs } = await stage.connect();
    const error = await failure(jobs.removeMany('q', state as 'dead', options as Matching));
    expect(error).toMatchObject({ name: 'EchoArgumentError', message: expect.stringMatching(message) });
  });
});
