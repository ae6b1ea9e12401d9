import { describe, expect, it } from '@jest/globals';
import type { AddedFlow, ClaimedJob, EchoMq, Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { endWorkers, spawnWorker } from '../../support/worker-process.js';
import { hashOf, wholeHashOf } from '../hashes.js';
import { numbers } from '../jobs/stage.js';
import { Diary, node, useFlowStage } from './stage.js';

describe.each([
  ['its own queue', 'q'],
  ['another queue', 'kids'],
])('a child in %s counts its parent down once', (_where, kids) => {
  const stage = useFlowStage();

  /** A parent over a child that is claimed by hand, and another that is not, so that a second count would show. */
  async function claimed(echo: EchoMq, leaseMs = 60_000): Promise<{ added: AddedFlow; job: ClaimedJob }> {
    const children = [node(kids, 'child', [], { priority: -1 }), node(kids, 'other')];
    const added = await echo.flows.add(node('q', 'parent', children, { keepMs: 60_000 }));
    await until(async () => (await echo.jobs.counts(kids)).pending === 2, { what: 'the children to land' });
    const [job] = await echo.jobs.claim(kids, { leaseMs });
    expect(job?.name).toBe('child');
    return { added, job: job! };
  }

  /** The other child runs, then the parent; it does so once, with the values of both. */
  async function goesOn(echo: EchoMq, { id, children }: AddedFlow, values: unknown[]): Promise<void> {
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'one of two to count' });
    const diary = new Diary();
    diary.serve(echo, [...new Set(['q', kids])], { parent: async (job) => (await job.children()).values });
    const seen = await echo.jobs.wait('q', id);
    expect(seen).toEqual(Object.fromEntries(children.map((child, i) => [child.id, values[i]])));
    expect(diary.count('parent')).toBe(1);
  }

  it('when its lease lapses, it is reaped, and its first holder settles it after all', async () => {
    const echo = await stage.connect();
    const { added, job } = await claimed(echo);
    await stage.control.zadd(`emq:{${kids}}:active`, 'XX', 1, job.id);
    expect(await echo.jobs.reap(kids)).toMatchObject({ requeued: 1 });
    expect(await echo.jobs.complete(kids, job.id, job.token, { result: 'late' })).toBe('ok');
    expect(await echo.jobs.complete(kids, job.id, job.token, { result: 'later' })).toBe('gone');
    await goesOn(echo, added, ['late', 'other']);
  });

  it('when its lease lapses, another completes it, and its first holder comes too late', async () => {
    const echo = await stage.connect();
    const { added, job } = await claimed(echo);
    await stage.control.zadd(`emq:{${kids}}:active`, 'XX', 1, job.id);
    await echo.jobs.reap(kids);
    const [again] = await echo.jobs.claim(kids, { leaseMs: 60_000 });
    expect(again!.id).toBe(job.id);
    expect(await echo.jobs.complete(kids, job.id, job.token, { result: 'too late' })).toBe('stale');
    expect(await echo.jobs.complete(kids, again!.id, again!.token, { result: 'in time', keepMs: 60_000 })).toBe('ok');
    expect(await echo.jobs.complete(kids, job.id, job.token, { result: 'too late' })).toBe('stale');
    await goesOn(echo, added, ['in time', 'other']);
  });

  it('when it dies of lapsed leases, is reprocessed and then done', async () => {
    const echo = await stage.connect();
    const { added, job } = await claimed(echo);
    await stage.control.zadd(`emq:{${kids}}:active`, 'XX', 1, job.id);
    expect(await echo.jobs.reap(kids, { maxStalls: 0 })).toMatchObject({ died: 1 });
    await until(async () => (await echo.jobs.get('q', added.id))?.state === 'dead', { what: 'the parent to die' });
    expect(await echo.jobs.complete(kids, job.id, job.token)).toBe('stale');
    expect((await echo.jobs.get('q', added.id))?.lastError).toBe(`child ${kids}|${job.id}: lease lapsed 1 times`);
    await echo.jobs.reprocess(kids, job.id);
    const [again] = await echo.jobs.claim(kids, { leaseMs: 60_000 });
    expect(await echo.jobs.complete(kids, job.id, again!.token, { result: 'in the end' })).toBe('ok');
    await goesOn(echo, added, ['in the end', 'other']);
  });

  it.each([0, 60_000])('when it is completed again and again, kept for %d ms', async (keepMs) => {
    const echo = await stage.connect();
    const { added, job } = await claimed(echo);
    const settling = numbers(20).map((i) => echo.jobs.complete(kids, job.id, job.token, { keepMs, result: i }));
    const answers = await Promise.all(settling);
    expect(answers).toEqual(answers.map((_, i) => (i === 0 || keepMs > 0 ? 'ok' : 'gone')));
    await goesOn(echo, added, [0, 'other']);
  });

  it('when the answer to its completion is lost, and it is sent again', async () => {
    const proxy = await stage.proxy();
    const worker = await stage.connect({ connection: proxy.url, onError: () => {} });
    const echo = await stage.connect();
    const diary = new Diary();
    const handlers = { parent: async (job: Job) => (await job.children()).values };
    diary.serve(worker, ['kids', 'q'], handlers, { leaseMs: 1000 }); // a claim may be lost with the connection
    await worker.jobs.enqueueAndWait(kids, 'script is loaded', undefined);
    const lost = proxy.passAndDropReply(wholeHashOf('complete'));
    const { id, children } = await echo.flows.add(
      node(
        'q',
        'parent',
        numbers(10).map((i) => node(kids, `${i}`)),
        { keepMs: 60_000 },
      ),
    );
    await lost;
    const values = Object.fromEntries(children.map((child, i) => [child.id, `${i}`]));
    expect(await echo.jobs.wait('q', id)).toEqual(values);
    expect(diary.count('parent')).toBe(1);
  });
});

describe('what one queue owes another', () => {
  endWorkers();
  const stage = useFlowStage();

  it('is applied once when two relay it at the same time, and the slower one comes after all of it', async () => {
    const proxy = await stage.proxy();
    const slow = await stage.connect({ connection: proxy.url, onError: () => {} });
    const fast = await stage.connect();
    const opts = { keepMs: 60_000 };
    const flow = (name: string) => node('q', name, [node('kids', 'child'), node('kids', 'child')], opts);
    const held = proxy.hold(hashOf('apply'));
    await slow.flows.add(flow('one'));
    const landing = await held;
    const two = await fast.flows.add(flow('two')); // relays what `slow` had in hand, too
    await until(async () => (await fast.jobs.counts('kids')).pending === 4, { what: 'all children to land' });
    landing.release();
    const diary = new Diary();
    const settled = proxy.hold(hashOf('apply'));
    diary.serve(slow, ['kids']);
    const settling = await settled;
    diary.serve(fast, ['q']);
    await stage.control.del('emq:{kids}:leader');
    const helper = await stage.connect();
    diary.serve(helper, ['kids']);
    await fast.jobs.wait('q', two.id);
    settling.release();
    await until(async () => (await fast.jobs.counts('q')).metrics.completed === 2, { what: 'both parents' });
    expect(diary.names.sort()).toEqual(['child', 'child', 'child', 'child', 'one', 'two']);
  });

  it('releases a parent of 100 children once, with 10 workers of which two are killed, and doubled completions (C110)', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(echo, ['q'], { parent: async (job) => Object.keys((await job.children()).values) });
    const children = numbers(100).map((i) => ({
      queue: 'kids',
      name: `${i}`,
      ...(i % 7 === 6 && { data: { do: 'hang' } }),
    }));
    const { id, children: added } = await echo.flows.add({ ...node('q', 'parent', [], { keepMs: 60_000 }), children });
    await until(async () => (await echo.jobs.counts('kids')).pending === 100, { what: 'the children to land' });
    const byHand = await echo.jobs.claim('kids', { leaseMs: 60_000, count: 5 });
    const options = JSON.stringify({ concurrency: 3, leaseMs: 60_000 });
    const workers = numbers(10).map(() =>
      spawnWorker('test/engine/workers/consumer.ts', { args: [stage.server.url, 'kids', options] }),
    );
    await Promise.all(workers.map((worker) => worker.next('ready', 60_000)));
    for (const { id: child, token } of [...byHand, ...byHand]) await echo.jobs.complete('kids', child, token);
    const hung = async () =>
      (await echo.jobs.counts('kids')).active > 0 && (await echo.jobs.counts('kids')).pending === 0;
    await until(hung, { what: 'all but the hanging ones to be done' });
    await Promise.all(workers.slice(0, 2).map((worker) => worker.kill()));
    for (const worker of workers.slice(2)) worker.send({ type: 'end' });
    const end = async () => {
      // What the two had in hand comes back when its lease lapses; by hand, so that nobody waits for it.
      const active = await stage.control.zrange('emq:{kids}:active', 0, '-1');
      for (const child of active) await stage.control.zadd('emq:{kids}:active', 'XX', '1', child);
      await echo.jobs.reap('kids', { maxStalls: 1_000 });
      for (const worker of workers.slice(2)) worker.send({ type: 'end' });
      return (await echo.jobs.get('q', id))?.state === 'done';
    };
    await until(end, { what: 'the parent', timeoutMs: 20_000 });
    expect((await echo.jobs.result('q', id)) as string[]).toEqual(added.map((child) => child.id).sort());
    expect(diary.count('parent')).toBe(1);
    await Promise.all(workers.slice(2).map((worker) => worker.kill()));
    await stage.control.del('emq:{kids}:leader');
    diary.serve(echo, ['kids']); // leads the queue from now on
  }, 600_000);
});
