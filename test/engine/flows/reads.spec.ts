import { describe, expect, it } from '@jest/globals';
import { type ChildrenReport, Discard, type FlowTree, type Job, jsonCodec } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { numbers } from '../jobs/stage.js';
import { Diary, node, stateOf, useFlowStage } from './stage.js';

/** Names, as nested lists. */
const shape = ({ job, children }: FlowTree): unknown => [job?.name, ...children.map(shape)];

describe('what is known of a flow', () => {
  const stage = useFlowStage();

  it('are the values of children that were removed when they completed, of every kind (C112)', async () => {
    const echo = await stage.connect();
    const results: unknown[] = [undefined, null, 0, '', 'text é', [1, { a: 2 }], false, 'x'.repeat(100_000)];
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids'], {
      child: (job: Job) => results[job.data as number],
      parent: async (job) => (await job.children()).values,
    });
    const { id, children } = await echo.flows.add({
      ...node('q', 'parent', [], { keepMs: 60_000 }),
      children: results.map((_, data) => ({ queue: data % 2 ? 'q' : 'kids', name: 'child', data })),
    });
    const seen = (await echo.jobs.wait('q', id)) as Record<string, unknown>;
    const expected = Object.fromEntries(children.map((child, i) => [child.id, results[i]]));
    expect(seen).toEqual(JSON.parse(JSON.stringify(expected))); // what is undefined is there, and JSON drops it
    for (const child of children) expect(await echo.jobs.get(child.queue, child.id)).toBeUndefined();
  });

  it('is asked of the server by `children()`, and part by part, whoever asks', async () => {
    const echo = await stage.connect();
    const asking = await stage.connect();
    const diary = new Diary();
    const bad = () => Promise.reject(new Discard('broken'));
    diary.serve(echo, ['q', 'kids'], { bad, worse: bad, undefined: () => undefined });
    await echo.jobs.pause('slow');
    const { id, children } = await echo.flows.add(
      node('q', 'parent', [
        node('kids', 'good'),
        node('q', 'undefined'),
        node('kids', 'bad', [], { parentPolicy: 'ignore' }),
        node('q', 'worse'),
        node('slow', 'slow'),
      ]),
    );
    const [good, nothing, ignored, failed, slow] = children.map((child) => child.id) as string[];
    await stateOf(echo, 'q', id, 'dead');
    await until(async () => (await asking.flows.dependencies('q', id)) === 2, { what: 'three to count' });
    const report: ChildrenReport = {
      outstanding: 2,
      values: { [good!]: 'good', [nothing!]: undefined },
      ignored: { [ignored!]: 'broken' },
      failed: { [failed!]: 'broken' },
    };
    expect(await asking.flows.children('q', id)).toStrictEqual(report);
    expect(await asking.flows.childrenValues('q', id)).toStrictEqual(report.values);
    expect(await asking.flows.ignoredFailures('q', id)).toStrictEqual(report.ignored);
    expect(await asking.flows.failures('q', id)).toStrictEqual(report.failed);
    expect((await asking.flows.tree('q', id)).children.map(({ job }) => job?.state)).toEqual(
      [good, nothing, ignored, failed, slow].map((_, i) => [undefined, undefined, 'dead', 'dead', 'pending'][i]),
    );
  });

  it('is empty for a job that is no parent, and for one that is gone', async () => {
    const { flows, jobs } = await stage.connect();
    const none = { outstanding: 0, values: {}, ignored: {}, failed: {} };
    const { id } = await jobs.enqueue('q', 'plain');
    for (const one of [id, jobs.mintId()]) {
      expect(await flows.children('q', one)).toEqual(none);
      expect(await flows.dependencies('q', one)).toBe(0);
    }
    expect(await flows.tree('q', id)).toMatchObject({ queue: 'q', id, job: { name: 'plain' }, children: [], more: 0 });
    const gone = jobs.mintId();
    expect(await flows.tree('q', gone)).toEqual({ queue: 'q', id: gone, job: undefined, children: [], more: 0 });
  });

  it('is its tree, as deep and as large as it is asked for', async () => {
    const { flows, jobs } = await stage.connect();
    const leaves = (name: string) => numbers(4).map((i) => node(i % 2 ? 'q' : 'kids', `${name}.${i}`));
    const added = await flows.add(
      node('q', 'root', [node('q', 'a', leaves('a')), node('kids', 'b', [node('other', 'c', leaves('c'))])]),
    );
    await until(async () => (await jobs.counts('other')).awaitingChildren === 1, { what: 'the tree to land' });
    await until(async () => (await jobs.counts('kids')).pending === 4, { what: 'its leaves to land' });
    const c = ['c', ['c.0'], ['c.1'], ['c.2'], ['c.3']];
    const whole = ['root', ['a', ['a.0'], ['a.1'], ['a.2'], ['a.3']], ['b', c]];
    expect(shape(await flows.tree('q', added.id))).toEqual(whole);
    const flat = await flows.tree('q', added.id, { depth: 1 });
    expect(shape(flat)).toEqual(['root', ['a'], ['b']]);
    expect([flat.more, ...flat.children.map(({ more }) => more)]).toEqual([0, 4, 1]);
    expect(shape(await flows.tree('q', added.id, { depth: 0 }))).toEqual(['root']);
    const some = await flows.tree('q', added.id, { limit: 4 });
    const count = (tree: FlowTree): number => tree.children.reduce((sum, child) => sum + count(child), 1);
    expect(count(some)).toBe(4);
    const missing = (tree: FlowTree): number => tree.children.reduce((sum, child) => sum + missing(child), tree.more);
    expect(missing(some)).toBeGreaterThan(0);
    const mid = added.children[1]!;
    expect(shape(await flows.tree(mid.queue, mid.id))).toEqual(['b', c]);
  });

  it('are bytes where the codec cannot read results', async () => {
    const { decodeResult, ...codec } = jsonCodec;
    expect(decodeResult).toBeDefined();
    const echo = await stage.connect({ codec });
    const diary = new Diary();
    let values: unknown[] = [];
    diary.serve(echo, ['q'], {
      child: () => ({ a: 1 }),
      parent: async (job) => {
        values = Object.values((await job.children()).values);
      },
    });
    await echo.flows.add(node('q', 'parent', [node('q', 'child')]));
    await diary.began('parent');
    await until(() => values.length > 0, { what: 'the values' });
    expect(values).toEqual([Buffer.from('{"a":1}')]);
  });
});
