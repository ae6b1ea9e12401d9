import { existsSync } from 'node:fs';
import { afterEach, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { RedisProcess, startCluster, startReplica, startSentinel } from '../../scripts/server/index.js';
import { describeWithProcess } from '../support/availability.js';
import { dumpQueue } from '../support/dump.js';
import { guardLeaks } from '../support/leaks.js';
import { until } from '../support/until.js';

describeWithProcess('a server process', () => {
  const running: { stop(): Promise<void> }[] = [];
  const keep = <T extends { stop(): Promise<void> }>(server: T): T => {
    running.push(server);
    return server;
  };
  afterEach(async () => {
    await Promise.all(running.splice(0).map((server) => server.stop()));
  });
  guardLeaks();

  it('answers PING as soon as it has started, and is gone with its folder when stopped', async () => {
    const server = keep(await RedisProcess.start());
    expect(await server.command('PING')).toBe('PONG');
    const [, dir] = (await server.command('CONFIG', 'GET', 'dir')) as string[];
    expect(existsSync(dir!)).toBe(true);
    await server.stop();
    expect(server.pid).toBeUndefined();
    expect(existsSync(dir!)).toBe(false);
    await expect(server.command('PING')).rejects.toThrow('ECONNREFUSED');
  });

  it('still has its data after SIGKILL and a restart when it keeps an append-only file', async () => {
    const server = keep(await RedisProcess.start({ appendonly: true }));
    await server.command('SET', 'kept', 'yes');
    const firstPid = server.pid;
    await server.kill();
    expect(server.pid).toBeUndefined();
    await server.restart();
    expect(server.pid).not.toBe(firstPid);
    expect(await server.command('GET', 'kept')).toBe('yes');
  });

  it('has lost its data after SIGKILL and a restart when it keeps none', async () => {
    const server = keep(await RedisProcess.start());
    await server.command('SET', 'kept', 'yes');
    await server.kill();
    await server.restart();
    expect(await server.command('GET', 'kept')).toBeNull();
  });

  it('is silent while paused and answers afterwards', async () => {
    const server = keep(await RedisProcess.start());
    server.pause();
    let answered = false;
    const pong = server.command('PING').then((reply) => {
      answered = true;
      return reply;
    });
    await expect(until(() => answered, { timeoutMs: 50, what: 'an answer' })).rejects.toThrow('an answer');
    server.resume();
    expect(await pong).toBe('PONG');
  });

  it('applies configuration lines, repeated ones too, and a password', async () => {
    const config = { requirepass: 's3:cr/et', 'rename-command': ['FLUSHALL ""', 'FLUSHDB ""'], maxmemory: '64mb' };
    const server = keep(await RedisProcess.start({ config }));
    expect(server.url).toBe(`redis://:s3%3Acr%2Fet@127.0.0.1:${server.port}`);
    expect(await server.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '67108864']);
    await expect(server.command('FLUSHDB')).rejects.toThrow('unknown command');
  });

  it('refuses to start on a fixed port that is taken, with the reason from the log', async () => {
    const first = keep(await RedisProcess.start());
    await expect(RedisProcess.start({ port: first.port })).rejects.toThrow(/Address already in use/);
    expect(await first.command('PING')).toBe('PONG');
  });

  it('names the wrong line when its configuration is refused', async () => {
    await expect(RedisProcess.start({ config: { 'no-such-option': '1' } })).rejects.toThrow(/no-such-option/);
  });

  it('is followed by a replica', async () => {
    const primary = keep(await RedisProcess.start());
    await primary.command('SET', 'before', '1');
    const replica = keep(await startReplica(primary));
    expect(await replica.command('GET', 'before')).toBe('1');
    await primary.command('SET', 'after', '2');
    await until(async () => (await replica.command('GET', 'after')) === '2', { what: 'the write to be replicated' });
    await expect(replica.command('SET', 'x', '1')).rejects.toThrow('READONLY');
  });

  it('is replaced by its replica when a Sentinel watches and it dies', async () => {
    const set = keep(await startSentinel());
    expect(await set.primaryPort()).toBe(set.primary.port);
    await set.primary.kill();
    await until(async () => (await set.primaryPort()) === set.replica.port, {
      timeoutMs: 15_000,
      what: 'Sentinel to name the replica as the primary',
    });
    await until(async () => ((await set.replica.command('ROLE')) as string[])[0] === 'master', {
      what: 'the promotion',
    });
    expect(await set.replica.command('SET', 'x', '1')).toBe('OK');
  });

  it('forms a cluster in which every slot is served by one of three nodes', async () => {
    const cluster = keep(await startCluster(3));
    const perNode = await Promise.all(
      cluster.nodes.map(async (node) => {
        const slots = (await node.command('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
        return slots.map(([from, to, [, port]]) => ({ from, to, port })).sort((a, b) => a.from - b.from);
      }),
    );
    expect(perNode[0]).toEqual([
      { from: 0, to: 5460, port: cluster.nodes[0]!.port },
      { from: 5461, to: 10921, port: cluster.nodes[1]!.port },
      { from: 10922, to: 16383, port: cluster.nodes[2]!.port },
    ]);
    expect(perNode[1]).toEqual(perNode[0]);
    expect(perNode[2]).toEqual(perNode[0]);
    const client = new Cluster([{ host: '127.0.0.1', port: cluster.nodes[2]!.port }]);
    keep({ stop: () => new Promise<void>((resolve) => void client.once('end', resolve).disconnect()) });
    // One queue for each node.
    const queues = { a: 15495, b: 3300, c: 7365 };
    for (const [queue, slot] of Object.entries(queues)) {
      expect(await client.cluster('KEYSLOT', `emq:{${queue}}:paused`)).toBe(slot);
      await client.set(`emq:{${queue}}:paused`, queue);
      expect(await dumpQueue(client, queue)).toEqual({ paused: { string: queue } });
    }
  });
});
