import { expect, it } from '@jest/globals';
import { flowNode } from '../../lib/core.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { until } from '../support/until.js';
import { useCluster } from './cluster-stage.js';
import { Gates } from './gates.js';
import { clusterHashOf } from './hashes.js';
import { useProxiedCluster } from './proxied-cluster.js';
import { useRig } from './rig.js';

/** Each script is called once before its reply is lost: the server then knows its hash, by which the proxy knows the call. */
describeWithProcess(
  'when a node of a cluster did it and the answer was lost, the client library sends it again',
  () => {
    const stage = useCluster();
    const rig = useRig({ url: 'not used' });
    const proxied = useProxiedCluster(stage);
    guardLeaks();

    const connect = () => rig.connect({ connection: proxied.connection });

    it('a completion is reported as one', async () => {
      const gates = new Gates();
      const echo = await connect();
      const events: string[] = [];
      echo
        .consume('q', {}, gates.handler)
        .on('completed', (job) => events.push(`completed ${job.name}`))
        .on('lease-lost', (job) => events.push(`lost ${job.name}`))
        .on('error', () => {});
      await echo.jobs.enqueue('q', 'warm');
      (await gates.run(1)).end();
      await until(() => events.length === 1, { what: 'the first completion' });
      await echo.jobs.enqueue('q', 'job');
      const run = await gates.run(2);
      const lost = (await proxied.proxyOf('q')).passAndDropReply(clusterHashOf('complete'));
      run.end();
      await lost;
      await until(() => events.length === 2, { what: 'the second completion' });
      expect(events).toEqual(['completed warm', 'completed job']);
      await expectInvariants(stage.client, 'q');
    });

    it('a job is removed: the answer is ok; to whoever comes later it is gone', async () => {
      const { jobs } = await connect();
      const { id } = await jobs.enqueue('q', 'job');
      expect(await jobs.remove('q', jobs.mintId())).toBe('gone');
      const lost = (await proxied.proxyOf('q')).passAndDropReply(clusterHashOf('remove'));
      expect(await jobs.remove('q', id)).toBe('ok');
      await lost;
      expect(await jobs.remove('q', id)).toBe('gone');
      await expectInvariants(stage.client, 'q');
    });

    it('a pause has changed something, and says so', async () => {
      const { jobs } = await connect();
      expect([await jobs.pause('q'), await jobs.resume('q')]).toEqual([true, true]);
      const lost = (await proxied.proxyOf('q')).passAndDropReply(clusterHashOf('pause'));
      expect(await jobs.pause('q')).toBe(true);
      await lost;
      expect(await jobs.pause('q')).toBe(false);
      await expectInvariants(stage.client, 'q');
    });

    it('a flow has landed', async () => {
      const { flows } = await connect();
      const tree = () => flowNode('q', 'parent', undefined, { children: [flowNode('q', 'child', undefined)] });
      await flows.add(tree());
      const lost = (await proxied.proxyOf('q')).passAndDropReply(clusterHashOf('land'));
      expect(await flows.add(tree())).toMatchObject({ status: 'landed' });
      await lost;
      await expectInvariants(stage.client, 'q');
    });
  },
);
