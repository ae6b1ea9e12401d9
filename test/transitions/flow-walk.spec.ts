import { describe, expect, it } from '@jest/globals';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useExecutor } from './executor.js';
import { FlowWalk } from './flow-walk.js';
import { Hand } from './hand.js';
import { Random } from './random.js';

const STEPS = 500;
const ALWAYS = [310, 313];
/** Two walks that are always the same, and one that never is; ECHOMQ_SEED repeats that one. */
const SEEDS = [...ALWAYS, Number(process.env.ECHOMQ_SEED ?? Date.now() % 2 ** 31)];

describe('families in two queues, and a relay between them, in any order', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();

  async function walked(seed: number, laned: boolean): Promise<FlowWalk> {
    const client = server.client();
    const queues = ['q', 'r'].map((name) => new Hand(client, executor.current, name));
    const walk = new FlowWalk(queues, new Random(seed), laned);
    let n = 0;
    try {
      for (; n < STEPS; n++) await walk.step();
      await walk.finish();
    } catch (error) {
      const steps = walk.log.slice(-25).join('\n  ');
      throw new Error(`ECHOMQ_SEED=${seed}, step ${n}: ${(error as Error).message}\n  ${steps}`);
    }
    return walk;
  }

  it.each(SEEDS)(
    'keep the invariants, and no parent is left waiting (seed %i)',
    async (seed) => {
      const walk = await walked(seed, false);
      const least = ALWAYS.includes(seed) ? 1 : 0;
      const unmet = Object.entries(walk.met).filter(([, times]) => times < least);
      expect({ unmet, met: walk.met }).toEqual({ unmet: [], met: walk.met });
    },
    600_000,
  );

  it.each(SEEDS.slice(1))(
    'and in lanes, some under a deduplication key (seed %i)',
    async (seed) => {
      const { met } = await walked(seed, true);
      expect(met.landed).toBeGreaterThan(0);
    },
    600_000,
  );
});
