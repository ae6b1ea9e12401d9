import { describe, expect, it } from '@jest/globals';
import type { EchoMq, FlowNode, Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { hashOf } from '../hashes.js';
import { failure, latch, numbers, queuesOn } from '../jobs/stage.js';
import { Diary, node, useFlowStage } from './stage.js';

const QUEUES = ['q', 'kids', 'other'];

/** Over three queues, four deep. */
const tree = (): FlowNode =>
  node('q', 'root', [
    node('q', 'a', [node('kids', 'a.a', [node('other', 'a.a.a'), node('q', 'a.a.b')]), node('q', 'a.b')]),
    node('kids', 'b', [node('kids', 'b.a'), node('other', 'b.b', [node('q', 'b.b.a')])]),
    node('other', 'c'),
  ]);

async function landed(echo: EchoMq): Promise<void> {
  const total = async () => {
    const counts = await Promise.all(QUEUES.map((queue) => echo.jobs.counts(queue)));
    return counts.reduce((sum, { metrics }) => sum + metrics.enqueued, 0);
  };
  await until(async () => (await total()) === 11, { what: 'the tree to land' });
}

describe('a tree that is removed', () => {
  const stage = useFlowStage();

  const rows = () => stage.control.keys('emq:*:job:*');

  it('goes whole, over all its queues, and leaves nothing', async () => {
    const echo = await stage.connect();
    const { id } = await echo.flows.add(tree());
    await landed(echo);
    expect(await echo.jobs.remove('q', id)).toBe('wrong_state');
    expect(await echo.jobs.remove('q', id, { tree: true })).toBe('ok');
    expect(await rows()).toEqual([]);
    expect(await echo.jobs.remove('q', id, { tree: true })).toBe('gone');
    for (const queue of QUEUES) {
      const { metrics } = await echo.jobs.counts(queue);
      expect(metrics).toMatchObject({ removed: metrics.enqueued, failed: 0 });
    }
  });

  it('goes with children that had not landed yet: nothing lands behind it', async () => {
    const proxy = await stage.proxy();
    const far = await stage.connect({ connection: proxy.url, onError: () => {} });
    const held = proxy.hold(hashOf('apply'));
    const { id } = await far.flows.add(tree());
    const { release } = await held;
    const echo = await stage.connect();
    expect((await echo.jobs.counts('kids')).metrics.enqueued).toBe(0);
    expect(await echo.jobs.remove('q', id, { tree: true })).toBe('ok');
    release();
    await far.close();
    expect(await rows()).toEqual([]);
    expect((await echo.jobs.counts('kids')).metrics).toMatchObject({ enqueued: 3, removed: 3 });
  });

  it('cuts loose what is running, which ends as any job; nobody dies of it, and the root never runs', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const [end, fail] = [latch(), latch()];
    const handlers = {
      c: () => end.opened,
      'a.a.b': () => fail.opened.then(() => Promise.reject(new Error('too late'))),
    };
    diary.serve(echo, ['q', 'other'], handlers, { attempts: 1, concurrency: 10 });
    await echo.jobs.pause('kids');
    const { id } = await echo.flows.add(tree());
    await landed(echo);
    await Promise.all(['c', 'a.a.b'].map((name) => diary.began(name)));
    await until(async () => (await echo.jobs.counts('q')).active === 1, { what: 'the others to end' });
    expect(await echo.jobs.remove('q', id, { tree: true })).toBe('ok');
    end.open();
    fail.open();
    await until(async () => (await echo.jobs.counts('q')).dead === 1, { what: 'the late death' });
    await until(async () => (await echo.jobs.counts('other')).active === 0, { what: 'the late success' });
    expect(diary.names).not.toContain('root');
    expect(await rows()).toHaveLength(1);
    expect(await echo.jobs.counts('kids')).toMatchObject({ awaitingChildren: 0, pending: 0, dead: 0 });
  });

  it('counts at the parent of its root as any child that is removed', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(echo, ['q']);
    const sub = node('kids', 'sub', [node('other', 'leaf')], { parentPolicy: 'ignore' });
    const { id, children } = await echo.flows.add(node('q', 'root', [sub], { keepMs: 60_000 }));
    await until(async () => (await echo.jobs.counts('other')).pending === 1, { what: 'the tree to land' });
    expect(await echo.jobs.remove('kids', children[0]!.id, { tree: true })).toBe('ok');
    await echo.jobs.wait('q', id);
    expect(diary.names).toEqual(['root']);
  });

  it('goes also when its root is dead, or done and kept', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const bad = () => Promise.reject(new Error('bad'));
    diary.serve(echo, ['q'], { bad }, { attempts: 1, keepMs: 60_000 });
    const { id } = await echo.flows.add(node('q', 'dead', [node('q', 'bad'), node('kids', 'left')]));
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'it to die' });
    await until(async () => (await echo.jobs.counts('kids')).pending === 1, { what: 'its other child to land' });
    expect(await echo.jobs.remove('q', id, { tree: true })).toBe('ok');
    expect(await rows()).toEqual([]);
    const kept = await echo.flows.add(node('q', 'kept', [node('q', 'child')]));
    await echo.jobs.wait('q', kept.id);
    expect(await echo.jobs.remove('q', kept.id, { tree: true })).toBe('ok');
    expect(await rows()).toEqual([`emq:{q}:job:${kept.children[0]!.id}`]);
  });

  it('is not taken while its root runs, and a job without children goes with or without `tree`', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const end = latch();
    diary.serve(echo, ['q'], { root: () => end.opened });
    const { id } = await echo.flows.add(node('q', 'root', [node('q', 'child')]));
    await diary.began('root');
    expect(await echo.jobs.remove('q', id, { tree: true })).toBe('wrong_state');
    end.open();
    const plain = await echo.jobs.enqueue('kids', 'plain');
    expect(await echo.jobs.remove('kids', plain.id, { tree: true })).toBe('ok');
    const wrong = { tree: 1 } as unknown as { tree: boolean };
    expect(await failure(echo.jobs.remove('q', id, wrong))).toMatchObject({ code: 'EMQARG' });
    expect(await failure(echo.jobs.cancel('q', id, { trees: true } as object))).toMatchObject({ code: 'EMQARG' });
  });

  it('goes whole in the end when its remover was cut off at any point, and it is removed again', async () => {
    const echo = await stage.connect();
    const steps = hashOf('remove');
    for (let n = 1; ; n++) {
      const { id } = await echo.flows.add(tree());
      const all = async () => (await rows()).filter((key) => /JOB\w{11}$/.test(key)).length === 11;
      await until(all, { what: 'the tree to land' });
      const proxy = await stage.proxy();
      const remover = await stage.connect({ connection: proxy.url, onError: () => {}, requestTimeoutMs: 60_000 });
      let sent = 0;
      proxy.onRequest((command) => {
        if (!command.includes(steps) || ++sent < n) return undefined;
        proxy.refuse();
        return 'cut';
      });
      let ended = false;
      const removing = remover.jobs.remove('q', id, { tree: true }).then(
        () => {
          ended = true;
        },
        () => undefined,
      );
      await until(() => ended || sent >= n, { what: `step ${n}` });
      await remover.close();
      await removing;
      const again = await echo.jobs.remove('q', id, { tree: true });
      expect([n, again]).toEqual([n, ended ? 'gone' : 'ok']);
      expect([n, await rows()]).toEqual([n, []]);
      if (ended) {
        expect(n).toBeGreaterThan(15);
        return;
      }
    }
  });

  it('may have thousands of jobs', async () => {
    const echo = await stage.connect();
    const { id } = await echo.flows.add(
      node('q', 'root', [
        ...numbers(1_500).map((i) => node('q', `${i}`)),
        ...numbers(1_500).map((i) => node('kids', `${i}`)),
      ]),
    );
    expect(await echo.jobs.remove('q', id, { tree: true })).toBe('ok');
    expect(await rows()).toEqual([]);
  });
});

describe('a tree that is cancelled', () => {
  const stage = useFlowStage();

  it('goes as far as it has not begun; what runs is asked to stop, and its parents go all the same', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const aborted = (job: Job) =>
      new Promise((_, reject) => {
        job.signal.addEventListener('abort', () => reject(job.signal.reason));
      });
    diary.serve(echo, ['other'], { c: aborted, 'a.a.a': aborted }, { concurrency: 5 });
    const { id } = await echo.flows.add(tree());
    await Promise.all(['c', 'a.a.a'].map((name) => diary.began(name)));
    await landed(echo);
    expect(await echo.jobs.cancel('q', id)).toBe('wrong_state');
    expect(await echo.jobs.cancel('q', id, { tree: true })).toBe('removed');
    await until(async () => (await echo.jobs.counts('other')).dead === 2, { what: 'the two to stop' });
    for (const { queue } of await queuesOn(stage.control)) {
      expect(await echo.jobs.counts(queue)).toMatchObject({ pending: 0, awaitingChildren: 0, active: 0, scheduled: 0 });
    }
    expect(await echo.jobs.cancel('q', id, { tree: true })).toBe('gone');
  });

  it('counts at the parent of its root as a child that was cancelled', async () => {
    const echo = await stage.connect();
    const sub = node('kids', 'sub', [node('kids', 'leaf')]);
    const { id, children } = await echo.flows.add(node('q', 'root', [sub]));
    await until(async () => (await echo.jobs.counts('kids')).pending === 1, { what: 'the tree to land' });
    expect(await echo.jobs.cancel('kids', children[0]!.id, { tree: true })).toBe('removed');
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'it to die' });
    expect((await echo.jobs.get('q', id))?.lastError).toBe(`child kids|${children[0]!.id}: cancelled`);
  });
});
