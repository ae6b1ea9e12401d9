import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Arg } from '../../../lib/wire/reply.js';
import type { ScriptName } from '../../../lib/wire/transition.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { until } from '../../support/until.js';
import { useExecutor } from '../executor.js';
import { Hand, id, PAST } from '../hand.js';
import { SEP } from '../laned.js';
import { readable } from '../state-table.js';

const [A, B, C, D, E, F] = [1, 2, 3, 4, 5, 6].map(id) as [string, string, string, string, string, string];
const G = `g${SEP}in`;
const WORDS = ['abc', '', '-1', '0', 'nan', 'inf', '-inf', '1e400', '9007199254740993', '0x10', '-'];
const STATE = ['weight', 'cap', 'interval', 'burst', 'max_waiting', 'active', 'tat', 'tag', 'until', 'lanes', 'floor'];

/** What every step answers, whatever somebody has written to the lanes; and no job is lost. */
const STEPS: readonly [ScriptName, Arg[]][] = [
  ['enqueue', [id(10), 'p', '', 1, 'lane', 'x', id(11), 'p', '', 1, 'lane', G, id(12), 'p', '', 0]],
  ['promote', [1000]],
  ['reap', [1000, 9, '', 0]],
  ['retry', [0, E, 1, 0, 9, 'boom']],
  ['release', [F, 1, 'lane:1']],
  ['lane', []],
  ['lane', ['lane', 'x', 'weight', 2]],
  ['claim', [30_000, 50, '', '']],
];

describe('lanes that somebody has written to by hand', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let queue: Hand;
  beforeEach(() => {
    queue = new Hand(server.client(), executor.current);
  });
  const key = (name: string) => queue.keys.base + name;

  /** A and B wait in x, C in a group, D is scheduled, E and F run in x and in the group. */
  async function build(): Promise<void> {
    await server.flush();
    const landing = (jobId: string, lane: string, delay = ''): Arg[] => [jobId, 'p', delay, 1, 'lane', lane];
    await queue.run('enqueue', [...landing(E, 'x'), ...landing(F, G)]);
    await queue.run('claim', [30_000, 2]);
    await queue.run('enqueue', [...landing(A, 'x'), ...landing(B, 'x'), ...landing(C, G), ...landing(D, 'x', '60000')]);
    await queue.client.zadd(queue.keys.schedule, PAST, D);
  }

  /** Every step answers something else than an error of the server, or says which key it will not touch. */
  async function walk(refused = ''): Promise<void> {
    for (const [name, call] of STEPS) {
      const answer = await queue.run(name, call).then(readable, (error) => String(error.message));
      if (refused !== '' && String(answer).includes(`EMQTYPE ${key(refused)} holds`)) continue;
      expect({ name, answer: typeof answer === 'string' ? answer : 'answered' }).toEqual({ name, answer: 'answered' });
    }
  }

  /** The ids that are claimed now or by the next claims. */
  async function reachable(): Promise<string[]> {
    const ids = await queue.client.zrange(queue.keys.active, 0, '-1');
    return ids.sort();
  }

  for (const state of ['lanestate:x', `lanegroupstate:g`, 'lanes:defaults', `lanestate:${G}`]) {
    it(`are served whatever stands in ${state.replace(SEP, '/')}`, async () => {
      for (const field of STATE) {
        for (const word of WORDS) {
          await build();
          await queue.client.hset(key(state), field, word);
          await walk();
          const held = [...(await reachable()), ...(await queue.client.zrange(key('lane:x'), 0, '-1'))];
          const rest = [...held, ...(await queue.client.zrange(key(`lane:${G}`), 0, '-1'))];
          expect({ field, word, rest: rest.sort() }).toEqual({
            ...{ field, word },
            rest:
              field === 'max_waiting'
                ? expect.arrayContaining([A, B, C, D, E, F])
                : [A, B, C, D, E, F, id(10), id(11), id(12)],
          });
        }
      }
    }, 600_000);
  }

  const OTHERS = ['lane:x', 'lanestate:x', `lane:${G}`, `lanestate:${G}`, 'lanegroup:g', 'lanegroupstate:g'];
  const MORE = ['laneidle:', 'laneidle:g', 'lanes:total', 'lanes:floor', 'lanes:defaults', 'limits', 'dedups', 'heard'];
  it.each([...OTHERS, ...MORE].flatMap((name) => ['string', 'list'].map((kind) => [name.replace(SEP, '/'), kind])))(
    'cost nobody else anything when %s is a %s',
    async (shown, kind) => {
      const name = shown.replace('/', SEP);
      await build();
      const lost = name === 'lane:x' ? [A, B] : name === `lane:${G}` ? [C] : [];
      await queue.client.del(key(name));
      if (kind === 'string') await queue.client.set(key(name), 'x');
      else await queue.client.rpush(key(name), 'x');
      await walk(name);
      // What the walk holds for a millisecond comes back.
      await until(
        async () => {
          await queue.run('lane', []);
          return (await queue.client.zcard(key('lanes:parked'))) === 0;
        },
        { what: 'the holds to end' },
      );
      for (let n = 0; n < 3; n++) await queue.run('claim', [30_000, 50, '', '']);
      const expected = [A, B, C, D, E, F, id(10), id(11), id(12)].filter((jobId) => !lost.includes(jobId));
      expect(await reachable()).toEqual(expected);
      const settled = (await reachable()).flatMap((jobId) => [
        jobId,
        jobId === D || jobId > F || jobId < E ? 1 : 2,
        0,
        '',
      ]);
      expect(await queue.run('complete', [0, ...settled])).not.toContain(undefined);
      for (const look of [
        ['counts', []],
        ['lane_list', [0, 10]],
        ['list', [0, 10, 1000]],
        ['pass', ['p']],
      ] as const) {
        await queue.run(look[0], [...look[1]]);
      }
      for (let n = 0; n < 9; n++) if ((await queue.run('obliterate', [1, 1000])) === 0) break;
    },
  );

  it('end when a lane that is said to have jobs has none, or is no lane at all', async () => {
    for (const spoil of [
      () => queue.client.zadd(key('lanes:waiting'), 5, 'none', 7, `${SEP}`, 3, SEP + SEP, 9, `g${SEP}`),
      () => queue.client.zadd(key('lanes'), 0, 'none', 0, G, 0, SEP, 0, `h${SEP}`, 0, `a${SEP}b${SEP}c`),
      () => queue.client.zadd(key('lanegroup:g'), 0, 'x', 0, `h${SEP}in`, 0, `h${SEP}`, 0, '', 0, SEP),
      () =>
        queue.client.zadd(
          key('lanes:parked'),
          0,
          'none',
          0,
          G,
          0,
          `g${SEP}`,
          0,
          SEP,
          0,
          SEP + SEP,
          0,
          `${SEP}${SEP}zz`,
        ),
      () => queue.client.zadd(key('laneidle:'), 0, 'none', 0, G, 0, `h${SEP}`, 0, '', 0, SEP),
      () => queue.client.hset(key('lanes:active'), { [E]: `h${SEP}`, [F]: '', [A]: SEP }),
      () => queue.client.hset(queue.keys.row(A), 'lane', `g${SEP}`),
      () => queue.client.hset(queue.keys.row(E), 'lane', `g${SEP}`),
      () => queue.client.hset(queue.keys.row(D), 'lane', ''),
      () => queue.client.hset(queue.keys.row(F), 'lane', 'x'.repeat(1_000)),
      () => queue.client.del(key('lane:x')),
      () => queue.client.del(key('lanes')),
      () => queue.client.del(key('lanes:floor')),
      () => queue.client.del(key('lanegroup:g'), key('lanegroupstate:g')),
      () => queue.client.zadd(key('lanegroup:g'), ...Array.from({ length: 40 }, (_, n) => [0, `no${n}`]).flat()),
      () => queue.client.zadd(key('lanes'), ...Array.from({ length: 40 }, (_, n) => [0, `no${SEP}${n}`]).flat()),
    ]) {
      await build();
      await spoil();
      await walk();
      await queue.run('list', [0, 10, 1000]);
      await queue.run('lane_list', [0, 100]);
      await queue.run('cancel', [0, A, B, C, D]);
      let steps = 0;
      while ((await queue.run('obliterate', [1, 5])) !== 0 && steps < 50) steps++;
      expect(steps).toBeLessThan(50);
    }
  });
});
