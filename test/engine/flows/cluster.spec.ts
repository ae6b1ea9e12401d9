import { afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Cluster } from 'ioredis';
import { Discard, type EchoMqOptions, type Job, WaitForChildren } from '../../../lib/core.js';
import { SECOND_LOOK_MS } from '../../../lib/engine/relay.js';
import type { ClusterSet } from '../../../scripts/server/cluster.js';
import { describeWithProcess } from '../../support/availability.js';
import { guardLeaks } from '../../support/leaks.js';
import { until } from '../../support/until.js';
import { endWorkers } from '../../support/worker-process.js';
import { useCluster } from '../cluster-stage.js';
import { useRig } from '../rig.js';
import { SkewedClock } from '../skewed-clock.js';
import { expectBalance } from './balance.js';
import { walkThroughKills } from './kill-walk.js';
import { Diary, node } from './stage.js';

/** One on each node of three. */
const QUEUES = ['leaf', 'trunk', 'top'];
const MINUTES = 60_000;
const kept = { keepMs: 600_000 };

describeWithProcess('flows over a cluster of three nodes, with parents and children on different ones,', () => {
  // A node that is away then takes only its own queues with it.
  const stage = useCluster({ 'cluster-require-full-coverage': 'no' });
  let set: ClusterSet;
  let client: Cluster;
  beforeAll(() => {
    ({ set, client } = stage);
  });
  afterEach(() => expectBalance(client, QUEUES));
  endWorkers();
  const rig = useRig({ url: 'not used' });
  guardLeaks();

  const connect = (options: Partial<EchoMqOptions> = {}) =>
    rig.connect({ connection: { cluster: set.nodes.map(({ host, port }) => ({ host, port })) }, ...options });

  const nodeOf = async (queue: string) => {
    const slot = Number(await set.nodes[0]!.command('CLUSTER', 'KEYSLOT', `emq:{${queue}}:pending`));
    return set.nodes[Math.floor((slot * 3) / 16_384)]!;
  };

  it('are what these tests are about: each queue lies on a node of its own', async () => {
    const owners = await Promise.all(QUEUES.map(nodeOf));
    expect(new Set(owners).size).toBe(3);
  });

  it('run from leaves to root; a death goes up over nodes, and its reprocessing brings all back', async () => {
    const echo = await connect();
    const diary = new Diary();
    let broken = true;
    const bad = () => {
      if (broken) throw new Discard('broken');
      return 'mended';
    };
    diary.serve(echo, QUEUES, { bad, root: async (job: Job) => Object.values((await job.children()).values) });
    const flow = (leaf: string) =>
      node('top', 'root', [node('trunk', 'mid', [node('leaf', leaf)]), node('leaf', 'x')], kept);
    const good = await echo.flows.add(flow('good'));
    expect(await echo.jobs.wait('top', good.id)).toEqual(['mid', 'x']);
    const { id, children } = await echo.flows.add(flow('bad'));
    await until(async () => (await echo.jobs.get('top', id))?.state === 'dead', { what: 'the root to die' });
    const [mid] = children;
    expect((await echo.jobs.get('top', id))?.lastError).toBe(
      `child trunk|${mid!.id}: child leaf|${mid!.children[0]!.id}: broken`,
    );
    broken = false;
    await echo.jobs.reprocess('leaf', mid!.children[0]!.id);
    await until(async () => (await echo.jobs.get('top', id))?.state === 'done', { what: 'the root to be done' });
    expect(await echo.jobs.result('top', id)).toEqual(['mid', 'x']);
    expect(diary.count('root')).toBe(2);
  });

  it('are removed with all their jobs, and read as a tree', async () => {
    const { flows, jobs } = await connect();
    const { id } = await flows.add(
      node('top', 'root', [node('trunk', 'mid', [node('leaf', 'a'), node('top', 'b')]), node('leaf', 'c')]),
    );
    await until(async () => (await jobs.counts('leaf')).pending === 2, { what: 'the tree to land' });
    const tree = await flows.tree('top', id);
    expect(tree.children.map(({ job }) => job?.name)).toEqual(['mid', 'c']);
    expect(tree.children[0]!.children.map(({ queue }) => queue)).toEqual(['leaf', 'top']);
    expect(await jobs.remove('top', id, { tree: true })).toBe('ok');
    for (const queue of QUEUES) {
      const { metrics } = await jobs.counts(queue);
      expect(metrics.removed).toBe(metrics.enqueued);
    }
  });

  it('grow while they run, and are waited for by a process that consumes nothing', async () => {
    const [echo, waiting] = [await connect(), await connect()];
    const diary = new Diary();
    const grower = async (job: Job) => {
      const values = Object.values((await job.children()).values);
      if (values.length > 0) return values.sort();
      await job.addChildren([node('leaf', 'one'), node('trunk', 'two', [node('leaf', 'three')]), node('top', 'four')]);
      throw new WaitForChildren();
    };
    diary.serve(echo, QUEUES, { grower });
    expect(await waiting.jobs.enqueueAndWait('top', 'grower', undefined)).toEqual(['four', 'one', 'two']);
    expect(diary.names).toHaveLength(6);
    expect(await waiting.jobs.enqueueAndWait('leaf', 'alone', undefined)).toBe('alone');
    await Promise.all(QUEUES.map((queue) => waiting.jobs.enqueueAndWait(queue, 'at once', undefined)));
    await expect(waiting.jobs.wait('top', waiting.jobs.mintId())).rejects.toMatchObject({ code: 'ECHO_JOB_REMOVED' });
  });

  it('land again what a node has lost since, by the second look', async () => {
    const clock = new SkewedClock();
    const echo = await connect({ clock });
    const { id } = await echo.flows.add(node('top', 'root', [node('leaf', 'a'), node('leaf', 'b')], kept));
    await until(async () => (await echo.jobs.counts('leaf')).pending === 2, { what: 'the children to land' });
    await (await nodeOf('leaf')).command('FLUSHALL');
    expect((await echo.jobs.counts('leaf')).pending).toBe(0);
    clock.skip(SECOND_LOOK_MS + 1);
    await until(async () => (await echo.jobs.counts('leaf')).pending === 2, { what: 'the children to land again' });
    const diary = new Diary();
    diary.serve(echo, QUEUES);
    await echo.jobs.wait('top', id);
    expect(diary.names.sort()).toEqual(['a', 'b', 'root']);
  });

  it('go on between the other nodes while one is away, and with it when it is back', async () => {
    const echo = await connect({ onError: () => {} });
    const diary = new Diary();
    const gone = await nodeOf('leaf');
    diary.serve(echo, ['top', 'trunk']);
    await echo.jobs.counts('leaf');
    await gone.kill();
    const blocked = await echo.flows.add(node('top', 'blocked', [node('leaf', 'leaf')], kept));
    const fine = await echo.flows.add(node('top', 'fine', [node('trunk', 'mid')], kept));
    await echo.jobs.wait('top', fine.id, { timeoutMs: 20_000 });
    await gone.restart();
    diary.serve(echo, ['leaf']);
    await echo.jobs.wait('top', blocked.id, { timeoutMs: 20_000 });
    expect(diary.names.sort()).toEqual(['blocked', 'fine', 'leaf', 'mid']);
    const back = () =>
      client.exists('emq:{leaf}:relayed').then(
        () => true,
        () => false,
      );
    await until(back, { what: 'the cluster client to be well' });
  }, 600_000);

  it(
    'run their root once, at whatever point between a leaf and the root a worker is killed',
    async () => {
      const echo = await connect();
      const diary = new Diary();
      diary.serve(echo, ['top']);
      const leaf = { queue: 'leaf', name: 'leaf', data: { hold: true } };
      const points = await walkThroughKills(
        { nodes: set.nodes, cluster: true, client, echo },
        {
          queues: ['leaf', 'trunk'],
          all: QUEUES,
          flow: node('top', 'root', [node('trunk', 'mid', [leaf])]),
          ended: async () => (await echo.jobs.counts('top')).metrics.completed,
        },
      );
      expect(points).toBeGreaterThan(8);
      expect(diary.names).toEqual(Array.from({ length: points + 1 }, () => 'root'));
    },
    15 * MINUTES,
  );
});
