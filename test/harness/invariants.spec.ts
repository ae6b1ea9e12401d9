import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { dumpQueue } from '../support/dump.js';
import { checkInvariants, expectInvariants, InvariantWatch } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';

const [P, LANED, ACTIVE, LATER, DEAD, PARENT, DONE] = Array.from({ length: 7 }, (_, n) => `JOB0000000000${n}`) as [
  string,
  string,
  string,
  string,
  string,
  string,
  string,
];
const base = 'emq:{q}:';
const job = (id: string) => `${base}job:${id}`;

/** A queue with a job in every place, as it should be: 9 enqueued, 2 of them completed (one row kept), 1 removed. */
async function rightQueue(client: Redis): Promise<void> {
  const row = (id: string, fields: Record<string, string | number>) =>
    client.hset(job(id), { attempts: 0, payload: 'p', ...fields });
  await client.zadd(`${base}pending`, 3, P);
  await row(P, { state: 'pending', attempts: 2, lapsed: 2, stalls: 1, priority: 3, dedup: 'once' });
  await client.set(`${base}dedup:once`, P);
  await client.set(`${base}dedups`, 1);
  await client.zadd(`${base}lane:a:b`, 0, LANED);
  await row(LANED, { state: 'pending', lane: 'a:b' });
  await client.zadd(`${base}lanes`, 0, '', 0, 'a:b');
  await client.zadd(`${base}lanes:waiting`, 1, 'a:b');
  await client.mset(`${base}lanes:floor`, 0, `${base}lanes:total`, 1);
  await client.zadd(`${base}active`, 1_790_000_000_000, ACTIVE);
  await row(ACTIVE, { state: 'active', attempts: 3, lapsed: 2, lease_epoch: '-' });
  await client.zadd(`${base}schedule`, 1_790_000_000_000, LATER);
  await row(LATER, { state: 'scheduled' });
  await client.zadd(`${base}dead`, 0, DEAD);
  await row(DEAD, { state: 'dead', attempts: 3, lapsed: 2, dedup: 'gone' });
  await client.zadd(`${base}waiting`, 0, PARENT);
  await row(PARENT, { state: 'awaiting_children', flow: 1 });
  await client.set(`${job(PARENT)}:dependencies`, 1);
  await client.sadd(`${job(PARENT)}:children`, `q|${P}`);
  await client.hset(job(DONE), { state: 'done', attempts: 1, result: '1' });
  await client.pexpire(job(DONE), 60_000);
  for (const [name, count] of Object.entries({ enqueued: 9, completed: 2, removed: 1 })) {
    await client.hset(`${base}metrics:${name}`, 'count', count);
  }
}

type Break = (client: Redis) => Promise<unknown>;

const BROKEN: [what: string, says: RegExp[], make: Break][] = [
  ['an id in two sets', [/^I1 JOB00000000003 stands in active and schedule/], (c) => c.zadd(`${base}active`, 1, LATER)],
  [
    'an id in pending and in a lane',
    [/^I1 JOB00000000001 stands in lane:a:b and pending/],
    (c) => c.zadd(`${base}pending`, 0, LANED),
  ],
  [
    'an active job whose row says pending',
    [/^I1 .*active.*pending/],
    (c) => c.hset(job(ACTIVE), 'state', 'pending', 'lapsed', 3),
  ],
  [
    'a done row that is still a member',
    [/^I1 JOB00000000004 stands in dead and its state is done/],
    async (c) => {
      await c.hdel(job(DEAD), 'lapsed');
      await c.hset(job(DEAD), 'state', 'done');
    },
  ],
  [
    'a laned job in the wrong lane',
    [/^I1 JOB00000000001 belongs in lane:other/],
    (c) => c.hset(job(LANED), 'lane', 'other'),
  ],
  ['a member without a row', [/^I2 JOB00000000004 stands in dead and has no row/], (c) => c.del(job(DEAD))],
  [
    'a row that stands nowhere',
    [
      /^I2 JOB00000000000 has a row \(pending\) and stands nowhere/,
      /^I7 enqueued 9 .*members 5/,
      /^I8 lane "", .* in its ring/,
    ],
    (c) => c.zrem(`${base}pending`, P),
  ],
  [
    'flow keys that outlive their parent',
    [/^I2 JOB00000000005 has ended but left children, dependencies/],
    async (c) => {
      await c.zrem(`${base}waiting`, PARENT);
      await c.del(job(PARENT));
      await c.hincrby(`${base}metrics:completed`, 'count', 1);
    },
  ],
  ['an active job that was never claimed', [/^I4 .*never claimed/], (c) => c.hset(job(ACTIVE), 'attempts', 0)],
  [
    'a pending job whose lapsed token is not its last',
    [/^I4 JOB00000000000 is pending/],
    (c) => c.hset(job(P), 'lapsed', 1),
  ],
  [
    'an active job that could be settled as lapsed',
    [/^I4 JOB00000000002 is active/],
    (c) => c.hset(job(ACTIVE), 'lapsed', 3),
  ],
  ['a scheduled job with a lapsed token', [/^I4 JOB00000000003 is scheduled/], (c) => c.hset(job(LATER), 'lapsed', 0)],
  [
    'a job enqueued twice in the count',
    [/^I7 enqueued 10 is not completed 2 \+ removed 1 \+ members 6/],
    (c) => c.hincrby(`${base}metrics:enqueued`, 'count', 1),
  ],
  ['a completion counted twice', [/^I7 .*completed 3/], (c) => c.hincrby(`${base}metrics:completed`, 'count', 1)],
  ['a removal that was not counted', [/^I7 .*removed 0/], (c) => c.del(`${base}metrics:removed`)],
  [
    'a priority that was not restored',
    [/^row JOB00000000000 has score 0 in pending, not 3/],
    (c) => c.zadd(`${base}pending`, 0, P),
  ],
  [
    'attempts that are no count',
    [/^row JOB00000000003: attempts is 1\.0/],
    (c) => c.hset(job(LATER), 'attempts', '1.0'),
  ],
  ['a row without a payload', [/^row JOB00000000003 has no payload/], (c) => c.hdel(job(LATER), 'payload')],
  [
    'a live row that will expire',
    [/^row JOB00000000003 is scheduled and will expire/],
    (c) => c.pexpire(job(LATER), 60_000),
  ],
  [
    'a set kept under the wrong type',
    [/^row schedule has the wrong type/, /^I2 JOB00000000003/, /^I7/],
    async (c) => {
      await c.del(`${base}schedule`);
      await c.set(`${base}schedule`, '1');
    },
  ],
  [
    'a deduplication key whose owner has ended',
    [/^dedup dedup:gone is held by JOB00000000004/],
    (c) => c.set(`${base}dedup:gone`, DEAD),
  ],
  ['a deduplication key held for a stranger', [/^dedup dedup:twice is held by/], (c) => c.set(`${base}dedup:twice`, P)],
];

describe('the checker of invariants', () => {
  const server = useServer();
  guardLeaks();

  it('accepts an empty queue and one with a job in every place', async () => {
    const client = server.client();
    expect(checkInvariants(await dumpQueue(client, 'q'))).toEqual([]);
    await rightQueue(client);
    expect(checkInvariants(await dumpQueue(client, 'q'))).toEqual([]);
  });

  it.each(BROKEN)('catches %s, and reports nothing else', async (_what, says, make) => {
    const client = server.client();
    await rightQueue(client);
    await make(client);
    const violations = checkInvariants(await dumpQueue(client, 'q'));
    expect(violations).toEqual(says.map((pattern) => expect.stringMatching(pattern)));
  });

  it('catches a token that goes down while the row exists, also when nobody looked right before', async () => {
    const client = server.client();
    const watch = new InvariantWatch();
    await rightQueue(client);
    expect(watch.see(await dumpQueue(client, 'q'))).toEqual([]);
    await client.hset(job(DEAD), 'attempts', 2);
    await client.hdel(job(DEAD), 'lapsed');
    const dump = await dumpQueue(client, 'q');
    expect(watch.see(dump)).toEqual(['I3 JOB00000000004: attempts went from 3 down to 2']);
    expect(watch.see(dump)).toHaveLength(1);
  });

  it('lets an id start again after its row was gone', async () => {
    const client = server.client();
    const watch = new InvariantWatch();
    await rightQueue(client);
    watch.see(await dumpQueue(client, 'q'));
    await server.flush();
    expect(watch.see(await dumpQueue(client, 'q'))).toEqual([]);
    await rightQueue(client);
    await client.hset(job(DEAD), 'attempts', 1);
    expect(watch.see(await dumpQueue(client, 'q'))).toEqual([]);
  });

  it('excuses rows deleted by hand, before and after their ids are popped', async () => {
    const client = server.client();
    await rightQueue(client);
    await client.del(job(LATER));
    const ghosts = [LATER];
    expect(checkInvariants(await dumpQueue(client, 'q'), { ghosts })).toEqual([]);
    await client.zrem(`${base}schedule`, LATER);
    expect(checkInvariants(await dumpQueue(client, 'q'), { ghosts })).toEqual([]);
    expect(checkInvariants(await dumpQueue(client, 'q'))).toHaveLength(1);
  });

  it('fails a spec with all violations in one message', async () => {
    const client = server.client();
    await rightQueue(client);
    await expectInvariants(client, 'q');
    await client.del(job(DEAD));
    await client.hincrby(`${base}metrics:completed`, 'count', 1);
    await expect(expectInvariants(client, 'q')).rejects.toThrow(/^queue q:\n {2}I2 .*\n {2}I7 .*$/);
  });
});
