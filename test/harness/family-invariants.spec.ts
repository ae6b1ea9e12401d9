import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { packed } from '../../lib/wire/packing.js';
import { dumpQueue } from '../support/dump.js';
import { checkOwed } from '../support/family-invariants.js';
import { checkInvariants, expectInvariantsOf } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';

const [WAITS, FALLEN, A, B, C, D, E] = Array.from({ length: 7 }, (_, n) => `JOB0000000000${n}`) as [
  string,
  string,
  string,
  string,
  string,
  string,
  string,
];
const key = (queue: string, name: string) => `emq:{${queue}}:${name}`;
const row = (queue: string, id: string) => key(queue, `job:${id}`);
type Fields = Record<string, string | number>;

async function put(client: Redis, queue: string, set: string, state: string, id: string, fields: Fields = {}) {
  await client.zadd(key(queue, set), 0, id);
  await client.hset(row(queue, id), { state, attempts: 0, payload: 'p', ...fields });
  await client.hincrby(key(queue, 'metrics:enqueued'), 'count', 1);
}

/**
 * Two parents in `q`: one waits, for A here, for B and C in `r`, of which C has died under `hold`, and for E, which `r` is owed;
 * D has ended, and `r` owes word of it. The other is dead of A's namesake in `r`.
 */
async function rightQueues(client: Redis): Promise<void> {
  await put(client, 'q', 'waiting', 'awaiting_children', WAITS, { flow: 1 });
  await client.sadd(`${row('q', WAITS)}:children`, `q|${A}`, `r|${B}`, `r|${C}`, `r|${D}`, `r|${E}`);
  await client.set(`${row('q', WAITS)}:dependencies`, 5);
  await put(client, 'q', 'pending', 'pending', A, { parent: WAITS });
  await put(client, 'r', 'pending', 'pending', B, { parent: WAITS, parent_queue: 'q' });
  await put(client, 'r', 'dead', 'dead', C, { parent: WAITS, parent_queue: 'q', parent_policy: 'hold' });
  await client.xadd(key('q', 'outbox'), '5-1', 'to', 'r', 'kind', 'land', 'nodes', packed(['0', '1', E]));
  const settled = ['parent', WAITS, 'child', D, 'how', 'done', 'policy', 'fail', 'text', 'r'];
  await client.xadd(key('r', 'outbox'), '7-1', 'to', 'q', 'kind', 'settle', ...settled);
  await client.hset(key('q', 'relayed'), 'r', '7-0');
  await put(client, 'q', 'dead', 'dead', FALLEN, { flow: 1, died_of: 'children' });
  await client.sadd(`${row('q', FALLEN)}:children`, `r|${A}`, `r|${D}`);
  await client.set(`${row('q', FALLEN)}:dependencies`, 1);
  await client.hset(`${row('q', FALLEN)}:failed`, A, 'boom');
  await client.hset(`${row('q', FALLEN)}:processed`, D, '1');
  await put(client, 'r', 'dead', 'dead', A, { parent: FALLEN, parent_queue: 'q' });
}

type Break = [what: string, says: RegExp[], make: (client: Redis) => Promise<unknown>];
const of = (id: string, record: string) => `${row('q', id)}:${record}`;

const BROKEN: Break[] = [
  ['a count that is too high', [/^I5 JOB00000000000 counts 6 .* 5 are/], (c) => c.incr(of(WAITS, 'dependencies'))],
  ['a count that went missing', [/^I5 .* counts undefined/], (c) => c.del(of(WAITS, 'dependencies'))],
  ['a count below zero', [/^I5 .* counts -1 .* 1 are/], (c) => c.set(of(FALLEN, 'dependencies'), -1)],
  [
    'a child recorded and not counted down',
    [/^I5 .* counts 5 .* 4 are/],
    (c) => c.hset(of(WAITS, 'processed'), A, 'r'),
  ],
  [
    'a stranger in a record',
    [/^I5 JOB00000000000 has JOB00000000009 in unsuccessful, which is no child/],
    async (c) => {
      await c.hset(of(WAITS, 'unsuccessful'), 'JOB00000000009', 'e');
      await c.decr(of(WAITS, 'dependencies'));
    },
  ],
  [
    'a child in two records',
    [/^I5 JOB00000000001 has JOB00000000002 in failed and in another/],
    async (c) => {
      await c.hset(of(FALLEN, 'unsuccessful'), A, 'e');
      await c.decr(of(FALLEN, 'dependencies'));
    },
  ],
  [
    'two children of one id',
    [/^I5 JOB00000000000 has two children of one id/],
    async (c) => {
      await c.sadd(of(WAITS, 'children'), `s|${A}`);
      await c.incr(of(WAITS, 'dependencies'));
    },
  ],
  [
    'a parent that waits for nothing',
    [/^I5 JOB00000000000 waits for nothing/],
    async (c) => {
      for (const child of [A, B, C, D, E]) await c.hset(of(WAITS, 'processed'), child, 'r');
      await c.set(of(WAITS, 'dependencies'), 0);
    },
  ],
  [
    'a parent dead of children that have all been taken out',
    [/^I5 JOB00000000001 is dead of its children, and none/],
    (c) => c.del(of(FALLEN, 'failed')),
  ],
  [
    'a parent that lives on beside a child that failed it',
    [/^I5 JOB00000000000 is awaiting_children, and was failed by JOB00000000003/],
    (c) => c.hset(of(WAITS, 'failed'), B, 'boom'),
  ],
  [
    'a living job that died of something',
    [/^I5 JOB00000000002 is pending and died of self/],
    (c) => c.hset(row('q', A), 'died_of', 'self'),
  ],
  [
    'a parent without children',
    [/^I5 JOB00000000002 is a parent and knows no children/],
    (c) => c.hset(row('q', A), 'flow', 1),
  ],
  [
    'children of what is no parent',
    [/^I5 JOB00000000000 has children and no field flow/],
    (c) => c.hdel(row('q', WAITS), 'flow'),
  ],
  [
    'a record under another type',
    [/^row job:JOB00000000001:failed has the wrong type/, /^I5 .* none of them failed it/],
    async (c) => {
      await c.del(of(FALLEN, 'failed'));
      await c.set(of(FALLEN, 'failed'), 'x');
    },
  ],
];

const OWED: Break[] = [
  [
    'a child that went, and nobody was told',
    [/^I6 q\|JOB00000000000 and its child r\|JOB00000000003: its end is neither recorded nor owed/],
    (c) => c.del(row('r', B)),
  ],
  ['a child in the same queue that went, and nobody was told', [/child q\|JOB00000000002/], (c) => c.del(row('q', A))],
  [
    'a child that died, and nobody was told',
    [/child r\|JOB00000000003: its end is neither/],
    (c) => c.hset(row('r', B), 'state', 'dead'),
  ],
  [
    'a child that is done, and nobody was told',
    [/child r\|JOB00000000003: its end is neither/],
    (c) => c.hset(row('r', B), 'state', 'done'),
  ],
  [
    "a child whose id is a stranger's",
    [/child r\|JOB00000000003: its end is neither/],
    (c) => c.hset(row('r', B), 'parent', FALLEN),
  ],
  [
    'word of an end that counts as applied and was not recorded',
    [/child r\|JOB00000000005: its end is neither/],
    (c) => c.hset(key('q', 'relayed'), 'r', '7-1'),
  ],
  [
    'word of an end that was lost',
    [/child r\|JOB00000000005: its end is neither/],
    (c) => c.xdel(key('r', 'outbox'), '7-1'),
  ],
  [
    'a landing that was lost',
    [/child r\|JOB00000000006: its end is neither/],
    (c) => c.xdel(key('q', 'outbox'), '5-1'),
  ],
  [
    'a landing that counts as applied and did not happen',
    [/child r\|JOB00000000006: its end is neither/],
    (c) => c.hset(key('r', 'relayed'), 'q', '5-1'),
  ],
  [
    'a child that was reprocessed, and nobody was told',
    [/q\|JOB00000000001 and its child r\|JOB00000000002: it lives again/],
    (c) => c.hset(row('r', A), 'state', 'pending'),
  ],
];

describe('the checker of families', () => {
  const server = useServer();
  guardLeaks();

  it('takes a result that is owed together with others for word of an end', async () => {
    const client = server.client();
    await rightQueues(client);
    await client.del(row('r', B));
    const results = packed([B, 'r', 'x', 'y']);
    await client.xadd(key('r', 'outbox'), '8-1', 'to', 'q', 'kind', 'results', 'parent', WAITS, 'results', results);
    expect(checkOwed({ q: await dumpQueue(client, 'q'), r: await dumpQueue(client, 'r') })).toEqual([]);
  });

  it('accepts two queues with parents and children in every state', async () => {
    const client = server.client();
    await rightQueues(client);
    await expectInvariantsOf(client, ['q', 'r']);
  });

  it.each(BROKEN)('catches %s, and reports nothing else', async (_what, says, make) => {
    const client = server.client();
    await rightQueues(client);
    await make(client);
    const violations = checkInvariants(await dumpQueue(client, 'q'));
    expect(violations).toEqual(says.map((pattern) => expect.stringMatching(pattern)));
  });

  it.each(OWED)('catches %s, and reports nothing else', async (_what, says, make) => {
    const client = server.client();
    await rightQueues(client);
    await make(client);
    const violations = checkOwed({ q: await dumpQueue(client, 'q'), r: await dumpQueue(client, 'r') });
    expect(violations).toEqual(says.map((pattern) => expect.stringMatching(pattern)));
    await expect(expectInvariantsOf(client, ['q', 'r'])).rejects.toThrow();
  });

  it('excuses a parent that is being removed: it stays where it is, whatever its children do', async () => {
    const client = server.client();
    await rightQueues(client);
    await client.hset(row('q', FALLEN), 'removing', 1);
    await client.del(of(FALLEN, 'failed'));
    expect(checkInvariants(await dumpQueue(client, 'q'))).toEqual([]);
  });

  it('takes word that a child lives again as told while it is on its way', async () => {
    const client = server.client();
    await rightQueues(client);
    await client.hset(row('r', A), 'state', 'pending');
    const back = ['parent', FALLEN, 'child', A, 'how', 'back', 'policy', 'fail', 'text', ''];
    await client.xadd(key('r', 'outbox'), '7-2', 'to', 'q', 'kind', 'settle', ...back);
    expect(checkOwed({ q: await dumpQueue(client, 'q'), r: await dumpQueue(client, 'r') })).toEqual([]);
  });
});
