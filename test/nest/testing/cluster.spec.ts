import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Job, OnJob, Processor } from '../../../lib/index.js';
import { type ClusterSet, startCluster } from '../../../scripts/server/cluster.js';
import { describeWithProcess } from '../../support/availability.js';
import { guardLeaks } from '../../support/leaks.js';
import { useKits } from './kits.js';

/** Names whose slots lie on different nodes of three. */
const QUEUES = ['q', 'mail', 'reports', 'a:b', 'images', 'audit'];

@Processor('mail')
class Mail {
  @OnJob()
  mail({ data }: Job): unknown {
    return data;
  }
}

describeWithProcess('the kit on a cluster', () => {
  let set: ClusterSet;
  beforeAll(async () => {
    set = await startCluster();
  });
  afterAll(async () => {
    await set.stop();
  });
  const kits = useKits({ url: 'not used' });
  guardLeaks();

  const keysOnNodes = () => Promise.all(set.nodes.map(async (node) => Number(await node.command('DBSIZE'))));

  it('does what it does elsewhere, and removes its keys from every node', async () => {
    const connection = { cluster: set.nodes.map(({ host, port }) => ({ host, port })) };
    const { kit, jobs, module } = await kits.boot({ providers: [Mail] }, { connection });
    for (const queue of QUEUES) await jobs.enqueue(queue, 'x', queue, { delayMs: 60_000 });
    expect((await keysOnNodes()).every((keys) => keys > 0)).toBe(true);
    expect(await kit.performJob(Mail, 'x', 1)).toBe(1);
    expect(await kit.advance(60_000)).toBe(QUEUES.length);
    expect(await kit.drain()).toMatchObject({ completed: 1 });
    await kit.assertEnqueued({ queue: 'a:b', data: 'a:b' });
    await module.close();
    expect(await keysOnNodes()).toEqual([0, 0, 0]);
  });
});
