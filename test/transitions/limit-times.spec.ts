import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';

const part = (name: string) => readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), 'utf8');

/**
 * At the time in ARGV, which no server's clock can be made to say: how many jobs may be claimed, and whether none may
 * before some time.
 */
const ASK = `${part('_prelude')}\n${part('_limits')}
local limit = limits(KEYS[1], tonumber(ARGV[1]))
return { limit.allowed(1), limit.held_until() and 1 or 0 }`;

describe('a rate of a queue', () => {
  const server = useServer();
  guardLeaks();

  it.each([0.01, 1, 7.3, 1000 / 3, 60_000, 86_400_000])(
    'of one job in %d ms either allows a job or says when it will, at every microsecond around that time',
    async (interval) => {
      const client = server.client();
      const at = 1_790_000_000_000;
      for (const burst of [1, 3]) {
        await client.hset('emq:{q}:limits', { interval, burst, tat: at + (burst - 1) * interval });
        for (const micros of [-100_000, -1_001, -1_000, -10, -3, -2, -1, 0, 1, 2, 10, 1_000]) {
          const now = at + micros / 1000;
          const [allowed, held] = (await client.eval(ASK, 1, 'emq:{q}:', String(now))) as [number, number];
          expect([burst, micros, allowed + held]).toEqual([burst, micros, 1]);
        }
      }
    },
  );
});
