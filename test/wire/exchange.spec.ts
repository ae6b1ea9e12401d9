import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { type Clock, systemClock } from '../../lib/kernel/clock.js';
import type { EchoError } from '../../lib/kernel/errors.js';
import type { Connection } from '../../lib/wire/connection.js';
import { type Arg, ascii, type Reply } from '../../lib/wire/reply.js';
import { useProxy } from '../engine/proxied.js';
import { describeWithProcess } from '../support/availability.js';
import { guardLeaks } from '../support/leaks.js';
import type { ProxiedConnection } from '../support/proxied-connection.js';
import { useServer } from '../support/server.js';
import { endWorkers, spawnWorker } from '../support/worker-process.js';
import { useConnections } from './connections.js';

const ONCE = { resend: false };
const AGAIN = { resend: true };

/** What becomes of a call: its answer as text, or the code it was refused with. */
const outcome = (call: Promise<Reply>): Promise<string> => call.then(ascii, (error: EchoError) => error.code);

/** The same for one that takes no promise. */
const atOnce = (connection: Connection, command: string, ...args: Arg[]): Promise<string> =>
  new Promise((resolve) => {
    connection.callAtOnce(
      command,
      args,
      (reply) => resolve(ascii(reply)),
      (error) => resolve(error.code),
    );
  });

/** A clock that a test moves on; its timers are those of the system. */
function shiftedClock(): Clock & { shift(ms: number): void } {
  let shifted = 0;
  return {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + shifted,
    shift(ms) {
      shifted += ms;
    },
  };
}

describe('calls on one connection', () => {
  const server = useServer();
  const connections = useConnections();
  const proxied = useProxy(server);
  guardLeaks();

  /** The connection that has carried this command, which is then answered. */
  async function carrierOf(connection: Connection, mark: string): Promise<ProxiedConnection> {
    let carrier: ProxiedConnection | undefined;
    const end = proxied.proxy.onRequest((command, on) => {
      if (command.includes(mark)) carrier = on;
      return undefined;
    });
    await connection.call('ECHO', [mark], ONCE);
    end();
    return carrier!;
  }

  it('are each given their own answer, in order, thousands at a time and in pieces', async () => {
    let pieces = 0;
    proxied.proxy.delay(() => (pieces++ % 7 === 0 ? 1 : 0));
    const connection = await connections.open(proxied.url);
    const answered: number[] = [];
    const calls: Promise<string>[] = [];
    for (let n = 0; n < 5_000; n++) {
      const said = `${n} ${'ß'.repeat(n % 200)}`;
      const call =
        n % 3 === 0
          ? atOnce(connection, 'ECHO', said)
          : outcome(connection.call('ECHO', [n % 3 === 1 ? said : Buffer.from(said)], n % 2 === 0 ? ONCE : AGAIN));
      calls.push(call);
      call.then(() => answered.push(n));
      if (n % 500 === 0) await call;
    }
    const answers = await Promise.all(calls);
    answers.forEach((answer, n) => {
      expect(Buffer.from(answer, 'latin1').toString()).toBe(`${n} ${'ß'.repeat(n % 200)}`);
    });
    for (const kind of [0, 1, 2]) {
      const ofOne = answered.filter((n) => n % 3 === kind);
      expect(ofOne).toEqual([...ofOne].sort((a, b) => a - b));
    }
    expect(connection.silentMs).toBe(0);
  });

  it('carry more bytes than a socket holds there and back', async () => {
    const connection = await connections.open(proxied.url);
    const long = 'Größe '.repeat(200_000);
    const [text, bytes] = await Promise.all([
      connection.call('ECHO', [long], ONCE),
      connection.call('ECHO', [Buffer.from(long)], ONCE),
    ]);
    expect((text as Buffer).equals(Buffer.from(long))).toBe(true);
    expect((bytes as Buffer).equals(text as Buffer)).toBe(true);
  });

  it('are refused one by one, and say the tag of the refusal', async () => {
    const connection = await connections.open(proxied.url);
    await connection.call('SET', ['text', 'x'], ONCE);
    const outcomes = await Promise.all([
      outcome(connection.call('ECHO', ['before'], ONCE)),
      outcome(connection.call('EVALSHA', ['f'.repeat(40), 0], AGAIN)),
      atOnce(connection, 'LPUSH', 'text', 'x'),
      outcome(connection.call('ECHO', ['between'], ONCE)),
      outcome(connection.call('NO SUCH COMMAND', [], ONCE)),
      outcome(connection.call('EVAL', ["return redis.error_reply('EMQPLAIN or another')", 0], ONCE)),
      atOnce(connection, 'ECHO', 'behind'),
    ]);
    expect(outcomes).toEqual(['before', 'NOSCRIPT', 'WRONGTYPE', 'between', 'ERR', 'EMQPLAIN', 'behind']);
    expect(connection.silentMs).toBe(0);
  });

  it('that cannot be said are refused to whoever makes them, and nobody waits for their answer', async () => {
    const clock = shiftedClock();
    const connection = await connections.open(proxied.url, clock);
    const none = { length: 1 } as unknown as Buffer;
    await expect(connection.call('ECHO', [none], ONCE)).rejects.toThrow('must be an instance of Buffer');
    await expect(atOnce(connection, 'ECHO', none)).rejects.toThrow('must be an instance of Buffer');
    expect(await outcome(connection.call('ECHO', ['next'], ONCE))).toBe('next');
    clock.shift(60_000);
    expect(connection.silentMs).toBe(0);
  });

  it('fail all together when the socket is cut, and the connection comes back', async () => {
    const connection = await connections.open(proxied.url);
    await carrierOf(connection, 'one');
    proxied.proxy.freeze('replies');
    const seen = proxied.proxy.request('third');
    const calls = [
      outcome(connection.call('ECHO', ['first'], ONCE)),
      atOnce(connection, 'ECHO', 'second'),
      outcome(connection.call('INCR', ['third'], ONCE)),
    ];
    const repeated = outcome(connection.call('ECHO', ['repeated'], AGAIN));
    await seen;
    proxied.proxy.thaw('replies');
    proxied.proxy.cut();
    expect(await Promise.all(calls)).toEqual(['ECHO_UNREACHABLE', 'ECHO_UNREACHABLE', 'ECHO_UNREACHABLE']);
    expect(await repeated).toBe('repeated');
    expect(await outcome(connection.call('ECHO', ['on the new one'], ONCE))).toBe('on the new one');
    expect(connection.silentMs).toBe(0);
  });

  it('that are made in the moment of the loss are told of it, or go by the next connection', async () => {
    const connection = await connections.open(proxied.url);
    let later: Promise<string[]> | undefined;
    connection.listen({
      up: () => undefined,
      down: () => {
        later ??= Promise.all([
          atOnce(connection, 'ECHO', 'never sent'),
          outcome(connection.call('ECHO', ['sent later'], ONCE)),
        ]);
      },
    });
    const first = atOnce(connection, 'BLPOP', 'nothing', 0).then(async (code) => [
      code,
      await outcome(connection.call('ECHO', ['made in its failure'], AGAIN)),
    ]);
    await proxied.proxy.request('nothing');
    proxied.proxy.cut();
    expect(await first).toEqual(['ECHO_UNREACHABLE', 'made in its failure']);
    expect(await later).toEqual(['ECHO_UNREACHABLE', 'sent later']);
    expect(connection.silentMs).toBe(0);
  });

  it.each([
    ['is garbled', 'HTTP/1.1 400 Bad Request\r\n'],
    ['is of a wrong length', '$3\r\nabcdef\r\n'],
    ['is of no kind', '?1\r\n'],
  ])('are not given the answers of others when one %s: the connection is made anew', async (_what, garbage) => {
    const connection = await connections.open(proxied.url);
    const carrier = await carrierOf(connection, 'one');
    carrier.toServer.setShut(true);
    const calls = [
      outcome(connection.call('ECHO', ['once'], ONCE)),
      outcome(connection.call('ECHO', ['again'], AGAIN)),
      atOnce(connection, 'ECHO', 'at once'),
    ];
    carrier.toClient.send(Buffer.from(garbage), 0);
    expect(await Promise.all(calls)).toEqual(['ECHO_UNREACHABLE', 'again', 'ECHO_UNREACHABLE']);
    carrier.toServer.setShut(false);
    await carrier.closed;
    expect(connection.silentMs).toBe(0);
  });

  it('are not given an answer that nobody asked for: the connection is made anew', async () => {
    const connection = await connections.open(proxied.url);
    const carrier = await carrierOf(connection, 'one');
    carrier.toClient.send(Buffer.from(':1\r\n'), 0);
    await carrier.closed;
    expect(await outcome(connection.call('ECHO', ['in order'], AGAIN))).toBe('in order');
  });

  it('fail when the server ends its side, and go on over the next connection', async () => {
    const connection = await connections.open(proxied.url);
    const carrier = await carrierOf(connection, 'one');
    carrier.toServer.setShut(true);
    const once = outcome(connection.call('ECHO', ['once'], ONCE));
    const again = outcome(connection.call('ECHO', ['again'], AGAIN));
    carrier.toClient.end();
    const burst: Promise<string>[] = [];
    while (burst.length < 1_000 && connection.isUp) {
      burst.push(atOnce(connection, 'ECHO', 'x'.repeat(10_000)));
      await new Promise((next) => setImmediate(next));
    }
    expect(await once).toBe('ECHO_UNREACHABLE');
    expect(await again).toBe('again');
    expect(new Set(await Promise.all(burst))).toEqual(new Set(['ECHO_UNREACHABLE']));
    expect(await outcome(connection.call('ECHO', ['later'], ONCE))).toBe('later');
  });

  it('are told that it is closed when it is closed, and no time limit is left behind', async () => {
    const connection = await connections.open(proxied.url);
    const seen = proxied.proxy.request('nothing');
    const calls = [
      outcome(connection.call('BLPOP', ['nothing', 0], { resend: true, timeoutMs: 3_600_000 })),
      atOnce(connection, 'ECHO', 'behind it'),
      outcome(connection.call('ECHO', ['behind it'], AGAIN)),
    ];
    await seen;
    await connection.close();
    expect(await Promise.all(calls)).toEqual(['ECHO_UNREACHABLE', 'ECHO_UNREACHABLE', 'ECHO_UNREACHABLE']);
    expect(await atOnce(connection, 'ECHO', 'after it')).toBe('ECHO_STATE');
    expect(await outcome(connection.call('ECHO', ['after it'], { resend: true, timeoutMs: 3_600_000 }))).toBe(
      'ECHO_STATE',
    );
  });

  it('make a refusal a sign of life, like any other answer', async () => {
    const clock = shiftedClock();
    const connection = await connections.open(server.url, clock);
    await connection.call('SET', ['text', 'x'], ONCE);
    const refused = outcome(connection.call('LPUSH', ['text', 'x'], ONCE));
    const waiting = outcome(connection.call('BLPOP', ['list', 0], ONCE)); // behind it, unanswered
    clock.shift(60_000);
    expect(connection.silentMs).toBeGreaterThanOrEqual(60_000);
    expect(await refused).toBe('WRONGTYPE');
    expect(connection.silentMs).toBeLessThan(60_000);
    await server.client().lpush('list', 'x');
    await waiting;
    expect(connection.silentMs).toBe(0);
  });

  it('count as unanswered on their own connection only', async () => {
    const clock = shiftedClock();
    const connection = await connections.open(proxied.url, clock);
    for (let round = 1; round <= 3; round++) {
      const seen = proxied.proxy.request('nothing');
      const calls = [
        atOnce(connection, 'BLPOP', 'nothing', 0),
        outcome(connection.call('ECHO', ['x'], ONCE)),
        outcome(connection.call('ECHO', ['x'], AGAIN)),
      ];
      await seen;
      clock.shift(60_000);
      expect(connection.silentMs).toBeGreaterThanOrEqual(60_000);
      connection.reset(0);
      expect(await Promise.all(calls)).toEqual(['ECHO_UNREACHABLE', 'ECHO_UNREACHABLE', 'x']);
      clock.shift(60_000);
      expect(connection.silentMs).toBe(0);
    }
  });

  it('are alone on it: what the client library would send by itself is not sent', async () => {
    const own = new Redis(server.url, { lazyConnect: true });
    let copy: Redis | undefined;
    const duplicate = own.duplicate.bind(own);
    own.duplicate = (overrides) => {
      copy = duplicate(overrides);
      return copy;
    };
    const connection = await connections.open(own);
    const first = outcome(connection.call('ECHO', ['first'], ONCE));
    const theirs = copy!.ping('theirs').then(
      () => 'sent',
      () => 'not sent',
    );
    const second = outcome(connection.call('ECHO', ['second'], ONCE));
    expect(await Promise.all([first, theirs, second])).toEqual(['first', 'not sent', 'second']);
  });
});

describeWithProcess('a call that its user has no right to', () => {
  const server = useServer();
  const connections = useConnections();
  guardLeaks();

  it('is refused by itself, as a command and in a script', async () => {
    await server.process.command('ACL', 'SETUSER', 'reader', 'reset', 'on', '>secret', '~*', '+@all', '-incr', '-ping');
    const url = new URL(server.url);
    [url.username, url.password] = ['reader', 'secret'];
    const connection = await connections.open(url.href);
    const outcomes = await Promise.all([
      outcome(connection.call('ECHO', ['before'], ONCE)),
      outcome(connection.call('INCR', ['n'], AGAIN)),
      atOnce(connection, 'EVAL', "return redis.call('INCR', KEYS[1])", 1, 'n'),
      outcome(connection.call('ECHO', ['behind'], ONCE)),
    ]);
    expect(outcomes).toEqual(['before', 'NOPERM', 'NOPERM', 'behind']);
  });
});

describeWithProcess('whoever is told of an answer', () => {
  const server = useServer();
  endWorkers();
  guardLeaks();

  it('may throw: the error is the process’s to see, and nobody else misses an answer', async () => {
    const worker = spawnWorker('test/wire/workers/thrower.ts', { args: [server.url] });
    expect(await worker.next('answered')).toMatchObject({ told: ['PONG', 'ERR', 'PONG', 'last'] });
    expect(await worker.next('ended')).toMatchObject({ told: ['first', 'second', 'third'] });
    expect(await worker.next('uncaught')).toMatchObject({ errors: ['on PONG', 'on ERR', 'on first'] });
  });
});
