import { expect, it } from '@jest/globals';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { until } from '../support/until.js';
import { useCluster } from './cluster-stage.js';
import { fastClock } from './fast-clock.js';
import { Ledger } from './gates.js';
import { useProxiedCluster } from './proxied-cluster.js';
import { useRig } from './rig.js';

/** Names whose slots lie on different nodes of three. */
const QUEUES = ['q', 'mail', 'reports'];

describeWithProcess('a node of a cluster that has gone silent', () => {
  const stage = useCluster();
  const rig = useRig({ url: 'not used' });
  const proxied = useProxiedCluster(stage);
  guardLeaks();

  it('keeps nobody from serving the queues on the others', async () => {
    const { client } = stage;
    const echo = await rig.connect({ connection: proxied.connection, clock: fastClock(5) });
    const producer = await rig.connect({ connection: proxied.direct });
    const ledger = new Ledger();
    for (const queue of QUEUES) echo.consume(queue, {}, ledger.handler).on('error', () => {});
    for (const queue of QUEUES) {
      await until(() => client.exists(`emq:{${queue}}:leader`), { what: `a leader of ${queue}` });
      await until(() => client.zcard(`emq:{${queue}}:hungry`), { what: `the consumer of ${queue} to park` });
    }
    const proxy = await proxied.proxyOf('q');
    const beat = proxy.request('emq:{q}:leader');
    proxy.freeze('replies');
    await beat;
    for (let round = 1; round <= 3; round++) {
      await until(() => client.zcard('emq:{mail}:hungry'), { what: 'the consumer to park' });
      await client.del('emq:{mail}:hungry'); // so that only a beat finds the job
      await producer.jobs.enqueue('mail', 'job');
      const ran = async () => {
        await echo.jobs.counts('mail'); // the others answer
        return ledger.jobs.length === round;
      };
      await until(ran, { what: 'the job to run' });
    }
    proxy.thaw('replies');
    await until(async () => (await client.hget('emq:{mail}:metrics:completed', 'count')) === '3', {
      what: 'completions',
    });
    await expectInvariants(client, 'mail');
    expect(ledger.jobs).toHaveLength(3);
  });
});
