import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { Dedup, EchoMq, EnqueueResult, Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { numbers, useStage } from './stage.js';

const PRODUCERS = 8;
const KEYS = 10;
const EACH = 200;

/** Keys of which more than one job has not ended, at one moment. */
const SHARED = `
local owners, shared = {}, {}
for _, row in ipairs(redis.call('KEYS', 'emq:{q}:job:*')) do
  local r = redis.call('HMGET', row, 'state', 'dedup')
  if r[2] and r[1] ~= 'done' and r[1] ~= 'dead' then
    if owners[r[2]] then shared[#shared + 1] = r[2] end
    owners[r[2]] = row
  end
end
return shared`;

const shared = (control: Redis) => control.eval(SHARED, 0) as Promise<string[]>;

interface Value {
  producer: number;
  n: number;
}

describe('deduplication, while many enqueue and consumers settle,', () => {
  const stage = useStage();

  // All ids are minted in one place. Those of different processes may be apart by as much as a round trip took when they leased their
  // numbers, which on a busy machine is more than the time of a debounce here: a later job would then stand before an earlier one.
  const produce = async (engines: EchoMq[], dedup: Omit<Dedup, 'key'>): Promise<EnqueueResult[]> => {
    const results = await Promise.all(
      engines.map(async ({ jobs }, producer) => {
        const answers: EnqueueResult[] = [];
        for (const n of numbers(EACH)) {
          const key = `k${(n + producer) % KEYS}`;
          const id = engines[0]!.jobs.mintId();
          answers.push(await jobs.enqueue('q', key, { producer, n }, { id, dedup: { ...dedup, key } }));
        }
        return answers;
      }),
    );
    return results.flat();
  };

  const idle = async (echo: EchoMq) => {
    let left = 0;
    const over = async () => {
      const { pending, active, scheduled } = await echo.jobs.counts('q');
      left = pending + active + scheduled;
      return left === 0;
    };
    await until(over, { what: 'all jobs to end', progress: () => left });
  };

  it('lets a key have one unsettled job at any moment, and each job that landed run once', async () => {
    const engines = await Promise.all(numbers(PRODUCERS).map(() => stage.connect()));
    const ran: string[] = [];
    const handler = async ({ id, attempts, data }: Job) => {
      await new Promise((next) => setImmediate(next));
      if ((data as Value).n % 7 === 0 && attempts === 1) throw new Error('the first time');
      ran.push(id);
    };
    const backoff = { type: 'fixed', delayMs: 2 } as const;
    for (const _ of numbers(3)) (await stage.connect()).consume('q', { concurrency: 4, backoff }, handler);
    let producing = true;
    const produced = produce(engines, { mode: 'until-settled' }).finally(() => {
      producing = false;
    });
    while (producing) expect(await shared(stage.control)).toEqual([]);
    const results = await produced;
    await idle(engines[0]!);
    const landed = results.filter(({ status }) => status === 'landed').map(({ id }) => id);
    expect(landed.length).toBeGreaterThan(KEYS);
    expect(landed.length).toBeLessThan(results.length);
    expect([...ran].sort()).toEqual([...landed].sort());
    const ids = new Set(landed);
    expect(results.filter(({ id }) => !ids.has(id))).toEqual([]);
    expect(await stage.control.keys('emq:{q}:dedup:*')).toEqual([]);
  });

  it.each<Omit<Dedup, 'key'>>([{ mode: 'latest-wins' }, { mode: 'debounce', ttlMs: 15 }])(
    'runs the newest value of a key last, and never goes back (%j)',
    async (dedup) => {
      const engines = await Promise.all(numbers(PRODUCERS).map(() => stage.connect()));
      const consumer = await stage.connect();
      const runs: [key: string, value: Value][] = [];
      // One process: its runs begin in the order of their claims.
      consumer.consume('q', { concurrency: 4 }, async (job) => {
        runs.push([job.name, job.data as Value]);
        await new Promise((next) => setImmediate(next));
      });
      const results = await produce(engines, dedup);
      const last = await Promise.all(
        numbers(KEYS).map((k) =>
          engines[k % PRODUCERS]!.jobs.enqueue(
            'q',
            `k${k}`,
            { producer: -1, n: k },
            { id: engines[0]!.jobs.mintId(), dedup: { ...dedup, key: `k${k}` } },
          ),
        ),
      );
      await idle(consumer);
      const of = new Map(numbers(KEYS).map((k) => [`k${k}`, [] as Value[]]));
      for (const [key, value] of runs) of.get(key)!.push(value);
      for (const [key, values] of of) {
        expect([key, values.at(-1)]).toEqual([key, { producer: -1, n: Number(key.slice(1)) }]);
        for (const producer of numbers(PRODUCERS)) {
          const own = values.filter((value) => value.producer === producer).map(({ n }) => n);
          expect([key, own]).toEqual([key, [...own].sort((a, b) => a - b)]);
        }
      }
      const landed = [...results, ...last].filter(({ status }) => status === 'landed').length;
      expect(runs).toHaveLength(landed);
      expect(results.filter(({ status }) => status === 'duplicate')).toEqual([]);
      expect(await stage.control.keys('emq:{q}:dedup:*')).toEqual([]);
    },
  );
});
