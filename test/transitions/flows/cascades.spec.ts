import { beforeEach, describe, expect, it } from '@jest/globals';
import { expectInvariantsOf } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { Carrier } from '../carrier.js';
import { useExecutor } from '../executor.js';
import { waiting } from '../family.js';
import { type Fields, Hand, id } from '../hand.js';
import { LongestCall } from '../server-cpu.js';
import type { Policy } from './arrivals.js';

const [C, P, G, T] = [id(1), id(2), id(3), id(4)];

describe('what becomes of a child', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let q: Hand;
  let r: Hand;
  let carrier: Carrier;
  beforeEach(() => {
    const client = server.client();
    q = new Hand(client, executor.current, 'q');
    r = new Hand(client, executor.current, 'r');
    carrier = new Carrier(q);
  });

  const row = async (queue: Hand, jobId: string) => {
    const [state, cause, error] = await queue.client.hmget(queue.keys.row(jobId), 'state', 'died_of', 'last_error');
    return { state, cause, error };
  };
  const dead = (error: string, cause: string | null = 'children') => ({ state: 'dead', cause, error });
  const settled = async () => {
    await carrier.settle(['q', 'r']);
    await expectInvariantsOf(q.client, ['q', 'r']);
  };

  /** C runs in `q`; its parent P is in `r`, P's parent G again in `q`, and G's parent T in `r`. */
  const zigzag = async (policies: { p?: Policy; g?: Policy } = {}) => {
    const { p = 'fail', g = 'fail' } = policies;
    await q.active(C, { parent: P, parent_queue: 'r' });
    await waiting(r, P, { children: [`q|${C}`] }, { parent: G, parent_queue: 'q', parent_policy: p });
    await waiting(q, G, { children: [`r|${P}`] }, { parent: T, parent_queue: 'r', parent_policy: g });
    await waiting(r, T, { children: [`q|${G}`] });
  };
  const fail = () => q.run('retry', [0, C, 1, 0, 0, 'boom']);

  it('fells its parents from queue to queue, each naming the next, and its revival brings all of them back', async () => {
    await zigzag();
    await fail();
    await settled();
    expect(await row(r, P)).toEqual(dead(`child q|${C}: boom`));
    expect(await row(q, G)).toEqual(dead(`child r|${P}: child q|${C}: boom`));
    expect(await row(r, T)).toEqual(dead(`child q|${G}: child r|${P}: child q|${C}: boom`));
    await q.run('reprocess', [0, C]);
    await settled();
    for (const [queue, jobId] of [
      [r, P],
      [q, G],
      [r, T],
    ] as const) {
      expect(await row(queue, jobId)).toEqual({ state: 'awaiting_children', cause: null, error: null });
    }
    await q.run('claim', [30_000, 1]);
    await q.run('complete', [0, C, 2, 0, 'r']);
    await settled();
    expect((await row(r, P)).state).toBe('pending');
    expect((await row(q, G)).state).toBe('awaiting_children');
  });

  it('stops where a policy says so', async () => {
    await zigzag({ p: 'ignore' });
    await fail();
    await settled();
    expect(await row(r, P)).toEqual(dead(`child q|${C}: boom`));
    expect(await row(q, G)).toEqual({ state: 'pending', cause: null, error: null });
    expect((await row(r, T)).state).toBe('awaiting_children');
    // The dead one comes back, and what has gone on without it does not wait again.
    await q.run('reprocess', [0, C]);
    await settled();
    expect((await row(r, P)).state).toBe('awaiting_children');
    expect((await row(q, G)).state).toBe('pending');
  });

  it('reaches nobody above a parent that is held', async () => {
    await zigzag({ p: 'hold' });
    await fail();
    await settled();
    expect((await row(q, G)).state).toBe('awaiting_children');
    await r.run('remove', [0, P]);
    expect((await row(r, P)).state).toBe('dead'); // its own child is outstanding
    await q.run('remove', [0, C]);
    await settled();
    expect((await row(r, P)).state).toBe('pending'); // revived: nothing holds it any more
    await r.run('remove', [0, P]);
    await settled();
    expect((await row(q, G)).state).toBe('pending');
  });

  it('is told once, whichever of a child and its parent is sent on', async () => {
    await zigzag();
    await fail();
    await settled();
    await r.run('reprocess', [0, P]); // goes on without C
    await settled();
    expect((await row(r, P)).state).toBe('pending');
    expect((await row(q, G)).state).toBe('awaiting_children');
    await q.run('reprocess', [0, C]);
    await q.run('claim', [30_000, 1]);
    await q.run('complete', [0, C, 2, 0, 'late']);
    await settled();
    expect(await r.client.hgetall(`${r.keys.row(P)}:processed`)).toEqual({ [C]: 'late' });
    await r.run('claim', [30_000, 1]);
    await r.run('complete', [0, P, 1, 0, 'done']);
    await settled();
    expect((await row(q, G)).state).toBe('pending');
  });

  it('waits in the outbox while nobody relays, and arrives in order, whatever has happened since', async () => {
    await zigzag();
    await fail();
    await q.run('reprocess', [0, C]);
    await q.run('claim', [30_000, 1]);
    await q.run('retry', [0, C, 2, 0, 0, 'bang']);
    await expectInvariantsOf(q.client, ['q', 'r']);
    expect((await row(r, P)).state).toBe('awaiting_children');
    await settled();
    expect(await row(r, P)).toEqual(dead(`child q|${C}: bang`));
    expect(await row(r, T)).toEqual(dead(`child q|${G}: child r|${P}: child q|${C}: bang`));
  });

  it('goes up any number of levels: so many in one step, the rest owed to the queue itself', async () => {
    const levels = 1_600;
    const level = (n: number) => id(1_000 + n);
    await q.active(C, { parent: level(0) });
    const building: Promise<unknown>[] = [];
    for (let n = 0; n < levels; n++) {
      const child = n === 0 ? C : level(n - 1);
      building.push(waiting(q, level(n), { children: [child] }, n < levels - 1 ? { parent: level(n + 1) } : {}));
    }
    await Promise.all(building);
    const call = new LongestCall(q.client);
    await call.around(fail);
    expect(call.ms).toBeLessThan(150); // 50 on a machine of its own
    if (process.env.ECHOMQ_FIGURES)
      process.stderr.write(`a fall of ${await q.client.zcard(q.keys.dead)}: ${call.ms} ms\n`);
    const first = await q.client.zcard(q.keys.dead);
    expect(first).toBeGreaterThan(400);
    expect(first).toBeLessThan(600);
    expect(await q.client.xlen(q.keys.outbox)).toBe(1);
    await expectInvariantsOf(q.client, ['q']);
    await carrier.settle(['q']);
    expect(await q.client.zcard(q.keys.dead)).toBe(levels + 1);
    expect(await q.client.zcard(q.keys.waiting)).toBe(0);
    await q.run('reprocess', [0, C]);
    await carrier.settle(['q']);
    expect(await q.client.zcard(q.keys.dead)).toBe(0);
    expect(await q.client.zcard(q.keys.waiting)).toBe(levels);
    await expectInvariantsOf(q.client, ['q']);
  });

  it('that dies and comes back in steps too large for one arrives all the same', async () => {
    // 12 children of chains of 100: together more than one step reaches.
    const chains = 12;
    const depth = 100;
    const at = (chain: number, n: number) => id(10_000 + chain * 1_000 + n);
    const building: Promise<unknown>[] = [];
    for (let chain = 0; chain < chains; chain++) {
      building.push(q.active(at(chain, 0), { parent: at(chain, 1) }));
      for (let n = 1; n <= depth; n++) {
        const parent: Fields = n < depth ? { parent: at(chain, n + 1) } : {};
        building.push(waiting(q, at(chain, n), { children: [at(chain, n - 1)] }, parent));
      }
    }
    await Promise.all(building);
    const leaves = Array.from({ length: chains }, (_, chain) => at(chain, 0));
    await q.run('retry', [0, ...leaves.flatMap((leaf) => [leaf, 1, 0, 0, 'boom'])]);
    expect(await q.client.xlen(q.keys.outbox)).toBeGreaterThan(0);
    await expectInvariantsOf(q.client, ['q']);
    await carrier.settle(['q']);
    expect(await q.client.zcard(q.keys.dead)).toBe(chains * (depth + 1));
    await q.run('reprocess', [0, ...leaves]);
    await carrier.settle(['q']);
    expect(await q.client.zcard(q.keys.waiting)).toBe(chains * depth);
    await expectInvariantsOf(q.client, ['q']);
  });

  it('does not go round in a circle that somebody has made by hand', async () => {
    await waiting(q, P, { children: [G] }, { parent: G });
    await waiting(q, G, { children: [P, C] }, { parent: P });
    await q.active(C, { parent: G });
    await q.run('retry', [0, C, 1, 0, 0, 'boom']);
    expect((await row(q, P)).state).toBe('dead');
    expect((await row(q, G)).state).toBe('dead');
    await q.run('reprocess', [0, C]);
  });
});
