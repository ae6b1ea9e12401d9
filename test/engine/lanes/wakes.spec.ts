import { expect, it } from '@jest/globals';
import type { Lane } from '../../../lib/core.js';
import { describeWithProcess } from '../../support/availability.js';
import { until } from '../../support/until.js';
import { endWorkers } from '../../support/worker-process.js';
import { numbers, useStage } from '../jobs/stage.js';
import { Crew } from './crew.js';
import { dice } from './dice.js';

const SIZE = 3;

/**
 * Whether, at one moment, a job could be claimed and everybody sleeps. Who is woken is no longer among the hungry: so this
 * is a wake-up that was forgotten, for which the beat would make up seconds later.
 */
const FORGOTTEN = `
local base, size = KEYS[1], tonumber(ARGV[1])
if redis.call('ZSCORE', base .. 'lanes:parked', '\\31') then return 0 end -- who leads will wake somebody
local limit = tonumber(redis.call('HGET', base .. 'limits', 'concurrency') or nil)
if redis.call('EXISTS', base .. 'paused') == 1 then return 0 end
if limit and redis.call('ZCARD', base .. 'active') >= limit then return 0 end
local ready = redis.call('ZCARD', base .. (redis.call('EXISTS', base .. 'lanes:floor') == 1 and 'lanes' or 'pending'))
return ready > 0 and redis.call('ZCARD', base .. 'hungry') == size and 1 or 0`;

const LANES: (Lane | null)[] = [null, 'a', 'b', 'c', ['g', 'a'], ['g', 'b'], ['h', 'a']];

describeWithProcess('processes that serve lanes', () => {
  endWorkers();
  const stage = useStage();

  it.each([1, 2])(
    'never all sleep while a job could run, whatever is changed (seed %i)',
    async (seed) => {
      const roll = dice(seed);
      const { jobs, lanes } = await stage.connect();
      const crew = await Crew.start(stage.server.url, stage.control, SIZE, { concurrency: 2, claimAhead: false });
      const any = <T>(list: readonly T[]) => list[roll(list.length)]!;
      const lane = () => any(LANES);
      const named = () => any(LANES.slice(1)) as Lane;
      const ids: string[] = [];
      const enqueue = async () => {
        const items = numbers(1 + roll(4)).map(() => ({
          name: 'job',
          data: { ms: roll(4), deeds: roll(3) === 0 ? [any(['fail', 'discard', 'snooze', 'limited'])] : [] },
          opts: { lane: lane(), priority: roll(2), delayMs: roll(4) === 0 ? roll(20) : 0 },
        }));
        for (const { id } of await jobs.enqueueMany('q', items)) ids.push(id);
      };
      const deeds: (() => Promise<unknown>)[] = [
        enqueue,
        enqueue,
        enqueue,
        () => lanes.pause('q', lane()),
        () => lanes.resume('q', lane()),
        () => lanes.pauseGroup('q', any(['g', 'h'])),
        () => lanes.resumeGroup('q', any(['g', 'h'])),
        () => lanes.configure('q', named(), { cap: any([1, 2, null]) }),
        () => lanes.configure('q', named(), { rate: any([{ limit: 100, perMs: 1000 }, null]) }),
        () => lanes.configure('q', lane(), { weight: any([0.5, 3, null]) }),
        () => lanes.configureDefault('q', { cap: any([1, 3, null]) }),
        () => lanes.liftHold('q', named()),
        () => jobs.limit('q', { concurrency: any([1, 2, null]) }),
        () => jobs.limit('q', { rate: any([{ limit: 200, perMs: 1000, burst: 1 + roll(3) }, null]) }),
        () => jobs.liftHold('q'),
        () => jobs.pause('q'),
        () => jobs.resume('q'),
        () => jobs.resume('q'),
        () => jobs.cancel('q', any(ids)),
        () => jobs.remove('q', any(ids)),
        () => jobs.reprocess('q', any(ids)),
        () => jobs.reschedule('q', any(ids), { delayMs: roll(2) * 10 }),
        () => jobs.trim('q', { keepCount: roll(3) }),
        () => jobs.promoteNow('q', any(ids)),
        () => jobs.changePriority('q', any(ids), roll(3)),
      ];
      await enqueue();
      const look = async () => {
        expect(await stage.control.eval(FORGOTTEN, 1, 'emq:{q}:', SIZE)).toBe(0);
      };
      for (const _ of numbers(600)) {
        await any(deeds)();
        for (const __ of numbers(roll(12))) await look();
      }
      await jobs.resume('q');
      await jobs.limit('q', { concurrency: null, rate: null });
      await lanes.configureDefault('q', { cap: null });
      for (const each of LANES) await lanes.resume('q', each);
      for (const group of ['g', 'h']) await lanes.resumeGroup('q', group);
      let left = 0;
      const idle = async () => {
        await look();
        const { pending, active, scheduled } = await jobs.counts('q');
        left = pending + active + scheduled;
        return left === 0;
      };
      await until(idle, { what: 'all jobs to end', progress: () => left });
      await crew.closeAll();
    },
    600_000,
  );

  it.each([null, 3])('are all woken by a burst over lanes (queue-wide concurrency: %s of each)', async (each) => {
    const { jobs, lanes } = await stage.connect();
    const size = 4;
    await Promise.all(numbers(size).map((n) => lanes.configure('q', `lane ${n}`, { cap: 3 })));
    if (each !== null) await jobs.limit('q', { concurrency: size * each });
    const crew = await Crew.start(stage.server.url, stage.control, size, { concurrency: 3, claimAhead: false });
    const items = numbers(20).map((n) => ({ name: 'job', data: { ms: 2000 }, opts: { lane: `lane ${n % size}` } }));
    await jobs.enqueueMany('q', items);
    // The jobs of those who were woken first still run when the last one is.
    const active = async () => (await stage.control.zcard('emq:{q}:active')) === size * 3;
    await until(active, { what: 'all places to be taken' });
    await until(async () => (await jobs.counts('q')).metrics.completed === 20, {
      what: 'the end of all',
      timeoutMs: 20_000,
    });
    await crew.closeAll();
  });
});
