import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { RedisOptions } from 'ioredis';
import { Redis } from 'ioredis';
import { RedisProcess } from '../../scripts/server/redis-process.js';
import { itWithProcess } from '../support/availability.js';
import { guardLeaks } from '../support/leaks.js';
import { FaultProxy } from '../support/proxy.js';
import { closeAll, useServer } from '../support/server.js';
import { until } from '../support/until.js';

describe('the fault proxy', () => {
  const server = useServer();
  let proxy: FaultProxy;
  const clients: Redis[] = [];
  /** A client through the proxy that never comes back by itself. */
  const through = (url = proxy.url, options: Omit<RedisOptions, 'replyMapping'> = {}) => {
    const client = new Redis(url, { retryStrategy: () => null, disconnectTimeout: 50, ...options });
    client.on('error', () => {});
    clients.push(client);
    return client;
  };
  beforeEach(async () => {
    proxy = await FaultProxy.listen(server.url);
  });
  afterEach(async () => {
    await closeAll(clients);
    await proxy.close();
  });
  guardLeaks();

  /** Resolves with whether `answer` comes within 30 ms: bounded, and only ever asked of something that must not come. */
  const silent = (answer: Promise<unknown>) => {
    let answered = false;
    answer.then(
      () => (answered = true),
      () => (answered = true),
    );
    return until(() => answered, { timeoutMs: 30, what: 'an answer' }).then(
      () => false,
      () => true,
    );
  };

  it('passes commands and answers, large and binary ones too', async () => {
    const client = through();
    const large = Buffer.alloc(3_000_000, Buffer.from([0xff, 0x0d, 0x0a, 0x2a]));
    await client.set('large', large);
    expect((await client.getBuffer('large'))!.equals(large)).toBe(true);
    const replies = await Promise.all(Array.from({ length: 5_000 }, () => client.incr('n')));
    expect(replies.at(-1)).toBe(5_000);
    expect(proxy.size).toBe(1);
  });

  it('delays each piece, and keeps the order when delays differ', async () => {
    const client = through();
    await client.ping();
    const delays = [40, 0, 20];
    proxy.delay(() => delays.pop() ?? 0);
    const started = performance.now();
    const order: number[] = [];
    await Promise.all([client.incr('n'), client.incr('n')].map((reply) => reply.then((n) => order.push(n))));
    expect(order).toEqual([1, 2]);
    proxy.delay(30);
    await client.ping();
    expect(performance.now() - started).toBeGreaterThanOrEqual(60);
    proxy.delay(0);
  });

  it('goes dark both ways without closing, and delivers everything afterwards', async () => {
    const client = through();
    await client.ping();
    proxy.freeze();
    const reply = client.incr('n');
    expect(await silent(reply)).toBe(true);
    expect(await server.client().get('n')).toBeNull();
    proxy.thaw();
    expect(await reply).toBe(1);
  });

  it('goes dark for replies only: the server has done it, the client still waits', async () => {
    const client = through();
    await client.ping();
    proxy.freeze('replies');
    const reply = client.incr('n');
    const direct = server.client();
    await until(async () => (await direct.get('n')) === '1', { what: 'the command to be executed' });
    expect(await silent(reply)).toBe(true);
    proxy.thaw('replies');
    expect(await reply).toBe(1);
  });

  it('goes dark for requests only: what the server says by itself still comes', async () => {
    const client = through();
    await client.subscribe('news');
    const heard = new Promise((resolve) => client.once('message', (_channel, text) => resolve(text)));
    proxy.freeze('requests');
    await server.client().publish('news', 'hello');
    expect(await heard).toBe('hello');
    expect(await silent(client.unsubscribe('news'))).toBe(true);
    proxy.thaw();
  });

  it('loses every reply while told to', async () => {
    const client = through();
    await client.ping();
    proxy.dropReplies();
    const lost = client.incr('n');
    lost.catch(() => {});
    const direct = server.client();
    await until(async () => (await direct.get('n')) === '1', { what: 'the command to be executed' });
    expect(await silent(lost)).toBe(true);
    proxy.dropReplies(false);
    proxy.cut();
    await expect(lost).rejects.toThrow('Connection is closed');
  });

  it('cuts all connections and refuses new ones until told to accept', async () => {
    const client = through();
    await client.ping();
    proxy.refuse();
    proxy.cut();
    await until(() => client.status === 'end' && proxy.size === 0, { what: 'the cut to be noticed' });
    await expect(through(proxy.url, { lazyConnect: true }).connect()).rejects.toThrow('Connection is closed');
    proxy.accept();
    expect(await through().ping()).toBe('PONG');
  });

  it('shows each command to hooks, which may drop it', async () => {
    const client = through();
    const seen: string[] = [];
    const forget = proxy.onRequest((command) => {
      seen.push(command.toString());
      return command.includes('doomed') ? 'drop' : undefined;
    });
    await client.set('a', '1');
    const doomed = client.set('doomed', '1');
    doomed.catch(() => {});
    expect(await silent(doomed)).toBe(true);
    expect(await server.client().exists('doomed')).toBe(0);
    expect(seen.slice(-2)).toEqual([
      '*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\n1\r\n',
      '*3\r\n$3\r\nset\r\n$6\r\ndoomed\r\n$1\r\n1\r\n',
    ]);
    forget();
  });

  it('tells when a command has passed', async () => {
    const client = through();
    const passed = proxy.request('incr');
    await client.set('n', '5');
    const reply = client.incr('n');
    expect((await passed).toString()).toContain('incr');
    expect(await reply).toBe(6);
  });

  it('holds one command, and those behind it on its connection only', async () => {
    const [held, free] = [through(), through()];
    await Promise.all([held.ping(), free.ping()]);
    const coming = proxy.hold('incr');
    const replies = Promise.all([held.set('n', '5'), held.incr('n'), held.get('n')]);
    const { release } = await coming;
    await until(async () => (await free.get('n')) === '5', { what: 'the command before it' });
    expect(await silent(replies)).toBe(true);
    release();
    expect(await replies).toEqual(['OK', 6, '6']);
  });

  it('cuts before a command, which then has not happened', async () => {
    const client = through();
    await client.ping();
    const cut = proxy.cutBefore('incr');
    await expect(client.incr('n')).rejects.toThrow('Connection is closed');
    await cut;
    expect(await server.client().get('n')).toBeNull();
  });

  it('lets the server execute exactly one command of a pipeline, then loses the reply and cuts', async () => {
    const client = through();
    await client.ping();
    const cut = proxy.passAndDropReply('second');
    const replies = Promise.allSettled([client.set('first', '1'), client.set('second', '2'), client.set('third', '3')]);
    await cut;
    expect((await replies).at(1)).toMatchObject({ status: 'rejected' });
    expect(await server.client().mget('first', 'second', 'third')).toEqual(['1', '2', null]);
  });

  it('counts a blocked command as executed when it unblocks: its element is gone, and nobody got it', async () => {
    const client = through(proxy.url, { maxRetriesPerRequest: null });
    await client.ping();
    const cut = proxy.passAndDropReply('blpop');
    const popped = client.blpop('list', 0);
    popped.catch(() => {});
    const direct = server.client();
    await until(async () => /blocked_clients:1/.test(await direct.info('clients')), {
      what: 'the client to be parked',
    });
    await direct.rpush('list', 'x');
    await cut;
    await expect(popped).rejects.toThrow('Connection is closed');
    expect(await direct.llen('list')).toBe(0);
  });

  itWithProcess('passes on the end of the server', async () => {
    const mortal = await RedisProcess.start();
    const before = await FaultProxy.listen(mortal);
    const client = through(before.url);
    await client.ping();
    await mortal.kill();
    await until(() => client.status === 'end' && before.size === 0, { what: 'the end to be noticed' });
    await Promise.all([mortal.stop(), before.close()]);
  });
});
