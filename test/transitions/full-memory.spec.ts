import { beforeEach, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { ScriptName } from '../../lib/wire/transition.js';
import { describeWithProcess } from '../support/availability.js';
import { checkInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useExecutor } from './executor.js';
import { Hand } from './hand.js';
import { SAMPLES, type Sample } from './samples.js';
import { readable } from './state-table.js';

/** Anything later than 2001 in milliseconds. */
const A_TIME = 1_000_000_000_000;

describeWithProcess('a server whose memory is full', () => {
  const server = useServer({ config: { 'maxmemory-policy': 'noeviction' } });
  const executor = useExecutor(server);
  guardLeaks();
  let client: Redis;
  let queue: Hand;
  beforeEach(() => {
    client = server.client();
    queue = new Hand(client, executor.current);
  });

  /** The queue, and what stands beside all queues. */
  const state = async () => ({
    queue: await queue.dump(),
    version: await client.get('{emq}:version'),
    nodes: await client.zrange('{emq}:nodes', 0, '-1', 'WITHSCORES'),
    owners: await client.hgetall('{emq}:nodes:owner'),
  });

  /** Builds the state, calls under a memory limit, lifts the limit, and looks. */
  async function called(name: ScriptName, sample: Sample, maxmemory: number) {
    await server.flush();
    await sample.given(queue);
    const before = await state();
    await client.config('SET', 'maxmemory', maxmemory);
    const answer = await queue.run(name, sample.call).then(readable, (error) => error.code as string);
    await client.config('SET', 'maxmemory', 0);
    return { before, answer, after: await state() };
  }

  for (const [name, samples] of Object.entries(SAMPLES) as [ScriptName, Sample[]][]) {
    for (const sample of samples) {
      const title = `${name} ${JSON.stringify(sample.call)}`;
      if (sample.whenFull === 'refused') {
        it(`refuses ${title}, and not a byte is written`, async () => {
          const { before, answer, after } = await called(name, sample, 1);
          expect(answer).toBe('OOM');
          expect(after).toEqual(before);
          expect((await client.keys('*')).every((key) => key.startsWith(queue.keys.base))).toBe(true);
        });
      } else {
        it(`lets ${title} do what it always does`, async () => {
          const always = await called(name, sample, 0);
          const full = await called(name, sample, 1);
          expect(withoutTimes(full.answer)).toEqual(withoutTimes(always.answer));
          expect(withoutTimes(full.after)).toEqual(withoutTimes(always.after));
          if (sample.whenFull === 'runs') expect(full.after).not.toEqual(full.before);
          if (name !== 'obliterate') expect(checkInvariants(full.after.queue)).toEqual([]);
        });
      }
    }
  }
});

/** The same, with times and ids of stream entries blanked. */
function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, withoutTimes(held)]));
  }
  const streamId = typeof value === 'string' && /^\d{13}-\d+$/.test(value);
  return streamId || Number(value) > A_TIME ? 'a time' : value;
}
