import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { freePort } from '../../scripts/server/free-port.js';
import { RedisProcess } from '../../scripts/server/redis-process.js';
import { startReplica } from '../../scripts/server/replica.js';
import { type SentinelSet, startSentinel } from '../../scripts/server/sentinel.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { census, expectNoLeaks, guardLeaks } from '../support/leaks.js';
import { closeAll } from '../support/server.js';
import { until } from '../support/until.js';
import { fastClock } from './fast-clock.js';
import { Gates, Ledger } from './gates.js';
import { useRig } from './rig.js';
import { Switchboard } from './switchboard.js';

/** Far more than a wake-up takes, and less than the beat of 3 s, with which a job would be found too. */
const PROMPT_MS = 2_000;

/** A plain client of one server, closed after the test. */
function useClients(): (server: { host: string; port: number }) => Redis {
  const open: Redis[] = [];
  afterEach(() => closeAll(open));
  return ({ host, port }) => {
    const client = new Redis({ host, port, disconnectTimeout: 50 });
    client.on('error', () => {});
    open.push(client);
    return client;
  };
}

describeWithProcess('a primary that is demoted without closing a socket', () => {
  let primary: RedisProcess;
  let replica: RedisProcess;
  let board: Switchboard;
  beforeEach(async () => {
    primary = await RedisProcess.start();
    replica = await startReplica(primary);
    board = await Switchboard.listen(primary);
  });
  const rig = useRig({
    get url() {
      return board.url;
    },
  });
  const clientOf = useClients();
  afterEach(async () => {
    await board.close();
    await Promise.all([primary.stop(), replica.stop()]);
  });
  guardLeaks();

  const switchOver = async () => {
    await replica.command('REPLICAOF', 'NO', 'ONE');
    // A replica of nobody: nothing that is published on the new primary comes through it.
    await primary.command('REPLICAOF', '127.0.0.1', await freePort());
    board.set(replica);
  };

  it('makes enqueue wait or fail with a retryable error, quietly; nothing that was promised is lost', async () => {
    const ledger = new Ledger();
    const echo = await rig.connect({ enqueueTimeoutMs: 500 });
    echo.consume('q', { concurrency: 10 }, ledger.handler).on('error', (error) => rig.complaints.push(error));
    await echo.jobs.enqueue('q', 'before');
    await ledger.ran(1);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await primary.command('REPLICAOF', replica.host, replica.port); // both are replicas now
    await replica.command('REPLICAOF', primary.host, primary.port);
    const promised: string[] = [];
    const started = performance.now();
    rig.complaints.length = 0;
    while (performance.now() - started < 3_000) {
      const error = await echo.jobs.enqueue('q', 'job').then(
        ({ id }) => void promised.push(id),
        (reason: unknown) => reason,
      );
      if (error) expect(error).toMatchObject({ retryable: true });
    }
    expect(promised).toEqual([]);
    expect(rig.complaints.length / 3).toBeLessThan(20);
    for (const complaint of rig.complaints) expect(complaint).toMatchObject({ retryable: true });
    await replica.command('REPLICAOF', 'NO', 'ONE');
    board.set(replica);
    const { id } = await until(() => echo.jobs.enqueue('q', 'after').catch(() => undefined), { what: 'a new primary' });
    await until(() => ledger.ids.includes(id), { what: 'the job to run' });
    await until(async () => (await echo.jobs.counts('q')).active === 0, { what: 'its completion' });
    await expectInvariants(clientOf(replica), 'q');
  });

  it('is left by every connection: afterwards an idle consumer is woken promptly on the new one', async () => {
    const ledger = new Ledger();
    const echo = await rig.connect();
    const client = clientOf(replica);
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    await until(() => client.zcard('emq:{q}:hungry'), { what: 'the consumer to park' });
    await switchOver();
    const { id } = await echo.jobs.enqueue('q', 'first'); // meets READONLY, and lands on the new primary
    await ledger.ran(1);
    expect(ledger.ids).toEqual([id]);
    const direct = await rig.connect({ connection: `redis://${replica.host}:${replica.port}` });
    for (let round = 2; round <= 6; round++) {
      await until(() => client.zcard('emq:{q}:hungry'), { what: 'the consumer to park' });
      const started = performance.now();
      await direct.jobs.enqueue('q', 'job');
      await ledger.ran(round);
      expect(performance.now() - started).toBeLessThan(PROMPT_MS);
    }
    await until(async () => (await direct.jobs.counts('q')).metrics.completed === 6, { what: 'all completions' });
    expect(await primary.command('CLIENT', 'LIST')).not.toContain('name=echomq:');
    await expectInvariants(client, 'q');
  });

  it('lets a running job be settled on the new primary', async () => {
    const gates = new Gates();
    const echo = await rig.connect();
    const completed: string[] = [];
    echo
      .consume('q', {}, gates.handler)
      .on('completed', (job) => completed.push(job.id))
      .on('error', () => {});
    const { id } = await echo.jobs.enqueue('q', 'job');
    const run = await gates.run(1);
    const client = clientOf(replica);
    await until(() => client.zscore('emq:{q}:active', id), { what: 'the claim to be replicated' });
    await switchOver();
    run.end();
    await until(() => completed.length === 1, { what: 'the completion' });
    expect(completed).toEqual([id]);
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 0, pending: 0, metrics: { completed: 1 } });
    await expectInvariants(client, 'q');
  });
});

describeWithProcess('a failover by Sentinel', () => {
  let set: SentinelSet;
  beforeEach(async () => {
    set = await startSentinel();
  });
  const rig = useRig({ url: 'not used' });
  const clientOf = useClients();
  afterEach(() => set.stop());
  guardLeaks();

  const connection = () => ({
    sentinels: [{ host: set.sentinel.host, port: set.sentinel.port }],
    name: set.name,
  });

  it('after the primary was killed is followed by producer and consumer', async () => {
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: connection(), enqueueTimeoutMs: Number.POSITIVE_INFINITY });
    echo.consume('q', { concurrency: 5 }, ledger.handler).on('error', () => {});
    await echo.jobs.enqueueMany(
      'q',
      Array.from({ length: 20 }, () => ({ name: 'before' })),
    );
    await ledger.ran(20);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 20, { what: 'the first completions' });
    const client = clientOf(set.replica);
    await until(async () => (await client.hget('emq:{q}:metrics:completed', 'count')) === '20', {
      what: 'replication',
    });
    await set.primary.kill();
    const after = await Promise.all(Array.from({ length: 20 }, () => echo.jobs.enqueue('q', 'after')));
    await ledger.ran(40, 10_000);
    expect(new Set(ledger.ids.slice(20))).toEqual(new Set(after.map(({ id }) => id)));
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 40, { what: 'all completions' });
    await expectInvariants(client, 'q');
  });

  it('that cannot be asked for keeps nobody from closing', async () => {
    const before = census();
    const sentinels = [{ host: '127.0.0.1', port: await freePort() }];
    const echo = rig.create({ connection: { sentinels, name: set.name } });
    const opening = echo.open();
    const started = performance.now();
    await Promise.all([expect(opening).rejects.toMatchObject({ code: 'ECHO_STATE' }), echo.close()]);
    expect(performance.now() - started).toBeLessThan(5_000); // not the 10 s in which it may connect
    const client = clientOf(set.primary);
    await expectInvariants(client, 'q');
    await closeAll([client]);
    await expectNoLeaks(before, 10_000); // the library waits 2 s for the end of a Sentinel connection that never was
  });

  it('with a hundred running jobs leaves none active: each ends once', async () => {
    const gates = new Gates();
    const ended: string[] = [];
    const echo = await rig.connect({ connection: connection(), clock: fastClock(5) });
    echo
      .consume('q', { concurrency: 200, leaseMs: 2_000, attempts: 3 }, gates.handler)
      .on('completed', (job) => ended.push(job.id))
      .on('error', () => {});
    const landed = await echo.jobs.enqueueMany(
      'q',
      Array.from({ length: 100 }, () => ({ name: 'job' })),
    );
    await gates.run(100);
    const client = clientOf(set.replica);
    await until(async () => (await client.zcard('emq:{q}:active')) === 100, { what: 'the claims to be replicated' });
    set.primary.pause();
    await until(async () => (await set.primaryPort()) === set.replica.port, { what: 'a failover', timeoutMs: 10_000 });
    await until(() => gates.runs.filter((run) => !run.job.signal.aborted).length >= 100 && gates.runs.length >= 200, {
      what: 'all to run again',
      timeoutMs: 10_000,
    });
    for (const run of gates.runs) run.end();
    await until(async () => (await client.zcard('emq:{q}:active')) === 0, { what: 'all to be settled' });
    await until(() => ended.length >= 100, { what: 'all completions to be told' });
    expect(new Set(ended)).toEqual(new Set(landed.map(({ id }) => id)));
    expect(ended).toHaveLength(100);
    expect(await echo.jobs.counts('q')).toMatchObject({
      pending: 0,
      dead: 0,
      scheduled: 0,
      metrics: { completed: 100 },
    });
    await expectInvariants(client, 'q');
    set.primary.resume();
  });
});
