import { describe, expect, it } from '@jest/globals';
import { type DeadJob, Discard, type EchoMq, type FlowNode, type Job, type ParentPolicy } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { latch } from '../jobs/stage.js';
import { Diary, node, stateOf, useFlowStage } from './stage.js';

const dies = (job: Job) => {
  throw new Discard(`${job.name} is broken`);
};

describe.each([
  ['its own queue', 'q'],
  ['another queue', 'kids'],
])('the death of a child in %s', (_where, kids) => {
  const stage = useFlowStage();

  /** A parent in `q` over a child that dies, one that is done, and what more is given. */
  async function family(echo: EchoMq, policy: ParentPolicy | undefined, ...more: FlowNode[]) {
    const opts = policy === undefined ? undefined : { parentPolicy: policy };
    const added = await echo.flows.add(
      node('q', 'parent', [node(kids, 'bad', [], opts), node(kids, 'good'), ...more], { keepMs: 60_000 }),
    );
    return { id: added.id, bad: added.children[0]!.id, good: added.children[1]!.id, more: added.children.slice(2) };
  }

  const serve = (echo: EchoMq, diary: Diary, handlers: Record<string, (job: Job) => unknown> = {}) =>
    diary.serve(echo, [...new Set(['q', kids])], { bad: dies, ...handlers }, { concurrency: 10 });

  it('fails its parent by default, which names it, and lists it as what holds it (C098)', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    serve(echo, diary);
    const { id, bad, good } = await family(echo, undefined);
    await stateOf(echo, 'q', id, 'dead');
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'the good one to count' });
    expect((await echo.jobs.get('q', id))?.lastError).toBe(`child ${kids}|${bad}: bad is broken`);
    expect(await stage.control.hget(`emq:{q}:job:${id}`, 'died_of')).toBe('children');
    const report = { outstanding: 1, values: { [good]: 'good' }, ignored: {}, failed: { [bad]: 'bad is broken' } };
    expect(await echo.flows.children('q', id)).toEqual(report);
    expect(diary.count('parent')).toBe(0);
    await expect(echo.jobs.result('q', id)).rejects.toMatchObject({ code: 'ECHO_JOB_DEAD' });
  });

  it("is told, and so is its parent's, with the jobs and the reasons", async () => {
    const echo = await stage.connect();
    const told: DeadJob[] = [];
    for (const queue of new Set(['q', kids])) echo.consume(queue, {}, dies).on('dead', (job) => told.push(job));
    for (const queue of new Set(['q', kids])) {
      await until(() => stage.control.exists(`emq:{${queue}}:leader`), { what: `${queue} to be led` });
    }
    const added = await echo.flows.add(node('q', 'parent', [node(kids, 'bad')]));
    await until(() => told.length === 2, { what: 'both deaths' });
    const [bad, parent] = [...told].sort((a, b) => (a.name < b.name ? -1 : 1));
    expect(bad).toMatchObject({ queue: kids, name: 'bad', attempt: 1, reason: 'bad is broken' });
    const reason = `child ${kids}|${bad!.id}: bad is broken`;
    expect(parent).toMatchObject({ queue: 'q', id: added.id, name: 'parent', attempts: 0, attempt: 0, reason });
  });

  it('is ignored under `ignore`: the parent runs when all have settled, and is told', async () => {
    const echo = await stage.connect();
    const held = latch();
    const diary = new Diary();
    let report: unknown;
    serve(echo, diary, {
      slow: () => held.opened,
      parent: async (job) => {
        report = await job.children();
      },
    });
    const { id, bad, good, more } = await family(echo, 'ignore', node(kids, 'slow'));
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'two to have settled' });
    expect(diary.count('parent')).toBe(0);
    held.open();
    await echo.jobs.wait('q', id);
    const values = { [good]: 'good', [more[0]!.id]: undefined };
    expect(report).toEqual({ outstanding: 0, values, ignored: { [bad]: 'bad is broken' }, failed: {} });
    expect(diary.count('parent')).toBe(1);
  });

  it('lets its parent run at once under `continue`; what settles later is recorded, and moves nothing', async () => {
    const echo = await stage.connect();
    const [slow, parent] = [latch(), latch()];
    const diary = new Diary();
    serve(echo, diary, { slow: () => slow.opened, parent: () => parent.opened });
    const { id, bad, more } = await family(echo, 'continue', node(kids, 'slow'));
    await diary.began('parent');
    expect(await echo.flows.ignoredFailures('q', id)).toEqual({ [bad]: 'bad is broken' });
    slow.open();
    await until(async () => (await echo.flows.dependencies('q', id)) === 0, { what: 'the other' });
    expect(Object.keys(await echo.flows.childrenValues('q', id))).toContain(more[0]!.id);
    parent.open();
    await echo.jobs.wait('q', id);
    expect(diary.count('parent')).toBe(1);
  });

  it('is ignored by a parent that runs already, whatever its policy', async () => {
    const echo = await stage.connect();
    const [slow, parent] = [latch(), latch()];
    const diary = new Diary();
    const dying = () => slow.opened.then(() => Promise.reject(new Discard('too late')));
    serve(echo, diary, { late: dying, parent: () => parent.opened });
    const { id, more } = await family(echo, 'continue', node(kids, 'late'));
    await diary.began('parent');
    slow.open();
    await until(async () => more[0]!.id in (await echo.flows.ignoredFailures('q', id)), { what: 'the late death' });
    expect(await echo.flows.failures('q', id)).toEqual({});
    parent.open();
    await echo.jobs.wait('q', id);
  });

  it('holds its parent under `hold`, until the child is reprocessed and done', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    let broken = true;
    serve(echo, diary, { bad: (job) => (broken ? dies(job) : 'mended') });
    const { id, bad } = await family(echo, 'hold');
    await stateOf(echo, kids, bad, 'dead');
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'the good one to count' });
    expect((await echo.jobs.get('q', id))?.state).toBe('awaiting_children');
    expect(await echo.flows.children('q', id)).toMatchObject({ ignored: {}, failed: {} });
    broken = false;
    expect(await echo.jobs.reprocess(kids, bad)).toBe('ok');
    await echo.jobs.wait('q', id);
    expect(diary.count('parent')).toBe(1);
  });

  it.each(['removed', 'trimmed'] as const)('holds its parent under `hold`, until the child is %s', async (gone) => {
    const echo = await stage.connect();
    const diary = new Diary();
    serve(echo, diary, { parent: async (job) => (await job.children()).ignored });
    const { id, bad } = await family(echo, 'hold');
    await stateOf(echo, kids, bad, 'dead');
    if (gone === 'removed') expect(await echo.jobs.remove(kids, bad)).toBe('ok');
    else expect(await echo.jobs.trim(kids, { keepCount: 0 })).toBe(1);
    expect(await echo.jobs.wait('q', id)).toEqual({ [bad]: gone });
    expect(diary.count('parent')).toBe(1);
  });

  it('goes up as far as parents wait: each names the child it died of', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    serve(echo, diary);
    const tree = node('q', 'top', [node(kids, 'mid', [node('q', 'low', [node(kids, 'bad')]), node('q', 'fine')])]);
    const added = await echo.flows.add(tree);
    const mid = added.children[0]!;
    const low = mid.children[0]!;
    const bad = low.children[0]!;
    await stateOf(echo, 'q', added.id, 'dead');
    expect((await echo.jobs.get('q', low.id))?.lastError).toBe(`child ${kids}|${bad.id}: bad is broken`);
    expect((await echo.jobs.get(kids, mid.id))?.lastError).toBe(
      `child q|${low.id}: child ${kids}|${bad.id}: bad is broken`,
    );
    expect((await echo.jobs.get('q', added.id))?.lastError).toContain(`child ${kids}|${mid.id}: child q|${low.id}: `);
    expect(new Set(diary.names)).toEqual(new Set(['bad', 'fine']));
  });

  it('comes after its own attempts; a parent that fails tries again, and does not wait again (C106)', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const backoff = { type: 'fixed', delayMs: 1 } as const;
    const failing = () => Promise.reject(new Error('again'));
    const parent = async (job: Job) => {
      expect(Object.values((await job.children()).ignored)).toEqual([expect.stringContaining('again')]);
      throw new Error('the parent too');
    };
    diary.serve(echo, [...new Set(['q', kids])], { bad: failing, parent }, { attempts: 3, backoff });
    const { id } = await family(echo, 'ignore');
    await stateOf(echo, 'q', id, 'dead');
    expect(diary.count('bad')).toBe(3);
    expect(diary.count('parent')).toBe(3);
    expect(diary.jobs.filter(({ name }) => name === 'parent').map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(await stage.control.hget(`emq:{q}:job:${id}`, 'died_of')).toBe('self');
    expect((await echo.jobs.get('q', id))?.lastError).toContain('the parent too');
  });
});

describe('a child that goes before it has run', () => {
  const stage = useFlowStage();

  it.each(['remove', 'cancel'] as const)('counts by its policy: %s (C104)', async (how) => {
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(echo, ['q']);
    const opts = { keepMs: 60_000 };
    const failed = await echo.flows.add(node('q', 'fails', [node('kids', 'a'), node('kids', 'b')]));
    const ignoring = await echo.flows.add(
      node('q', 'goes on', [node('kids', 'c', [], { parentPolicy: 'ignore' })], opts),
    );
    await until(async () => (await echo.jobs.counts('kids')).pending === 3, { what: 'the children to land' });
    for (const [{ children }, answer] of [
      [failed, how === 'remove' ? 'ok' : 'removed'],
      [ignoring, how === 'remove' ? 'ok' : 'removed'],
    ] as const) {
      expect(await echo.jobs[how]('kids', children[0]!.id)).toBe(answer);
    }
    await stateOf(echo, 'q', failed.id, 'dead');
    const word = how === 'remove' ? 'removed' : 'cancelled';
    expect((await echo.jobs.get('q', failed.id))?.lastError).toBe(`child kids|${failed.children[0]!.id}: ${word}`);
    await echo.jobs.wait('q', ignoring.id);
    expect(diary.names).toEqual(['goes on']);
  });

  it('counts by its policy when its queue is obliterated (C104)', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(echo, ['q']);
    const kids = (policy: ParentPolicy) =>
      ['a', 'b', 'c'].map((name) => node('kids', name, [], { parentPolicy: policy }));
    const opts = { keepMs: 60_000 };
    const flows = await echo.flows.addMany(
      (['fail', 'ignore', 'continue', 'hold'] as const).map((policy) => node('q', policy, kids(policy), opts)),
    );
    await until(async () => (await echo.jobs.counts('kids')).pending === 12, { what: 'the children to land' });
    expect(await echo.jobs.obliterate('kids')).toBe(12);
    await stateOf(echo, 'q', flows[0]!.id, 'dead');
    await Promise.all(flows.slice(1).map(({ id }) => echo.jobs.wait('q', id)));
    expect(diary.names.sort()).toEqual(['continue', 'hold', 'ignore']);
    expect(await stage.control.keys('emq:{kids}:*')).toEqual(['emq:{kids}:relayed']);
    expect(await stage.control.pttl('emq:{kids}:relayed')).toBeGreaterThan(3_600_000);
  });

  it('while it runs is cancelled by its handler: that counts when the handler has ended', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const aborted = (job: Job) =>
      new Promise((_, reject) => {
        job.signal.addEventListener('abort', () => reject(job.signal.reason));
      });
    diary.serve(echo, ['q', 'kids'], { child: aborted });
    const { id, children } = await echo.flows.add(node('q', 'parent', [node('kids', 'child')]));
    await diary.began('child');
    expect(await echo.jobs.cancel('kids', children[0]!.id)).toBe('stopping');
    await stateOf(echo, 'q', id, 'dead');
    expect((await echo.jobs.get('q', id))?.lastError).toBe(`child kids|${children[0]!.id}: cancelled`);
  });
});
