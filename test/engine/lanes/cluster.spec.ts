import { beforeAll, expect, it } from '@jest/globals';
import type { Cluster } from 'ioredis';
import { type EchoMqOptions, type Job, RateLimited } from '../../../lib/core.js';
import type { ClusterSet } from '../../../scripts/server/cluster.js';
import { describeWithProcess } from '../../support/availability.js';
import { expectInvariants } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { until } from '../../support/until.js';
import { endWorkers, spawnWorker } from '../../support/worker-process.js';
import { useCluster } from '../cluster-stage.js';
import { numbers } from '../jobs/stage.js';
import { useRig } from '../rig.js';

/** One on each node of three. */
const QUEUES = ['leaf', 'trunk', 'top'];

describeWithProcess('lanes, limits, keys and events of queues on the three nodes of a cluster', () => {
  const stage = useCluster();
  let set: ClusterSet;
  let client: Cluster;
  beforeAll(() => {
    ({ set, client } = stage);
  });
  endWorkers();
  const rig = useRig({ url: 'not used' });
  guardLeaks();

  const source = () => ({ cluster: set.nodes.map(({ host, port }) => ({ host, port })) });
  const connect = (options: Partial<EchoMqOptions> = {}) => rig.connect({ connection: source(), ...options });
  const onAll = <T>(act: (queue: string) => Promise<T>) => Promise.all(QUEUES.map(act));
  const hungry = (count: number) =>
    onAll((queue) =>
      until(async () => (await client.zcard(`emq:{${queue}}:hungry`)) === count, { what: `consumers of ${queue}` }),
    );
  const ask = async (queue: string, script: string) => Number(await client.eval(script, 1, `emq:{${queue}}:`));
  const RUNNING = "return redis.call('ZCARD', KEYS[1] .. 'active')";
  const IN_LANE = `
local n = 0
for _, lane in ipairs(redis.call('HVALS', KEYS[1] .. 'lanes:active')) do if lane == 'A' then n = n + 1 end end
return n`;

  it('are what these tests are about: each queue lies on a node of its own', async () => {
    const slots = await onAll((queue) => set.nodes[0]!.command('CLUSTER', 'KEYSLOT', `emq:{${queue}}:pending`));
    expect(new Set(slots.map((slot) => Math.floor((Number(slot) * 3) / 16_384))).size).toBe(3);
  });

  it('keep what they promise over processes, one of which is killed', async () => {
    const { jobs, lanes } = await connect();
    await onAll((queue) => lanes.configure(queue, 'A', { cap: 1, weight: 4 }));
    await onAll((queue) => lanes.configure(queue, ['g', 'B'], { rate: { limit: 100, perMs: 1000 } }));
    await onAll((queue) => jobs.limit(queue, { concurrency: 4 }));
    const args = [source(), QUEUES, { concurrency: 5, leaseMs: 1000 }].map((arg) => JSON.stringify(arg));
    const crew = numbers(3).map(() => spawnWorker('test/engine/workers/lane-worker.ts', { args }));
    await Promise.all(crew.map((worker) => worker.next('ready', 60_000)));
    await hungry(3);
    const hanging = await jobs.enqueue('leaf', 'job', { deeds: ['hang'] }, { lane: 'A' });
    const items = numbers(60).map((n) => ({
      name: 'job',
      data: { ms: n % 4, deeds: n % 5 === 0 ? ['fail'] : n % 7 === 0 ? ['snooze'] : [] },
      opts: { lane: [null, 'A', 'C', ['g', 'B'] as const, ['g', 'D'] as const][n % 5] ?? null },
    }));
    await onAll((queue) => jobs.enqueueMany(queue, items));
    const pid = await until(() => client.hget(`emq:{leaf}:job:${hanging.id}`, 'progress'), { what: 'the holder' });
    await crew.find((worker) => worker.pid === Number(pid))!.kill();
    await onAll((queue) => client.del(`emq:{${queue}}:leader`)); // nobody need wait until it has run out
    const ended = async (queue: string) => {
      expect(await ask(queue, RUNNING)).toBeLessThanOrEqual(4);
      expect(await ask(queue, IN_LANE)).toBeLessThanOrEqual(1);
      const { completed } = (await jobs.counts(queue)).metrics;
      return completed === (queue === 'leaf' ? 61 : 60);
    };
    const allEnded = async () => (await onAll(ended)).every(Boolean);
    await until(allEnded, { what: 'the end of all', timeoutMs: 15_000 });
    for (const queue of QUEUES) await expectInvariants(client, queue);
  });

  it('tell of every job in order, and land one job a key', async () => {
    const [worker, other] = [await connect(), await connect()];
    const told = new Map<string, string[]>();
    await onAll((queue) => {
      const tell = ({ event, id }: { event: string; id: string }) => {
        const events = told.get(id) ?? [];
        told.set(id, [...events, event]);
      };
      return other.bus.listen(queue, tell).ready;
    });
    let held = 0;
    const handler = async (job: Job) => {
      await new Promise((next) => setImmediate(next));
      if (job.data !== 0 || job.attempts > 1) return;
      held += 1;
      throw new RateLimited(50);
    };
    for (const queue of QUEUES) worker.consume(queue, { concurrency: 3 }, handler);
    await hungry(1);
    const results = await onAll((queue) =>
      Promise.all(
        numbers(40).map((n) =>
          other.jobs.enqueue(queue, 'job', n, { lane: `lane ${n % 3}`, dedup: { key: `k${n % 20}` } }),
        ),
      ),
    );
    const landed = results.map((answers) => answers.filter(({ status }) => status === 'landed'));
    expect(landed.map(({ length }) => length)).toEqual([20, 20, 20]);
    const ids = landed.flat().map(({ id }) => id);
    await until(() => ids.every((id) => told.get(id)?.at(-1) === 'completed'), { what: 'the end of all' });
    expect(held).toBe(3);
    const once = ['landed', 'active', 'completed'];
    const twice = ['landed', 'active', 'active', 'completed'];
    expect([...told.values()].filter(({ length }) => length === 4)).toEqual([twice, twice, twice]);
    expect([...told.values()].filter(({ length }) => length !== 4)).toEqual(Array.from({ length: 57 }, () => once));
    for (const queue of QUEUES) {
      await expectInvariants(client, queue);
      const left = await Promise.all(set.nodes.map((node) => node.command('KEYS', `emq:{${queue}}:dedup:*`)));
      expect(left.flat()).toEqual([]);
    }
  });
});
