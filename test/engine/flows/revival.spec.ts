import { describe, expect, it } from '@jest/globals';
import { Discard, type Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Diary, node, stateOf, useFlowStage } from './stage.js';

/** Jobs by these names die, until they are mended. */
class Broken {
  private readonly names: Set<string>;

  constructor(...names: string[]) {
    this.names = new Set(names);
  }

  mend(name: string): void {
    this.names.delete(name);
  }

  readonly run = (job: Job) => {
    if (this.names.has(job.name)) throw new Discard(`${job.name} is broken`);
    return job.name;
  };
}

describe('a parent that died of its children', () => {
  const stage = useFlowStage();

  it('comes back, and all above it, when the leaf that they died of is reprocessed, across queues', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const broken = new Broken('leaf');
    diary.serve(echo, ['a', 'b', 'c'], { leaf: broken.run });
    const added = await echo.flows.add(
      node('a', 'root', [node('b', 'mid', [node('b', 'low', [node('c', 'leaf'), node('a', 'other')])])], {
        keepMs: 60_000,
      }),
    );
    await stateOf(echo, 'a', added.id, 'dead');
    const mid = added.children[0]!;
    const low = mid.children[0]!;
    for (const parent of [mid, low]) {
      expect(await echo.jobs.get(parent.queue, parent.id)).toMatchObject({ state: 'dead' });
    }
    broken.mend('leaf');
    expect(await echo.jobs.reprocess('c', low.children[0]!.id)).toBe('ok');
    await stateOf(echo, 'a', added.id, 'done');
    for (const name of ['low', 'mid', 'root']) expect(diary.count(name)).toBe(1);
    expect(diary.count('leaf')).toBe(2);
  });

  it('names another child once the one it named lives again, and stays dead until none holds it', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const broken = new Broken('one', 'two', 'three');
    diary.serve(echo, ['q', 'kids'], { one: broken.run, two: broken.run, three: broken.run });
    const { id, children } = await echo.flows.add(
      node('q', 'parent', [node('kids', 'one'), node('q', 'two'), node('kids', 'three')], { keepMs: 60_000 }),
    );
    await until(async () => Object.keys(await echo.flows.failures('q', id)).length === 3, { what: 'three deaths' });
    const left = new Map(children.map((child) => [child.id, child]));
    while (left.size > 0) {
      const reason = (await echo.jobs.get('q', id))?.lastError ?? '';
      const named = [...left.values()].find((child) => reason.startsWith(`child ${child.queue}|${child.id}: `))!;
      expect(reason).toBe(`child ${named.queue}|${named.id}: ${named.name} is broken`);
      broken.mend(named.name);
      left.delete(named.id);
      await echo.jobs.reprocess(named.queue, named.id);
      const holding = async () =>
        Object.keys(await echo.flows.failures('q', id))
          .sort()
          .join() === [...left.keys()].sort().join();
      await until(holding, { what: `${named.name} to hold it no longer` });
    }
    await stateOf(echo, 'q', id, 'done');
    expect(diary.count('parent')).toBe(1);
  });

  it('goes on without those that failed it when it is reprocessed itself, once the rest has settled', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const broken = new Broken('bad');
    diary.serve(echo, ['q', 'kids'], {
      bad: broken.run,
      parent: async (job) => (await job.children()).ignored,
      root: async (job) => Object.values((await job.children()).values),
    });
    await echo.jobs.pause('slow');
    const { id, children } = await echo.flows.add(
      node('q', 'root', [node('q', 'parent', [node('kids', 'bad'), node('slow', 'slow')])], { keepMs: 60_000 }),
    );
    const [parent] = children;
    await stateOf(echo, 'q', id, 'dead');
    expect(await echo.jobs.reprocess('q', parent!.id)).toBe('ok');
    await stateOf(echo, 'q', id, 'awaiting_children');
    expect(await echo.jobs.get('q', parent!.id)).toMatchObject({ state: 'awaiting_children', lastError: undefined });
    const bad = { [parent!.children[0]!.id]: 'bad is broken' };
    expect(await echo.flows.children('q', parent!.id)).toMatchObject({ outstanding: 1, ignored: bad, failed: {} });
    diary.serve(echo, ['slow']);
    await echo.jobs.resume('slow');
    expect(await echo.jobs.wait('q', id)).toEqual([bad]);
    expect(diary.names.filter((name) => name === 'parent' || name === 'root')).toEqual(['parent', 'root']);
  });

  it('takes a late success of a child that it went on without', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const broken = new Broken('bad');
    diary.serve(echo, ['q', 'kids'], { bad: broken.run });
    const flow = node('q', 'parent', [node('kids', 'bad', [], { parentPolicy: 'ignore' }), node('slow', 'slow')]);
    const { id, children } = await echo.flows.add({ ...flow, opts: { keepMs: 60_000 } });
    const bad = children[0]!.id;
    await until(async () => bad in (await echo.flows.ignoredFailures('q', id)), { what: 'the death to be recorded' });
    broken.mend('bad');
    await echo.jobs.reprocess('kids', bad);
    await until(async () => bad in (await echo.flows.childrenValues('q', id)), { what: 'its success to be recorded' });
    expect(await echo.flows.children('q', id)).toMatchObject({ outstanding: 1, ignored: {}, values: { [bad]: 'bad' } });
    diary.serve(echo, ['slow']);
    await echo.jobs.wait('q', id);
    expect(diary.count('parent')).toBe(1);
  });

  it('does not come back for a child when it died of itself, and keeps its reason', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const broken = new Broken('bad', 'parent');
    diary.serve(echo, ['q', 'kids'], { bad: broken.run, parent: broken.run });
    const { id, children } = await echo.flows.add(
      node('q', 'parent', [node('kids', 'bad', [], { parentPolicy: 'ignore' })], { keepMs: 60_000 }),
    );
    await stateOf(echo, 'q', id, 'dead');
    broken.mend('bad');
    await echo.jobs.reprocess('kids', children[0]!.id);
    await until(async () => Object.keys(await echo.flows.childrenValues('q', id)).length === 1, {
      what: 'its success',
    });
    expect(await echo.jobs.get('q', id)).toMatchObject({ state: 'dead', lastError: 'parent is broken' });
    broken.mend('parent');
    expect(await echo.jobs.reprocess('q', id)).toBe('ok');
    await stateOf(echo, 'q', id, 'done');
    expect(diary.count('parent')).toBe(2);
  });

  it('is there to be looked at: its reason lists the whole way down, cut to what a row keeps', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids'], { leaf: () => Promise.reject(new Discard('é'.repeat(5_000))) });
    const deep = Array.from({ length: 60 }).reduce<ReturnType<typeof node>>(
      (below, _, i) => node(i % 3 === 0 ? 'kids' : 'q', `level ${i}`, [below]),
      node('kids', 'leaf'),
    );
    const { id, queue } = await echo.flows.add(deep);
    await stateOf(echo, queue, id, 'dead');
    const reason = (await echo.jobs.get(queue, id))!.lastError!;
    expect(reason).toMatch(/^child q\|JOB\w{11}: child (q|kids)\|JOB\w{11}: child /);
    expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(4_096);
    expect(reason).not.toContain('\ufffd');
    expect(await echo.jobs.counts('q')).toMatchObject({ dead: 40, awaitingChildren: 0 });
  });
});
