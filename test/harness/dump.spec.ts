import { describe, expect, it } from '@jest/globals';
import { dumpQueue } from '../support/dump.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';

describe('the dump of a queue', () => {
  const server = useServer();
  guardLeaks();

  it('shows every key of the queue by its type, and nothing of other queues', async () => {
    const client = server.client();
    await client.zadd('emq:{q}:pending', 5, 'JOB00000000002', 0, 'JOB00000000003', 0, 'JOB00000000001');
    await client.hset('emq:{q}:job:JOB00000000001', { state: 'pending', attempts: 0, payload: 'é' });
    await client.set('emq:{q}:paused', '1');
    await client.sadd('emq:{q}:job:JOB00000000001:children', 'b', 'a');
    await client.rpush('emq:{q}:wake', '2', '1');
    await client.xadd('emq:{q}:outbox', '1-1', 'to', 'other', 'id', 'x');
    await client.set('emq:{q2}:paused', '1');
    await client.set('other:{q}:paused', '1');
    expect(await dumpQueue(client, 'q')).toEqual({
      pending: {
        zset: [
          ['JOB00000000001', 0],
          ['JOB00000000003', 0],
          ['JOB00000000002', 5],
        ],
      },
      'job:JOB00000000001': { hash: { state: 'pending', attempts: '0', payload: 'é' } },
      'job:JOB00000000001:children': { set: ['a', 'b'] },
      paused: { string: '1' },
      wake: { list: ['2', '1'] },
      outbox: { stream: [['1-1', { to: 'other', id: 'x' }]] },
    });
  });

  it('is the same text for the same contents written in another order', async () => {
    const client = server.client();
    const fields = Array.from({ length: 700 }, (_, index) => [`f${index}`, `${index}`] as const);
    const write = async (order: readonly (readonly [string, string])[]) => {
      await server.flush();
      for (const [field, value] of order) {
        client.hset('emq:{q}:job:JOB00000000001', field, value);
        client.sadd('emq:{q}:job:JOB00000000001:children', field);
        client.set(`emq:{q}:dedup:${field}`, value);
      }
      return JSON.stringify(await dumpQueue(client, 'q'));
    };
    expect(await write(fields)).toBe(await write(fields.toReversed()));
  });

  it('keeps bytes that are not text apart from text, under either protocol', async () => {
    for (const protocol of [2, 3] as const) {
      const client = server.client({ protocol });
      await client.hset('emq:{q}:job:x', 'payload', Buffer.from([0xff, 0x00]), 'text', 'base64!/wA=', 'nul', '\0');
      expect(await dumpQueue(client, 'q')).toEqual({
        'job:x': { hash: { payload: 'base64!/wA=', text: 'base64!YmFzZTY0IS93QT0=', nul: '\0' } },
      });
    }
  });

  it('shows scores exactly, fractions and infinities too', async () => {
    const client = server.client();
    await client.zadd('emq:{q}:lanes', '-inf', 'a', '0.1', 'b', '9007199254740991', 'c', '+inf', 'd');
    expect(await dumpQueue(client, 'q')).toEqual({
      lanes: {
        zset: [
          ['a', -Infinity],
          ['b', 0.1],
          ['c', Number.MAX_SAFE_INTEGER],
          ['d', Infinity],
        ],
      },
    });
  });

  it('says which keys expire, but not when', async () => {
    const client = server.client();
    await client.set('emq:{q}:leader', 'p1', 'PX', 10_000);
    await client.set('emq:{q}:paused', '1');
    expect(await dumpQueue(client, 'q')).toEqual({ leader: { string: 'p1', expires: true }, paused: { string: '1' } });
  });

  it('takes queue names and prefixes with pattern characters as they are', async () => {
    const client = server.client();
    await client.set('p.1:{[a]*?\\^}:paused', '1');
    await client.set('p.1:{axy}:paused', '1');
    expect(await dumpQueue(client, '[a]*?\\^', 'p.1')).toEqual({ paused: { string: '1' } });
    expect(await dumpQueue(client, 'nothing here')).toEqual({});
  });
});
