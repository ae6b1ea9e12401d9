import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { EchoMq, Lane } from '../../../lib/core.js';
import { laneText } from '../../../lib/kernel/lane.js';
import { describeWithProcess } from '../../support/availability.js';
import { expectInvariants, InvariantWatch } from '../../support/invariants.js';
import { until } from '../../support/until.js';
import { endWorkers } from '../../support/worker-process.js';
import { numbers, useStage } from '../jobs/stage.js';
import { Crew } from './crew.js';
import { dice } from './dice.js';

/** At one moment: how many jobs each lane has running, and ids that run in a lane or in the queue but not in both. */
const RUNNING = `
local held, counts, wrong = redis.call('HGETALL', KEYS[1] .. 'lanes:active'), {}, {}
for i = 1, #held, 2 do
  counts[held[i + 1]] = (counts[held[i + 1]] or 0) + 1
  if not redis.call('ZSCORE', KEYS[1] .. 'active', held[i]) then wrong[#wrong + 1] = held[i] end
end
for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. 'active', 0, -1)) do
  if redis.call('HEXISTS', KEYS[1] .. 'job:' .. id, 'lane') ~= redis.call('HEXISTS', KEYS[1] .. 'lanes:active', id) then
    wrong[#wrong + 1] = id
  end
end
local answer = { wrong }
for lane, n in pairs(counts) do answer[#answer + 1] = { lane, n } end
return answer`;

async function look(control: Redis): Promise<{ wrong: string[]; running: [lane: string, n: number][] }> {
  const [wrong, ...running] = (await control.eval(RUNNING, 1, 'emq:{q}:')) as [string[], ...[string, number][]];
  return { wrong, running };
}

const CAPPED: Lane[] = [
  ...numbers(8).map((n) => `lane ${n}`),
  ...numbers(4).map((n) => ['big', `lane ${n}`] as const),
  ...numbers(4).map((n) => ['small', `lane ${n}`] as const),
];
const FREE: Lane[] = ['free 0', 'free 1', ['big', 'free']];
const RATED = 'rated';
const LANES: Lane[] = [...CAPPED, ...FREE, RATED];
const capOf = (n: number) => 1 + (n % 2);

const DEEDS = ['fail', 'discard', 'snooze', 'limited'];

/** Every third job has something happen to it, some twice. */
function ordersFrom(roll: (sides: number) => number): object {
  const deeds = numbers(roll(3) === 0 ? 1 + roll(2) : 0).map(() => DEEDS[roll(DEEDS.length)]);
  return { ms: roll(8), deeds };
}

describeWithProcess('lanes served by several processes, some of which are killed', () => {
  endWorkers();
  const stage = useStage();

  const configure = async ({ lanes }: EchoMq) => {
    await Promise.all(CAPPED.map((lane, n) => lanes.configure('q', lane, { cap: capOf(n), weight: 1 + (n % 4) })));
    await lanes.configure('q', RATED, { rate: { limit: 100, perMs: 1000, burst: 2 } });
    await lanes.configureGroup('q', 'big', { weight: 3 });
  };

  /** Everything goes back to no settings at all. */
  const unconfigure = async ({ lanes }: EchoMq) => {
    for (const lane of LANES) await lanes.configure('q', lane, { cap: null, weight: null, rate: null });
    await lanes.configureGroup('q', 'big', { weight: null });
  };

  it.each([1, 2])(
    'end every job once, keep every cap, and leave nothing behind (seed %i)',
    async (seed) => {
      const roll = dice(seed);
      const echo = await stage.connect();
      const { jobs, lanes } = echo;
      const options = { concurrency: 10, leaseMs: 1500, record: 100_000 };
      const crew = await Crew.start(stage.server.url, stage.control, 4, options);
      await configure(echo);
      const caps = new Map(CAPPED.map((lane, n) => [laneText(lane), capOf(n)]));
      const raised = CAPPED[1]!;
      caps.set(laneText(raised), 4); // as long as it is raised

      const ids: string[] = [];
      const removed: string[] = [];
      const fill = async (count: number) => {
        const items = numbers(count).map(() => {
          const lane = roll(12) === 0 ? null : LANES[roll(LANES.length)]!;
          const delayMs = roll(6) === 0 ? 30 : 0;
          return { name: 'job', data: ordersFrom(roll), opts: { lane, priority: roll(3), delayMs } };
        });
        for (const { id } of await jobs.enqueueMany('q', items)) ids.push(id);
      };
      const cancelSome = async () => {
        for (const id of numbers(10).map(() => ids[roll(ids.length)]!)) {
          if ((await jobs.cancel('q', id)) === 'removed') removed.push(id);
        }
      };
      const killOne = async () => {
        const { id } = await jobs.enqueue('q', 'job', { deeds: ['hang'] }, { lane: raised, priority: -1 });
        ids.push(id);
        await crew.killHolderOf(id);
      };
      const standStill = async () => {
        await jobs.pause('q');
        const still = async () => (await jobs.counts('q')).active === 0;
        await until(still, { what: 'the queue to stand still', timeoutMs: 10_000 });
        await jobs.resume('q');
      };
      let goOn = () => {};
      const suspendOne = async () => {
        goOn = await crew.suspendOldest();
      };
      const happenings = [
        suspendOne,
        () => Promise.all([killOne(), fill(150)]),
        () => Promise.all([lanes.pause('q', CAPPED[0]!), lanes.pauseGroup('q', 'small'), cancelSome()]),
        () => Promise.all([crew.add(), lanes.configure('q', raised, { cap: 4, weight: 100 }), fill(150)]),
        () => Promise.all([lanes.resume('q', CAPPED[0]!), standStill(), cancelSome()]),
        () => Promise.all([lanes.configure('q', CAPPED[3]!, { weight: 0.1 }), fill(100), goOn()]),
        () => Promise.all([killOne(), lanes.configureDefault('q', { cap: 2 }), cancelSome()]),
        () => Promise.all([lanes.resumeGroup('q', 'small'), lanes.configureDefault('q', { cap: null }), crew.add()]),
        () => lanes.configure('q', raised, { cap: 1, weight: 1 }),
      ];

      const watch = new InvariantWatch();
      const settled = async () => {
        const { metrics } = await jobs.counts('q');
        return metrics.completed + metrics.failed + metrics.removed;
      };
      const happen = async () => {
        await fill(200);
        for (let due = 40; happenings.length > 0; due += 40) {
          await until(async () => (await settled()) >= due, { what: `${due} settled jobs`, timeoutMs: 20_000 });
          await happenings.shift()!();
          await expectInvariants(stage.control, 'q', { watch });
        }
        await until(async () => (await settled()) === ids.length, { what: 'the end of all jobs', timeoutMs: 20_000 });
      };
      let ended = false;
      const all = happen().finally(() => {
        ended = true;
      });
      while (!ended) {
        const { wrong, running } = await look(stage.control);
        expect(wrong).toEqual([]);
        for (const [lane, n] of running) expect([lane, n <= (caps.get(lane) ?? 40)]).toEqual([lane, true]);
      }
      await all;

      const { active, pending, scheduled, metrics } = await jobs.counts('q');
      expect({ active, pending, scheduled }).toEqual({ active: 0, pending: 0, scheduled: 0 });
      expect(metrics.stalled).toBeGreaterThanOrEqual(2);
      const entries = await stage.control.xrange('emq:{q}:stream:completions', '-', '+');
      const completed = entries.flatMap(([, [, id, , outcome]]) => (outcome === 'completed' ? [id!] : []));
      const dead = await stage.control.zrange('emq:{q}:dead', 0, '-1');
      expect([...completed, ...dead, ...removed].sort()).toEqual([...ids].sort());
      await expectInvariants(stage.control, 'q', { watch });

      await unconfigure(echo);
      const left = async () => (await stage.control.keys('emq:{q}:lane*')).sort();
      // Of the queue itself: that it has lanes, how much waits in them, and the turn of the jobs without one.
      const kept = ['emq:{q}:lanes:floor', 'emq:{q}:lanes:total', 'emq:{q}:lanestate:'];
      await until(async () => (await left()).length <= kept.length, { what: 'all to be forgotten' });
      expect(await left()).toEqual(kept);
      expect(await stage.control.get('emq:{q}:lanes:total')).toBe('0');
      await crew.closeAll();
    },
    600_000,
  );
});
