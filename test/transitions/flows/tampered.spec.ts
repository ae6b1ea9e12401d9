import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { Arg } from '../../../lib/wire/reply.js';
import type { ScriptName } from '../../../lib/wire/transition.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { useExecutor } from '../executor.js';
import { give, waiting } from '../family.js';
import { type Fields, Hand, id, PAST } from '../hand.js';
import { readable } from '../state-table.js';

/** Three children, each of a parent of its own; it is the family in the middle that somebody has written to. */
const CHILDREN = [id(1), id(2), id(3)];
const PARENTS = [id(11), id(12), id(13)];
const GRANDPARENT = id(20);

/** A step that settles three children, or brings them back. */
interface Step {
  name: ScriptName;
  put(queue: Hand, jobId: string, fields: Fields): Promise<unknown>;
  /** Are the parents dead of these children? They wait for them otherwise. */
  dead?: boolean;
  call: readonly Arg[];
}

const apply = (how: string) =>
  CHILDREN.flatMap((child, n) => [`5-${n}`, 'settle', PARENTS[n]!, child, how, 'fail', 'word']);
const nobody = async () => undefined;

const STEPS: readonly Step[] = [
  {
    name: 'complete',
    put: (queue, jobId, fields) => queue.active(jobId, fields),
    call: [0, ...CHILDREN.flatMap((child) => [child, 1, 0, 'r'])],
  },
  {
    name: 'retry',
    put: (queue, jobId, fields) => queue.active(jobId, fields),
    call: [1, ...CHILDREN.flatMap((child) => [child, 1, 0, 0, 'boom'])],
  },
  {
    name: 'release',
    put: (queue, jobId, fields) => queue.active(jobId, { cancel: 1, ...fields }),
    call: CHILDREN.flatMap((child) => [child, 1, '']),
  },
  {
    name: 'wait',
    put: (queue, jobId, fields) => queue.active(jobId, { cancel: 1, ...fields }),
    call: CHILDREN.flatMap((child) => [child, 1]),
  },
  { name: 'reap', put: (queue, jobId, fields) => queue.active(jobId, fields, PAST), call: [1000, 0, '', 0] },
  { name: 'remove', put: (queue, jobId, fields) => queue.pending(jobId, fields), call: [0, ...CHILDREN] },
  { name: 'remove', put: (queue, jobId, fields) => queue.dead(jobId, fields), dead: true, call: [0, ...CHILDREN] },
  { name: 'cancel', put: (queue, jobId, fields) => queue.pending(jobId, fields), call: [0, ...CHILDREN] },
  { name: 'trim', put: (queue, jobId, fields) => queue.dead(jobId, fields), dead: true, call: [0, 3] },
  { name: 'reprocess', put: (queue, jobId, fields) => queue.dead(jobId, fields), dead: true, call: [0, ...CHILDREN] },
  { name: 'apply', put: nobody, call: ['q', '0-0', ...apply('done')] },
  { name: 'apply', put: nobody, call: ['q', '0-0', ...apply('dead')] },
  { name: 'apply', put: nobody, dead: true, call: ['q', '0-0', ...apply('back')] },
  { name: 'apply', put: nobody, dead: true, call: ['q', '0-0', ...apply('gone')] },
  // The parents themselves, which go on without their children.
  { name: 'reprocess', put: (queue, jobId, fields) => queue.dead(jobId, fields), dead: true, call: [0, ...PARENTS] },
  { name: 'remove', put: nobody, dead: true, call: [1, ...PARENTS] },
  { name: 'obliterate', put: (queue, jobId, fields) => queue.pending(jobId, fields), call: [0, 1000] },
];

type Spoil = [what: string, spoil: (client: Redis, child: string, parent: string) => Promise<unknown>];

const instead = (client: Redis, key: string) => client.pipeline().del(key).set(key, 'x').exec();
const asList = (client: Redis, key: string) => client.pipeline().del(key).rpush(key, 'x').exec();

const SPOILED: readonly Spoil[] = [
  ['the row of the parent is gone', (c, _, parent) => c.del(parent)],
  ['the row of the parent is a text', (c, _, parent) => instead(c, parent)],
  ...['attempts', 'state', 'flow', 'payload', 'died_of'].map((field): Spoil => {
    return [`the parent has no ${field}`, (c, _, parent) => c.hdel(parent, field)];
  }),
  ...['attempts', 'state', 'died_of', 'priority', 'errors', 'last_error', 'uncharged'].map((field): Spoil => {
    return [`the parent's ${field} is a word`, (c, _, parent) => c.hset(parent, field, 'abc')];
  }),
  ...['children', 'processed', 'unsuccessful', 'failed', 'dependencies'].flatMap((record): Spoil[] => [
    [`${record} are gone`, (c, _, parent) => c.del(`${parent}:${record}`)],
    [`${record} are a text`, (c, _, parent) => instead(c, `${parent}:${record}`)],
    [`${record} are a list`, (c, _, parent) => asList(c, `${parent}:${record}`)],
  ]),
  ...['', '-3', '1.5', '1e5', '9223372036854775807', '-9223372036854775808', '99999999999999999999'].map(
    (count): Spoil => {
      return [`dependencies are '${count}'`, (c, _, parent) => c.set(`${parent}:dependencies`, count)];
    },
  ),
  ['the parent is its own parent', (c, _, parent) => c.hset(parent, 'parent', PARENTS[1]!)],
  ['the parent is its own child', (c, _, parent) => c.sadd(`${parent}:children`, `q|${PARENTS[1]}`)],
  ...['', 'x', `${PARENTS[1]}:children`, 'nobody\r\n'].map((name): Spoil => {
    return [`the child's parent is ${JSON.stringify(name)}`, (c, child) => c.hset(child, 'parent', name)];
  }),
  ...['', 'a{b', '}', 'a\nb', 'x'.repeat(201)].flatMap((name): Spoil[] => [
    [`the child's parent_queue is ${JSON.stringify(name)}`, (c, child) => c.hset(child, 'parent_queue', name)],
    [`the parent's parent_queue is ${JSON.stringify(name)}`, (c, _, parent) => c.hset(parent, 'parent_queue', name)],
  ]),
  ['the child has a policy that is none', (c, child) => c.hset(child, 'parent_policy', 'abc')],
];

describe('a family that somebody has written to by hand', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let client: Redis;
  let queue: Hand;
  beforeEach(() => {
    client = server.client();
    queue = new Hand(client, executor.current);
  });

  const build = async ({ put, dead }: Step) => {
    await server.flush();
    for (const [n, child] of CHILDREN.entries()) {
      const parent = PARENTS[n]!;
      await put(queue, child, { parent });
      const family = { children: [child] };
      if (dead) {
        await queue.dead(parent, { died_of: 'children', parent: GRANDPARENT, last_error: `child q|${child}: boom` });
        await give(queue, parent, { ...family, failed: { [child]: 'boom' } });
      } else {
        await waiting(queue, parent, family, { parent: GRANDPARENT });
      }
    }
    await waiting(queue, GRANDPARENT, { children: [...PARENTS, id(30)] });
  };
  /** The families at the sides, and where the child in the middle stands. */
  const outcome = async () => {
    const dump = await queue.dump();
    const sides = Object.entries(dump).filter(([key]) =>
      [0, 2].some((n) => key.includes(PARENTS[n]!) || key.includes(CHILDREN[n]!)),
    );
    const places = await Promise.all(
      [queue.keys.pending, queue.keys.active, queue.keys.dead, queue.keys.schedule].map((key) =>
        client.zscore(key, CHILDREN[1]!),
      ),
    );
    return { sides: withoutTimes(Object.fromEntries(sides)), places, outbox: Object.keys(dump).includes('outbox') };
  };

  for (const step of STEPS) {
    it(`costs nobody else of a call of ${step.name} ${step.call.slice(0, 5).join(' ')} ... anything`, async () => {
      await build(step);
      const answer = readable(await queue.run(step.name, step.call));
      const well = await outcome();
      for (const [what, spoil] of SPOILED) {
        await build(step);
        await spoil(client, queue.keys.row(CHILDREN[1]!), queue.keys.row(PARENTS[1]!));
        const got = await queue.run(step.name, step.call).then(readable, String);
        expect({ what, failed: typeof got === 'string' && !/^\d+-\d+$/.test(got) ? got : false }).toEqual({
          what,
          failed: false,
        });
        expect({ what, ...(await outcome()) }).toEqual({ what, ...well });
        if (Array.isArray(got) && Array.isArray(answer) && step.name !== 'reap') {
          expect({ what, first: got[0], last: got[2] }).toEqual({ what, first: answer[0], last: answer[2] });
        }
      }
    });
  }

  it('does not keep a running parent from waiting: what cannot be counted is not waited for', async () => {
    for (const record of ['children', 'processed', 'unsuccessful']) {
      await server.flush();
      for (const parent of PARENTS) {
        await queue.active(parent);
        await give(queue, parent, { children: [id(30)] });
      }
      await asList(client, `${queue.keys.row(PARENTS[1]!)}:${record}`);
      expect(
        await queue.run(
          'wait',
          PARENTS.flatMap((parent) => [parent, 1]),
        ),
      ).toEqual([1, 1, 1]);
      expect(await client.zrange(queue.keys.waiting, 0, '-1')).toEqual([PARENTS[0], PARENTS[2]]);
      expect(await client.zrange(queue.keys.pending, 0, '-1')).toEqual([PARENTS[1]]);
    }
  });

  it('is counted anew from its records where the count is none, or too low', async () => {
    for (const count of ['abc', '0', '-5', '']) {
      await server.flush();
      await waiting(queue, PARENTS[0]!, { children: [CHILDREN[0]!, CHILDREN[1]!] });
      await queue.active(CHILDREN[0]!, { parent: PARENTS[0]! });
      await client.set(`${queue.keys.row(PARENTS[0]!)}:dependencies`, count);
      await queue.run('complete', [0, CHILDREN[0]!, 1, 0, 'r']);
      expect({ count, now: await client.get(`${queue.keys.row(PARENTS[0]!)}:dependencies`) }).toEqual({
        count,
        now: '1',
      });
      expect(await client.zcard(queue.keys.waiting)).toBe(1);
    }
  });
});

/** Texts that count lapses, and stream ids, are the same either way; times are blanked. */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replace(/\d{13}/g, 'a time'));
}
