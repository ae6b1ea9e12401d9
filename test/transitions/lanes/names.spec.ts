import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { expectInvariants } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { useExecutor } from '../executor.js';
import { Hand, id, PAST } from '../hand.js';
import { SEP } from '../laned.js';

const [A, B, C] = [id(1), id(2), id(3)];

/** What somebody might call a lane, a group or a key who wants to reach another key. */
const HOSTILE = [
  ...['x:y', `job:${A}`, 'waiting', 'parked', 'floor', 'active', 'total', 's:parked', 'state:x', 'idle:', 'group:g'],
  ...[
    '{x}',
    '}:{q',
    '{}',
    '}',
    'emq:{q}:pending',
    '..',
    '*',
    '?',
    '[a]',
    '\\',
    "'",
    '"',
    ' ',
    '\n',
    '\t',
    '\0',
    '\u001e',
    '-',
    '0',
  ],
  ...['nan', '+inf', '__proto__', 'constructor', 'é', '𝄞', '%s', '%d', 'x'.repeat(198)],
];

describe('names of lanes, groups and keys', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let client: Redis;
  let queue: Hand;
  beforeEach(() => {
    client = server.client();
    queue = new Hand(client, executor.current);
  });

  it.each(HOSTILE)('cannot meet another key: %j', async (name) => {
    const lanes = [name, `${name}${SEP}${name}`, `g${SEP}${name}`];
    for (const [n, lane] of lanes.entries()) {
      await queue.run('lane', ['lane', lane, 'cap', 5]);
      const fields = ['lane', lane, 'dedup', `u:${name}${n}`];
      await queue.run('enqueue', [
        id(10 + n),
        'p',
        '',
        2,
        ...fields,
        id(20 + n),
        'p',
        '',
        1,
        'dedup',
        `l:${name}${n}b`,
      ]);
    }
    await queue.run('lane', ['group', name, 'weight', 2]);
    await queue.pending(A);
    await queue.client.zadd(`${queue.keys.base}lanes`, 'NX', 0, '');
    const claimed = (await queue.run('claim', [60_000, 100])) as unknown[];
    expect(claimed).toHaveLength(3 * 7);
    await client.zadd(queue.keys.active, 'XX', PAST, id(10));
    await queue.run('reap', [10, 5, '', 0]);
    await expectInvariants(client, 'q');
    const known = (await queue.run('lane_list', [0, 10])) as unknown[];
    expect(known.slice(1).map((lane) => String((lane as unknown[])[0]))).toEqual(expect.arrayContaining(lanes));
    const ids = [A, ...[10, 11, 12, 20, 21, 22].map(id)];
    await queue.run('complete', [0, ...ids.flatMap((jobId) => [jobId, 1, 0, ''])]);
    for (const lane of lanes) await queue.run('lane', ['lane', lane, 'cap', '']);
    await queue.run('lane', ['group', name, 'weight', '']);
    await queue.run('lane', []);
    const left = Object.keys(await queue.dump()).sort();
    const bookkeeping = ['dedups', 'lanes:floor', 'lanes:total', 'lanestate:', 'metrics:completed', 'metrics:enqueued'];
    expect(left).toEqual([...bookkeeping, 'metrics:stalled']);
    expect((await client.keys('*')).filter((key) => !key.startsWith(queue.keys.base))).toEqual([]);
  });

  it('cannot meet each other: a lane, a group and a lane of it that are called the same', async () => {
    await queue.run('enqueue', [A, 'p', '', 1, 'lane', 'x', B, 'p', '', 1, 'lane', `x${SEP}x`, C, 'p', '', 0]);
    await queue.run('lane', ['lane', 'x', 'weight', 2]);
    await queue.run('lane', ['group', 'x', 'weight', 3]);
    await queue.run('lane', ['lane', `x${SEP}x`, 'weight', 4]);
    await queue.run('lane', ['lane', '', 'weight', 5]);
    const weight = (key: string) => client.hget(queue.keys.base + key, 'weight');
    const found = ['lanestate:x', 'lanegroupstate:x', `lanestate:x${SEP}x`, 'lanestate:'].map(weight);
    expect(await Promise.all(found)).toEqual(['2', '3', '4', '5']);
    await expectInvariants(client, 'q');
  });
});
