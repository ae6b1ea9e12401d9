import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Arg } from '../../../lib/wire/reply.js';
import { expectInvariants } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { counted, gone, job } from '../changes.js';
import { useExecutor } from '../executor.js';
import { Hand, id } from '../hand.js';
import { type Lanes, laneChanges, laned, SEP } from '../laned.js';
import { describeTransition } from '../state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];

describeTransition('obliterate', (table) => {
  const some: Lanes = {
    lanes: { x: { waits: { [A]: 0 }, runs: [B], state: { cap: 1 }, out: true }, '': { waits: { [C]: 0 } } },
  };
  table.it('takes the jobs of lanes, gives caps back, and leaves their settings to the next step', {
    given: (queue) => laned(queue, some),
    call: [1, 1000],
    answer: 3,
    changes: {
      ...laneChanges(some, { lanes: { x: { state: { cap: 1, active: 0 } } } }),
      ...{ active: gone, paused: { string: '1' }, 'metrics:removed': counted(3) },
      ...{ [job(A)]: gone, [job(B)]: gone, [job(C)]: gone },
    },
  });

  table.it('takes no more than it was told, and what is left adds up', {
    given: (queue) => laned(queue, some),
    call: [1, 2],
    answer: 2,
    changes: {
      ...laneChanges(some, { lanes: { x: { waits: { [A]: 0 }, state: { cap: 1, active: 0 } } } }),
      ...{ active: gone, paused: { string: '1' }, 'metrics:removed': counted(2), [job(B)]: gone, [job(C)]: gone },
    },
  });
});

describe('obliterating a queue with lanes', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let queue: Hand;
  beforeEach(() => {
    queue = new Hand(server.client(), executor.current);
  });

  async function land(lanes: readonly string[]): Promise<void> {
    for (let from = 0; from < lanes.length; from += 500) {
      const args = lanes.slice(from, from + 500).flatMap((lane, n): Arg[] => [id(from + n), 'p', '', 1, 'lane', lane]);
      await queue.run('enqueue', args);
    }
  }

  /** How many steps it took. */
  async function obliterate(limit: number): Promise<number> {
    for (let steps = 1; ; steps++) {
      const removed = await queue.run('obliterate', [1, limit]);
      await expectInvariants(queue.client, 'q');
      if (removed === 0) return steps;
    }
  }

  it('leaves nothing behind of 1,500 lanes, in bounded steps', async () => {
    await land(Array.from({ length: 1_500 }, (_, n) => (n % 3 === 0 ? `g${n % 20}${SEP}l${n}` : `l${n}`)));
    await queue.run('claim', [60_000, 400]);
    const steps = await obliterate(1_000);
    expect(steps).toBeLessThan(6);
    expect(Object.keys(await queue.dump())).toEqual(['paused']);
  });

  it('leaves nothing behind of 1,500 idle lanes that were configured, and of groups', async () => {
    for (let n = 0; n < 1_500; n++) await queue.run('lane', ['lane', n % 2 ? `l${n}` : `g${SEP}${n}`, 'cap', 2]);
    await queue.run('lane', ['group', 'alone', 'weight', 2]);
    await queue.run('lane', ['all', '', 'cap', 2]);
    expect(await queue.run('obliterate', [0, 1_000])).toBe(-1);
    expect(await queue.run('obliterate', [0, 1_000])).toBe(0);
    expect(Object.keys(await queue.dump())).toEqual(['paused']);
  });

  it('leaves nothing behind of holds, limits, keys, and lanes with a debt', async () => {
    await queue.run('limit', ['concurrency', 50, 'interval', 1, 'burst', 50]);
    await queue.run('lane', ['lane', '', 'weight', 2]);
    await queue.run('enqueue', [
      A,
      'p',
      '',
      2,
      'lane',
      'x',
      'dedup',
      'u:k',
      B,
      'p',
      '',
      1,
      'lane',
      `g${SEP}y`,
      C,
      'p',
      '',
      0,
    ]);
    await queue.run('claim', [60_000, 3]);
    await queue.run('release', [A, 1, 'lane:60000', C, 1, 'queue:60000']);
    await queue.run('complete', [0, B, 1, 0, '']);
    await obliterate(1_000);
    expect(Object.keys(await queue.dump())).toEqual(['paused']);
  });

  it('adds up after every step of one job', async () => {
    await land(['x', 'x', `g${SEP}y`, 'z', `g${SEP}w`]);
    await queue.run('enqueue', [id(50), 'p', '', 0, id(51), 'p', '5000', 1, 'lane', 'x']);
    await queue.run('claim', [60_000, 3]);
    expect(await obliterate(1)).toBeGreaterThan(7);
    expect(Object.keys(await queue.dump())).toEqual(['paused']);
  });
});
