import type { Socket } from 'node:net';
import { beforeAll, expect, it, jest } from '@jest/globals';
import { type Cluster, Redis } from 'ioredis';
import { type EchoMqOptions, EchoWireError } from '../../lib/core.js';
import type { ClusterSet } from '../../scripts/server/cluster.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { until } from '../support/until.js';
import { useCluster } from './cluster-stage.js';
import { Gates, Ledger } from './gates.js';
import { useRig } from './rig.js';

/** Far more than a wake-up takes, and less than the beat of 3 s, with which a job would be found too. */
const PROMPT_MS = 2_000;

/** Names whose slots lie on different nodes of three. */
const QUEUES = ['q', 'mail', 'reports', 'a:b', 'images', 'audit'];

describeWithProcess('a cluster of three nodes', () => {
  const stage = useCluster();
  let set: ClusterSet;
  let client: Cluster;
  beforeAll(() => {
    ({ set, client } = stage);
  });
  const rig = useRig({ url: 'not used' });
  guardLeaks();

  const connect = (options: Partial<EchoMqOptions> = {}) =>
    rig.connect({
      connection: { cluster: set.nodes.map(({ host, port }) => ({ host, port })) },
      ...options,
    });

  const parked = (queue: string) =>
    until(() => client.zcard(`emq:{${queue}}:hungry`), { what: `the consumer of ${queue} to park` });

  it('holds queues on all of its nodes, or these tests would say little', async () => {
    const owners = await Promise.all(
      QUEUES.map(async (queue) => {
        const slot = Number(await set.nodes[0]!.command('CLUSTER', 'KEYSLOT', `emq:{${queue}}:pending`));
        return Math.floor((slot * 3) / 16_384);
      }),
    );
    expect(new Set(owners)).toEqual(new Set([0, 1, 2]));
  });

  it('fires repeating schedules on all of its nodes, one that is declared while the leader sleeps too', async () => {
    const [leader, other] = [await connect(), await connect()];
    const ran = new Map<string, Set<number>>(QUEUES.map((queue) => [queue, new Set()]));
    for (const queue of QUEUES) {
      leader.consume(queue, {}, (job) => void ran.get(queue)!.add(job.slot!.getTime()));
    }
    await Promise.all(QUEUES.map(parked));
    await Promise.all(QUEUES.map((queue) => other.jobs.schedule(queue, 'k', { everyMs: 100 }, 'tick')));
    await until(() => [...ran.values()].every(({ size }) => size >= 3), { what: 'three slots of each' });
    for (const queue of QUEUES) {
      expect(await other.schedules.remove(queue, 'k')).toBe(true);
      await until(async () => (await other.jobs.counts(queue)).active === 0, { what: 'its jobs to end' });
      await expectInvariants(client, queue);
    }
  });

  it.each(QUEUES)('does every operation on queue %s', async (queue) => {
    const { jobs } = await connect();
    const many = await jobs.enqueueMany(queue, [
      { name: 'a', opts: { priority: -1 } },
      { name: 'b' },
      { name: 'c' },
      { name: 'd' },
      { name: 'e' },
    ]);
    expect(many.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'landed'));
    const later = await jobs.enqueue(queue, 'later', undefined, { delayMs: 3_600_000 });
    const [a, b, c, d] = await jobs.claim(queue, { leaseMs: 60_000, count: 4 });
    expect([a, b, c, d].map((job) => job?.name)).toEqual(['a', 'b', 'c', 'd']);
    expect(a!.token).toMatch(/^1@[0-9a-f]{40}\./);
    expect(await jobs.extend(queue, a!.id, a!.token, { leaseMs: 60_000 })).toBe('ok');
    expect(await jobs.complete(queue, a!.id, a!.token, { keepMs: 60_000, result: 1 })).toBe('ok');
    expect(await jobs.retry(queue, b!.id, b!.token, { maxAttempts: 1, error: 'boom' })).toBe('dead');
    expect(await jobs.release(queue, c!.id, c!.token)).toBe('ok');
    expect(await jobs.cancel(queue, d!.id)).toBe('stopping');
    expect(await jobs.retry(queue, d!.id, d!.token, { maxAttempts: 3 })).toBe('dead');
    expect(await jobs.reprocess(queue, b!.id)).toBe('ok');
    expect(await jobs.reschedule(queue, later.id, { delayMs: 0 })).toBe('ok');
    expect(await jobs.remove(queue, later.id)).toBe('ok');
    expect(await jobs.cancel(queue, c!.id)).toBe('removed');
    expect(await jobs.trim(queue, { keepCount: 0 })).toBe(1);
    expect(await jobs.promote(queue)).toMatchObject({ moved: 0 });
    expect(await jobs.reap(queue)).toMatchObject({ requeued: 0, died: 0 });
    expect(await jobs.pause(queue)).toBe(true);
    expect(await jobs.isPaused(queue)).toBe(true);
    expect(await jobs.resume(queue)).toBe(true);
    expect((await jobs.get(queue, a!.id))?.result?.toString()).toBe('1');
    expect((await jobs.list(queue, 'pending')).jobs.map((job) => job.name)).toEqual(['b', 'e']);
    await expectInvariants(client, queue);
    expect(await jobs.obliterate(queue)).toBe(2);
    await expectInvariants(client, queue);
    const left = await Promise.all(set.nodes.map((node) => node.command('KEYS', `emq:{${queue}}:*`)));
    expect(left.flat()).toEqual([`emq:{${queue}}:version`].filter((key) => left.flat().includes(key)));
  });

  it('runs the jobs of queues on all nodes: at once when parked, delayed in time, retried', async () => {
    const echo = await connect();
    const producer = await connect();
    const ledgers = new Map(QUEUES.map((queue) => [queue, new Ledger()]));
    for (const queue of QUEUES) {
      echo.consume(queue, { backoff: { type: 'fixed', delayMs: 20 } }, (job) => {
        ledgers.get(queue)!.handler(job);
        if (job.name === 'fails once' && job.attempt === 1) throw new Error('once');
      });
    }
    for (const queue of QUEUES) await parked(queue);
    for (const queue of QUEUES) {
      const ledger = ledgers.get(queue)!;
      const started = performance.now();
      await producer.jobs.enqueue(queue, 'now');
      await ledger.ran(1);
      expect(performance.now() - started).toBeLessThan(PROMPT_MS); // woken, not found by the beat
      await producer.jobs.enqueue(queue, 'later', undefined, { delayMs: 200 });
      await ledger.ran(2);
      expect(performance.now() - started).toBeLessThan(200 + 2 * PROMPT_MS);
      await producer.jobs.enqueue(queue, 'fails once');
      await ledger.ran(4);
      await until(async () => (await producer.jobs.counts(queue)).metrics.completed === 3, { what: 'completions' });
      await expectInvariants(client, queue);
    }
    expect(rig.complaints).toEqual([]);
  });

  it('tells of events on all of its nodes, also after the subscriptions were killed', async () => {
    const [worker, other] = [await connect(), await connect({ onError: () => undefined })];
    const told = new Map<string, string[]>(QUEUES.map((queue) => [queue, []]));
    for (const queue of QUEUES) {
      worker.consume(queue, {}, (job) => void job.progress('begun'));
      await other.bus.listen(queue, ({ event }) => told.get(queue)!.push(event)).ready;
    }
    for (let round = 1; round <= 2; round++) {
      for (const queue of QUEUES) await worker.jobs.enqueue(queue, 'job');
      const complete = () => [...told.values()].every((events) => events.length === 4 * round);
      await until(complete, { what: `the events of round ${round}` });
      for (const events of told.values()) {
        expect(events.slice(-4)).toEqual(['landed', 'active', 'progress', 'completed']);
      }
      if (round === 2) break;
      const listening = async () => {
        const counts = await Promise.all(
          set.nodes.map((node) =>
            node.command('PUBSUB', 'SHARDNUMSUB', ...QUEUES.map((queue) => `emq:{${queue}}:events`)),
          ),
        );
        return counts.flat().filter((count) => Number(count) === 1).length;
      };
      for (const node of set.nodes) await node.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await until(async () => (await listening()) === QUEUES.length, { what: 'all subscriptions to be back' });
    }
    for (const queue of QUEUES) await expectInvariants(client, queue);
  });

  it('spreads a burst over two processes, and tells both of a pause and a cancel', async () => {
    const [one, two] = [await connect(), await connect()];
    const [first, second] = [new Gates(), new Gates()];
    one.consume('q', { concurrency: 5 }, first.handler);
    two.consume('q', { concurrency: 5 }, second.handler);
    await until(async () => (await client.zcard('emq:{q}:hungry')) === 2, { what: 'both to park' });
    await one.jobs.enqueueMany(
      'q',
      Array.from({ length: 10 }, () => ({ name: 'job' })),
    );
    await Promise.all([first.run(5), second.run(5)]);
    const [{ job, end }] = second.runs as [(typeof second.runs)[0]];
    const aborted = new Promise<unknown>((resolve) => {
      job.signal.addEventListener('abort', () => resolve(job.signal.reason));
    });
    expect(await one.jobs.cancel('q', job.id)).toBe('stopping');
    expect(await aborted).toMatchObject({ why: 'cancelled' });
    end();
    for (const run of [...first.runs, ...second.runs]) run.end();
    await until(async () => (await one.jobs.counts('q')).metrics.completed === 10, { what: 'all completions' });
    await expectInvariants(client, 'q');
  });

  it('stamps every queue it touches, and refuses the one with another brand', async () => {
    const echo = await connect();
    await client.set('emq:{mail}:version', 'echomq:4.0.0');
    await echo.jobs.enqueue('q', 'job');
    expect(await client.get('emq:{q}:version')).toBe('echomq:6.0.0');
    expect(await client.get('{emq}:version')).toBe('echomq:6.0.0');
    await expect(echo.jobs.enqueue('mail', 'job')).rejects.toBeInstanceOf(EchoWireError);
    expect((await client.keys('emq:{mail}:*')).filter((key) => !key.endsWith('version'))).toEqual([]);
    await expectInvariants(client, 'q');
  });

  it('asks a queue for its brand again after a reconnect: another cluster may be there now', async () => {
    const echo = await connect();
    await echo.jobs.enqueue('q', 'job');
    await client.set('emq:{q}:version', 'echomq:4.0.0');
    await echo.jobs.enqueue('q', 'job'); // asked once a connection
    for (const node of set.nodes) await node.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const outcomes: unknown[] = [];
    await until(
      async () => {
        outcomes.push(
          await echo.jobs.enqueue('q', 'job').then(
            () => 'landed',
            (error) => error,
          ),
        );
        return outcomes.at(-1) instanceof EchoWireError;
      },
      { what: 'the refusal' },
    );
    await client.set('emq:{q}:version', 'echomq:6.0.0');
    await echo.jobs.enqueue('q', 'job');
    await expectInvariants(client, 'q');
  });

  it('can be given as a client, which is neither used nor closed', async () => {
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: client });
    echo.consume('q', {}, ledger.handler);
    await echo.jobs.enqueue('q', 'job');
    await ledger.ran(1);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await echo.close();
    expect(client.status).toBe('ready');
    await expectInvariants(client, 'q');
  });

  it('serves on after connections to all nodes were killed', async () => {
    const echo = await connect();
    const ledgers = new Map(QUEUES.map((queue) => [queue, new Ledger()]));
    for (const queue of QUEUES) echo.consume(queue, {}, ledgers.get(queue)!.handler).on('error', () => {});
    for (let round = 1; round <= 3; round++) {
      for (const queue of QUEUES) await parked(queue);
      for (const node of set.nodes) {
        await node.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
        await node.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      }
      const landings = QUEUES.map((queue) => echo.jobs.enqueue(queue, `round ${round}`));
      await Promise.all(landings);
      for (const queue of QUEUES) await ledgers.get(queue)!.ran(round);
    }
    for (const queue of QUEUES) {
      await until(async () => (await echo.jobs.counts(queue)).metrics.completed === 3, { what: 'all completions' });
      await expectInvariants(client, queue);
    }
  });

  it.each([
    ['', false],
    [', served here', true],
  ])('says that a job has landed which the client library sent twice%s', async (_what, served) => {
    const echo = await connect();
    if (served) echo.consume('q', {}, () => undefined).on('error', () => {});
    for (let n = 1; n <= 2; n++) {
      if (served) await parked('q');
      await echo.jobs.enqueue('q', 'so that the scripts are known');
      if (served) await until(async () => !(await client.exists('emq:{q}:active')), { what: 'its completion' });
    }
    if (served) await parked('q');
    const { sendCommand } = Redis.prototype;
    let stream: Socket | undefined;
    const spy = jest.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, command, ...rest) {
      if (command.args.some((arg) => String(arg).includes('twice'))) {
        ({ stream } = this as unknown as { stream: Socket });
        stream.pause();
        spy.mockRestore();
      }
      return sendCommand.call(this, command, ...rest);
    });
    const landing = echo.jobs.enqueue('q', 'twice');
    const enqueued = () => client.hget('emq:{q}:metrics:enqueued', 'count');
    await until(async () => (await enqueued()) === '3', { what: 'the job to land' });
    stream!.destroy();
    expect(await landing).toMatchObject({ status: 'landed' });
    expect(await enqueued()).toBe('3');
  });

  it('is woken again, and not only by the beat, after its subscriptions on all nodes were killed', async () => {
    const echo = await connect();
    const producer = await connect();
    const ledgers = new Map(QUEUES.map((queue) => [queue, new Ledger()]));
    for (const queue of QUEUES) echo.consume(queue, {}, ledgers.get(queue)!.handler).on('error', () => {});
    for (let round = 1; round <= 3; round++) {
      for (const queue of QUEUES) await parked(queue);
      for (const node of set.nodes) await node.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      const started = performance.now();
      await Promise.all(QUEUES.map((queue) => producer.jobs.enqueue(queue, 'job')));
      for (const queue of QUEUES) await ledgers.get(queue)!.ran(round);
      expect(performance.now() - started).toBeLessThan(PROMPT_MS);
    }
    for (const queue of QUEUES) {
      await until(async () => (await echo.jobs.counts(queue)).metrics.completed === 3, { what: 'all completions' });
      await expectInvariants(client, queue);
    }
  });

  it('loses only the queues of a node that was killed: they fail retryably, and come back with it', async () => {
    const echo = await connect({ enqueueTimeoutMs: 500 });
    const ledgers = new Map(QUEUES.map((queue) => [queue, new Ledger()]));
    for (const queue of QUEUES) echo.consume(queue, {}, ledgers.get(queue)!.handler).on('error', () => {});
    for (const queue of QUEUES) await parked(queue);
    const slot = Number(await set.nodes[0]!.command('CLUSTER', 'KEYSLOT', 'emq:{q}:pending'));
    const node = set.nodes[Math.floor((slot * 3) / 16_384)]!;
    await node.kill();
    await expect(echo.jobs.enqueue('q', 'lost')).rejects.toMatchObject({ retryable: true });
    await node.restart();
    for (const queue of QUEUES) {
      await until(() => echo.jobs.enqueue(queue, 'after').catch(() => undefined), {
        what: `${queue} to take jobs`,
        timeoutMs: 15_000,
      });
      await until(() => ledgers.get(queue)!.jobs.length > 0, { what: `${queue} to run them` });
      await until(async () => (await echo.jobs.counts(queue)).active === 0, { what: 'completions' });
      await expectInvariants(client, queue);
    }
  });

  it('closes while its nodes are stopped', async () => {
    const echo = await connect();
    echo.consume('q', {}, () => {}).on('error', () => {});
    await parked('q');
    for (const node of set.nodes) node.pause();
    try {
      const started = performance.now();
      await echo.close();
      expect(performance.now() - started).toBeLessThan(10_000); // two limits of 2 s, and a busy machine
    } finally {
      for (const node of set.nodes) node.resume();
    }
    await until(
      () =>
        client.get('x').then(
          () => true,
          () => false,
        ),
      { what: 'the cluster to be well', timeoutMs: 20_000 },
    );
    await expectInvariants(client, 'q');
  });
});
