import { describe, expect, it } from '@jest/globals';
import {
  type AddedNode,
  EchoArgumentError,
  EchoBulkError,
  EchoFlowsError,
  EchoStateError,
  type FlowNode,
} from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { hashOf } from '../hashes.js';
import { failure, numbers, quiet } from '../jobs/stage.js';
import { Diary, node, useFlowStage } from './stage.js';

describe('a flow that is added', () => {
  const stage = useFlowStage();

  it('runs from its leaves to its root, each job once, over any depth and any queues', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(echo, ['a', 'b', 'c|d'], {}, { keepMs: 60_000 });
    const added = await echo.flows.add(
      node('a', 'root', [
        node('a', 'root.1', [node('b', 'root.1.1', [node('a', 'root.1.1.1', [node('c|d', 'root.1.1.1.1')])])]),
        node('b', 'root.2', [node('b', 'root.2.1'), node('c|d', 'root.2.2', [node('c|d', 'root.2.2.1')])]),
        node('c|d', 'root.3'),
      ]),
    );
    expect(added.status).toBe('landed');
    expect(await echo.jobs.wait('a', added.id)).toBe('root');
    expect(diary.names).toHaveLength(10);
    for (const name of diary.names) {
      const parent = name.replace(/\.?[^.]+$/, '');
      if (parent) expect(diary.names.indexOf(name)).toBeLessThan(diary.names.indexOf(parent));
    }
    const idOf = (of: AddedNode): Record<string, string> =>
      Object.assign({ [of.name]: of.id }, ...of.children.map(idOf));
    expect(Object.fromEntries(diary.jobs.map(({ name, id }) => [name, id]))).toEqual(idOf(added));
  });

  it('without children is an ordinary job', async () => {
    const { flows, jobs } = await stage.connect();
    const { id } = await flows.add(node('q', 'alone', [], { priority: 3, delayMs: 60_000 }));
    expect(await jobs.get('q', id)).toMatchObject({ state: 'scheduled', priority: 3, name: 'alone' });
  });

  it('gives every job the options it was given', async () => {
    const echo = await stage.connect();
    const { flows, jobs } = echo;
    const { id, children } = await flows.add({
      ...{ queue: 'q', name: 'root', opts: { priority: 7, keepMs: 60_000, attempts: 9 } },
      children: [
        node('q', 'later', [], { delayMs: 3_600_000 }),
        node('kids', 'later', [], { runAt: Date.now() + 3_600_000 }),
        node('q', 'last', [], { priority: 5 }),
        node('q', 'first', [], { priority: -5, maxStalls: 4 }),
        node('kids', 'once', [], { attempts: 1, parentPolicy: 'ignore' }),
        node('kids', 'kept', [], { keepMs: 60_000, id: jobs.mintId() }),
      ],
    });
    const diary = new Diary();
    diary.serve(echo, ['kids'], { once: () => Promise.reject(new Error('once')) }, { attempts: 5 });
    await until(async () => (await jobs.counts('kids')).dead === 1, { what: 'its only attempt to fail' });
    await until(async () => (await jobs.get('kids', children[5]!.id))?.state === 'done', { what: 'the kept one' });
    expect(diary.count('once')).toBe(1);
    expect((await jobs.list('q', 'pending')).jobs.map(({ name }) => name)).toEqual(['first', 'last']);
    expect((await jobs.list('q', 'scheduled')).jobs.map(({ name }) => name)).toEqual(['later']);
    expect((await jobs.list('kids', 'scheduled')).jobs.map(({ name }) => name)).toEqual(['later']);
    expect(await stage.control.hget(`emq:{q}:job:${children[3]!.id}`, 'max_stalls')).toBe('4');
    expect(await jobs.get('q', id)).toMatchObject({ state: 'awaiting_children', priority: 7 });
    expect(String((await jobs.get('q', id))?.payload)).toContain('"opts":{"attempts":9,"keepMs":60000}');
    for (const child of children) {
      if (child.name === 'later') await jobs.reschedule(child.queue, child.id, { delayMs: 0 });
    }
    diary.serve(echo, ['q']);
    expect(await jobs.wait('q', id)).toBe('root');
    expect(diary.names.slice(-4).sort()).toEqual(['first', 'last', 'later', 'root']);
  });

  it('is a no-op when its root is there already, whatever its children are (C102)', async () => {
    const { flows, jobs } = await stage.connect();
    const flow = node('q', 'root', [node('q', 'child'), node('kids', 'child')], { id: jobs.mintId() });
    expect((await flows.add(flow)).status).toBe('landed');
    await until(async () => (await jobs.counts('kids')).pending === 1, { what: 'the relayed child' });
    expect(await flows.add(flow)).toMatchObject({ status: 'duplicate', id: flow.opts!.id });
    expect(await flows.add({ ...flow, children: [node('q', 'another')] })).toMatchObject({ status: 'duplicate' });
    expect(await jobs.counts('q')).toMatchObject({ awaitingChildren: 1, pending: 1, metrics: { enqueued: 2 } });
    expect(await jobs.counts('kids')).toMatchObject({ pending: 1, metrics: { enqueued: 1 } });
    expect(await flows.dependencies('q', flow.opts!.id!)).toBe(2);
  });

  it('is refused as a whole where a child of its queue is a child of another already (C100)', async () => {
    const { flows, jobs } = await stage.connect();
    const shared = node('q', 'shared', [], { id: jobs.mintId() });
    await flows.add(node('q', 'first', [shared]));
    const error = await failure(flows.add(node('q', 'second', [node('q', 'own'), shared])));
    expect(error).toBeInstanceOf(EchoStateError);
    expect(error).toMatchObject({ code: 'EMQSTATE', message: expect.stringContaining(shared.opts!.id!) });
    expect(await jobs.counts('q')).toMatchObject({ awaitingChildren: 1, pending: 1 });
    const twice = await failure(flows.add(node('q', 'third', [shared, node('q', 'mid', [shared])])));
    expect(twice).toBeInstanceOf(EchoArgumentError);
    expect(twice.message).toContain(`flow.children[1].children[0]: the id ${shared.opts!.id} stands twice`);
  });

  it('takes a child of another queue whose id is taken for one that died: the first parent keeps it (C100)', async () => {
    const echo = await stage.connect();
    const { flows, jobs } = echo;
    const shared = node('kids', 'shared', [node('kids', 'below')], { id: jobs.mintId() });
    const first = await flows.add(node('q', 'first', [shared], { keepMs: 60_000 }));
    await until(async () => (await jobs.counts('kids')).awaitingChildren === 1, { what: 'the relayed child' });
    const second = await flows.add(node('q', 'second', [shared]));
    const ignoring = await flows.add(
      node('q', 'third', [{ ...shared, opts: { ...shared.opts, parentPolicy: 'ignore' } }], { keepMs: 60_000 }),
    );
    await until(async () => (await jobs.counts('q')).dead === 1, { what: 'the second parent to die' });
    const taken = `the id ${shared.opts!.id} is taken`;
    expect((await jobs.get('q', second.id))?.lastError).toBe(`child kids|${shared.opts!.id}: ${taken}`);
    const diary = new Diary();
    diary.serve(echo, ['kids', 'q']);
    expect(await jobs.wait('q', first.id)).toBe('first');
    expect(await jobs.wait('q', ignoring.id)).toBe('third');
    expect(diary.names.sort()).toEqual(['below', 'first', 'shared', 'third']);
  });

  it('may have more children than one step lands', async () => {
    const echo = await stage.connect();
    const children = numbers(2_300).map((i) => node('q', `child ${i}`));
    const { id } = await echo.flows.add(node('q', 'root', children));
    const diary = new Diary();
    diary.serve(echo, ['q'], {}, { concurrency: 100 });
    await echo.jobs.wait('q', id);
    expect(diary.names).toHaveLength(2_301);
    expect(new Set(diary.names).size).toBe(2_301);
    expect(diary.names.at(-1)).toBe('root');
  });

  it('lands once when the answer is lost, and says so', async () => {
    const proxy = await stage.proxy();
    const { flows, jobs } = await stage.connect({ connection: proxy.url, onError: () => {} });
    await flows.add(node('q', 'script is loaded'));
    const lost = proxy.passAndDropReply(hashOf('land'));
    const added = await flows.add(node('q', 'root', [node('q', 'child'), node('kids', 'child')]));
    await lost;
    expect(added.status).toBe('landed');
    await until(async () => (await jobs.counts('kids')).pending === 1, { what: 'the relayed child' });
    expect(await jobs.counts('q')).toMatchObject({ awaitingChildren: 1, pending: 2, metrics: { enqueued: 3 } });
  });

  it('counts as landed when it had run to its end before the answer that was lost was asked for again', async () => {
    const proxy = await stage.proxy();
    const { flows } = await stage.connect({ connection: proxy.url, onError: () => {} });
    await flows.add(node('other', 'script is loaded'));
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(echo, ['q']);
    const lost = proxy.passAndDropReply(hashOf('land'));
    const adding = flows.add(node('q', 'root', [node('q', 'child', [], { keepMs: 60_000 })]));
    proxy.refuse();
    await lost;
    await diary.began('root');
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'the flow to end' });
    proxy.accept();
    expect((await adding).status).toBe('landed');
    expect(diary.names).toEqual(['child', 'root']);
  });

  it('among many is whole or not at all by itself, and who has added them is told which are there', async () => {
    const { flows, jobs } = await stage.connect();
    const { id: there } = await jobs.enqueue('q', 'there');
    const two = (child: FlowNode) => node('q', 'two', [node('kids', 'child'), child]);
    const trees = [
      node('q', 'one', [node('q', 'child')]),
      two(node('q', 'taken', [], { id: there })),
      node('q', 'three'),
    ];
    const error = await failure<EchoFlowsError>(flows.addMany(trees));
    expect(error).toBeInstanceOf(EchoFlowsError);
    expect(error).toBeInstanceOf(EchoBulkError);
    expect(error).toMatchObject({ name: 'EchoFlowsError', code: 'EMQSTATE', retryable: false });
    expect(error.message).toMatch(/^some of 3 flows did not land: /);
    const { results, ids } = error;
    const child = { queue: 'q', id: expect.any(String), name: 'child', children: [] };
    expect(results).toEqual([
      { queue: 'q', id: ids[0], name: 'one', status: 'landed', children: [child] },
      undefined,
      { queue: 'q', id: ids[2], name: 'three', status: 'landed', children: [] },
    ]);
    expect(await jobs.counts('q')).toMatchObject({ awaitingChildren: 1, pending: 3 }); // all of it is there already

    trees[1] = two(node('q', 'free'));
    const again = await flows.addMany(trees.map((tree, i) => ({ ...tree, opts: { id: ids[i]! } })));
    expect(again.map(({ id, status }) => ({ id, status }))).toEqual([
      { id: ids[0], status: 'duplicate' },
      { id: ids[1], status: 'landed' },
      { id: ids[2], status: 'duplicate' },
    ]);
    expect(await jobs.counts('q')).toMatchObject({ awaitingChildren: 2, pending: 4 });
    expect(await flows.addMany([])).toEqual([]);
  });

  it('among many that are refused keeps close() waiting until each of them has been answered', async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect();
    const { id: there } = await echo.jobs.enqueue('q', 'there');
    const sender = await stage.connect({ connection: proxy.url });
    await sender.flows.add(node('other', 'script is loaded'));
    const held = proxy.hold('good');
    let told = false;
    const adding = failure<EchoFlowsError>(
      sender.flows.addMany([node('q', 'bad', [node('q', 'taken', [], { id: there })]), node('q', 'good')]),
    ).finally(() => {
      told = true;
    });
    const { release } = await held;
    let closed = false;
    const closing = sender.close().then(() => {
      closed = true;
    });
    await quiet(echo, 'q');
    expect({ told, closed }).toEqual({ told: false, closed: false });
    release();
    expect((await adding).results).toEqual([undefined, expect.objectContaining({ name: 'good', status: 'landed' })]);
    await closing;
    expect(await echo.jobs.get('q', (await adding).ids[1]!)).toMatchObject({ name: 'good', state: 'pending' });
  });
});
