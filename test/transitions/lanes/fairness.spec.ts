import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Arg } from '../../../lib/wire/reply.js';
import { expectInvariants } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { useExecutor } from '../executor.js';
import { Hand, id } from '../hand.js';
import { SEP } from '../laned.js';

describe('who is served next, counted on the server', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let queue: Hand;
  let minted: number;
  let laneOf: Map<string, string>;
  beforeEach(() => {
    queue = new Hand(server.client(), executor.current);
    minted = 0;
    laneOf = new Map();
  });

  async function land(lane: string, count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1_000) {
      const args: Arg[] = [];
      for (let n = Math.min(left, 1_000); n > 0; n--) {
        const jobId = id(minted++);
        laneOf.set(jobId, lane);
        args.push(jobId, 'p', '', ...(lane === '' ? [0] : [1, 'lane', lane]));
      }
      await queue.run('enqueue', args);
    }
  }

  /** The lanes of the next claims, in order. What was claimed is completed at once. */
  async function served(claims: number, at: number): Promise<string[]> {
    const lanes: string[] = [];
    while (lanes.length < claims) {
      const flat = (await queue.run('claim', [60_000, Math.min(at, claims - lanes.length)])) as Buffer[];
      const ids = flat.flatMap((value, n) => (n % 3 === 0 ? [String(value)] : []));
      if (ids.length === 0) break;
      await queue.run('complete', [0, ...ids.flatMap((jobId, n) => [jobId, Number(flat[3 * n + 2]), 0, ''])]);
      lanes.push(...ids.map((jobId) => laneOf.get(jobId)!));
    }
    return lanes;
  }

  function tally(lanes: readonly string[]): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const lane of lanes) counts[lane] = (counts[lane] ?? 0) + 1;
    return counts;
  }

  it.each([1, 7, 100])(
    'weights 1, 2 and 4 give 500, 1,000 and 2,000 of 3,500 claims (in calls of %i)',
    async (at) => {
      for (const [lane, weight] of [
        ['one', 1],
        ['two', 2],
        ['four', 4],
      ] as const) {
        await queue.run('lane', ['lane', lane, 'weight', weight]);
        await land(lane, 3_000);
      }
      expect(tally(await served(3_500, at))).toEqual({ one: 500, two: 1_000, four: 2_000 });
      await expectInvariants(queue.client, 'q');
    },
    600_000,
  );

  it.each([1, 7])(
    '50 light lanes that come behind a heavy one are served in the next 50 claims (in calls of %i)',
    async (at) => {
      await land('heavy', 4_000);
      await served(14, at);
      for (let n = 0; n < 50; n++) await land(`light${n}`, 1);
      expect(new Set(await served(50, at)).has('heavy')).toBe(false);
      expect(await served(10, at)).toEqual(Array(10).fill('heavy'));
    },
    600_000,
  );

  it('where nothing of the heavy one was claimed before, 51 claims serve all 50', async () => {
    await land('heavy', 4_000);
    for (let n = 0; n < 50; n++) await land(`light${n}`, 1);
    const lanes = await served(51, 1);
    expect(tally(lanes).heavy).toBe(1);
    expect(new Set(lanes).size).toBe(51);
  }, 600_000);

  it('jobs without a lane are one lane among the others', async () => {
    await land('', 200);
    await land('x', 200);
    expect(tally(await served(100, 10))).toEqual({ '': 50, x: 50 });
  });

  it.each([1, 10])(
    'a tenant of 400 lanes and one of a single lane get every second claim (in calls of %i)',
    async (at) => {
      for (let n = 0; n < 400; n++) await land(`split${SEP}${n}`, 2);
      await land(`plain${SEP}one`, 300);
      const lanes = await served(400, at);
      for (let n = 0; n < 400; n += 2) {
        expect(lanes.slice(n, n + 2).filter((lane) => lane.startsWith('plain'))).toHaveLength(1);
      }
      expect(new Set(lanes.filter((lane) => lane.startsWith('split'))).size).toBe(200);
      await expectInvariants(queue.client, 'q');
    },
    600_000,
  );

  it('within a group, lanes share its turns by their weights', async () => {
    await queue.run('lane', ['lane', `g${SEP}b`, 'weight', 3]);
    for (const lane of [`g${SEP}a`, `g${SEP}b`, 'x']) await land(lane, 500);
    expect(tally(await served(400, 8))).toEqual({ [`g${SEP}a`]: 50, [`g${SEP}b`]: 150, x: 200 });
  });

  it('a lane that was idle has saved up no turns, and pays for none', async () => {
    await land('idle', 1);
    await land('busy', 300);
    await served(101, 1);
    await land('idle', 300);
    expect(tally(await served(100, 1))).toEqual({ idle: 50, busy: 50 });
  });

  it('who waits gets its turns, however many lanes come that are new at every claim', async () => {
    await land('old', 100);
    const turns: string[] = [];
    for (let n = 0; n < 1_000; n++) {
      await land(`new${n}`, 1);
      turns.push(...(await served(1, 1)));
    }
    // A new lane comes a tenth of a turn behind: those that have come since `old` was served are at most ten times those that wait.
    const own = turns.flatMap((lane, n) => (lane === 'old' ? [n] : []));
    expect(own.length).toBeGreaterThanOrEqual(12);
    for (const [n, at] of own.slice(1).entries()) expect(at - own[n]!).toBeLessThanOrEqual(10 * (n + 2) + 1);
    await expectInvariants(queue.client, 'q');
  }, 600_000);

  it.each([
    [500, 1],
    [10_000, 100],
    [10_000, 500],
  ])(
    '%i lanes of one job leave nothing behind (in calls of %i)',
    async (lanes, at) => {
      const args: Arg[] = [];
      for (let n = 0; n < lanes; n++)
        args.push(id(n), 'p', '', 1, 'lane', n % 2 === 0 ? `user${n}` : `g${n % 7}${SEP}user${n}`);
      for (let n = 0; n < lanes; n += 1_000) await queue.run('enqueue', args.slice(6 * n, 6 * (n + 1_000)));
      for (let n = 0; n < lanes; n++) laneOf.set(id(n), String(n));
      expect(await served(lanes, at)).toHaveLength(lanes);
      await expectInvariants(queue.client, 'q');
      let steps = 0;
      for (let [, next] = [0, 0]; next >= 0; steps++) [, next] = (await queue.run('lane', [])) as [number, number];
      expect(steps).toBeLessThanOrEqual(2 + lanes / 300);
      expect(Object.keys(await queue.dump()).filter((key) => key.startsWith('lane'))).toEqual([
        'lanes:floor',
        'lanes:total',
      ]);
    },
    600_000,
  );

  it('lanes of one job that come without end are forgotten as they go', async () => {
    await land('steady', 3_000);
    for (let round = 0; round < 30; round++) {
      for (let n = 0; n < 100; n++) await land(`round${round}-${n}`, 1);
      await served(101, 101);
    }
    const known = await queue.client.zcard(`${queue.keys.base}lanes:waiting`);
    expect(known).toBeLessThan(250);
    await expectInvariants(queue.client, 'q');
  }, 600_000);
});
