import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Arg, Reply } from '../../lib/wire/reply.js';
import type { Edition } from '../../lib/wire/script-text.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useExecutor } from './executor.js';
import { Hand, id } from './hand.js';

const readable = (reply: Reply): unknown => (Array.isArray(reply) ? reply.map(readable) : (reply?.toString() ?? null));

describe.each<Edition>(['plain', 'whole'])('the two ways of enqueue, in its %s edition', (edition) => {
  const server = useServer();
  const executor = useExecutor(server, edition);
  guardLeaks();

  /** Plain jobs go the short way; one that names a priority, be it 0, sends all of its call the long way. */
  async function both(ids: readonly number[]): Promise<void> {
    const client = server.client();
    await server.flush();
    const found: unknown[] = [];
    for (const way of ['short', 'long']) {
      const queue = new Hand(client, executor.current, way);
      const call = ids.flatMap((n, at): Arg[] =>
        way === 'long' && at === 0 ? [id(n), `payload ${at}`, '', 1, 'priority', '0'] : [id(n), `payload ${at}`, '', 0],
      );
      const answer = readable(await queue.run('enqueue', call));
      found.push({ answer, dump: await queue.dump() });
      await expectInvariants(client, way);
      expect(await client.zcard(queue.keys.pending)).toBe(new Set(ids).size);
      expect(await client.hget(`${queue.keys.base}metrics:enqueued`, 'count')).toBe(String(new Set(ids).size));
      for (const n of new Set(ids)) {
        const first = ids.indexOf(n);
        expect(await client.hget(`${queue.keys.base}job:${id(n)}`, 'payload')).toBe(`payload ${first}`);
      }
    }
    expect(found[0]).toEqual(found[1]);
  }

  it('do the same with any ids, of which some are named more than once', async () => {
    const ids = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 30 });
    await fc.assert(fc.asyncProperty(ids, both), { numRuns: 60 });
  });

  it('do the same with more jobs than one command takes, each twice', async () => {
    const ids = Array.from({ length: 1_200 }, (_, n) => n + 1);
    await both([...ids, ...ids.reverse()]);
  });
});
