import { describe, expect, it } from '@jest/globals';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useExecutor } from './executor.js';
import { Hand } from './hand.js';
import { LaneWalk, type LaneWalkOptions } from './lane-walk.js';
import { Random } from './random.js';

const ALWAYS = [8, 20_261_129];
/** Two walks that are always the same, and one that never is; ECHOMQ_SEED repeats that one. */
const SEED = Number(process.env.ECHOMQ_SEED ?? Date.now() % 2 ** 31);

describe('lanes, caps, rates, limits and keys, in any order', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();

  async function walked(seed: number, steps: number, options: LaneWalkOptions = {}): Promise<LaneWalk> {
    const walk = new LaneWalk(new Hand(server.client(), executor.current), new Random(seed), options);
    let n = 0;
    try {
      await walk.begin();
      for (; n < steps; n++) await walk.step();
      await walk.finish();
    } catch (error) {
      const last = walk.log.slice(-25).join('\n  ');
      throw new Error(`ECHOMQ_SEED=${seed}, step ${n}: ${(error as Error).message}\n  ${last}`);
    }
    return walk;
  }

  it.each([...ALWAYS, SEED])(
    'keep the invariants, and leave nothing behind (seed %i)',
    async (seed) => {
      const { met, walk } = await walked(seed, 1_000);
      const { atCap: _atCap, ...rest } = met;
      const unmet = ALWAYS.includes(seed) ? Object.entries(rest).filter(([, times]) => times === 0) : [];
      expect({ unmet, met }).toEqual({ unmet: [], met });
      expect(walk.settled.right).toBeGreaterThan(20);
    },
    600_000,
  );

  it('keep the invariants while every lane has a cap', async () => {
    const { met } = await walked(ALWAYS[0]!, 500, { cap: 2 });
    expect(met.atCap).toBeGreaterThan(5);
  }, 600_000);
});
