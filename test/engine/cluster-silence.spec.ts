import { expect, it } from '@jest/globals';
import type { RedisProcess } from '../../scripts/server/redis-process.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { until } from '../support/until.js';
import { useCluster } from './cluster-stage.js';
import { fastClock } from './fast-clock.js';
import { Ledger } from './gates.js';
import { nodeOf, useProxiedCluster } from './proxied-cluster.js';
import { useRig } from './rig.js';

/** Names whose slots lie on different nodes of three. */
const QUEUES = ['q', 'mail', 'images'];

/** What a busy machine may add to times that are the sum of our own. */
const MARGIN_MS = 2_000;

/** Server-side ids of the connections of engines. */
async function commandConnections(node: RedisProcess): Promise<string[]> {
  const lines = String(await node.command('CLIENT', 'LIST')).split('\n');
  return lines.filter((line) => / name=echomq:commands /.test(line)).map((line) => /^id=(\d+)/.exec(line)![1]!);
}

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

  it('is given a new connection in time, and the others keep theirs', async () => {
    const { jobs } = await rig.connect({
      connection: proxied.connection,
      clock: fastClock(5),
      enqueueTimeoutMs: Number.POSITIVE_INFINITY,
    });
    for (const queue of QUEUES) await jobs.enqueue(queue, 'warm');
    const node = await nodeOf(stage, 'mail');
    const before = await commandConnections(node);
    expect(before).toHaveLength(1);
    await proxied.darken('q');
    const started = performance.now();
    let landed = false;
    const landing = jobs.enqueue('q', 'job').then((result) => {
      landed = true;
      return result;
    });
    await until(
      async () => {
        await jobs.counts('mail'); // the others answer
        return landed;
      },
      { what: 'the job to land' },
    );
    // Silence 5 s, a look every 2 s, a second look, on that clock.
    expect(performance.now() - started).toBeLessThan(8_000 / 5 + MARGIN_MS);
    expect(await landing).toMatchObject({ status: 'landed' });
    expect(rig.complaints.map(({ message }) => message)).toEqual([
      'the command connection has gone silent; a new one is made',
    ]);
    expect(await commandConnections(node)).toEqual(before);
    await expectInvariants(stage.client, 'q');
  });

  it('is not one that was asked only after a blocked event loop', async () => {
    const { jobs } = await rig.connect({ connection: proxied.connection, clock: fastClock(5) });
    for (const queue of QUEUES) await jobs.enqueue(queue, 'warm');
    const { id } = await jobs.enqueue('mail', 'nobody runs it');
    const proxy = await proxied.proxyOf('q');
    for (let block = 1; block <= 3; block++) {
      proxy.freeze('replies');
      const end = performance.now() + 6_500 / 5;
      while (performance.now() < end); // the watchdog's look is overdue, and follows what is asked now
      const counts = jobs.counts('q');
      // Longer than until its second look.
      await expect(jobs.wait('mail', id, { timeoutMs: 500 })).rejects.toMatchObject({ code: 'ECHO_TIMEOUT' });
      proxy.thaw('replies');
      expect(await counts).toMatchObject({ pending: 1 });
    }
    expect(rig.complaints).toEqual([]);
  });

  it('is not asked about queues of the others', async () => {
    const { jobs } = await rig.connect({ connection: proxied.connection });
    for (const queue of QUEUES) await jobs.enqueue(queue, 'warm');
    const silent = await nodeOf(stage, 'q');
    const others: string[] = [];
    for (let n = 0; others.length < 20; n++) if ((await nodeOf(stage, `n${n}`)) !== silent) others.push(`n${n}`);
    await proxied.darken('q');
    const started = performance.now();
    for (const queue of others) await jobs.enqueue(queue, 'job');
    expect(performance.now() - started).toBeLessThan(5_000); // the earliest moment at which its silence would be noticed
  });
});
