import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { EchoConfigError, EchoMq, type EchoMqOptions, EchoWireError } from '../../lib/core.js';
import { findBinary } from '../../scripts/server/binary.js';
import { freePort } from '../../scripts/server/free-port.js';
import { RedisProcess } from '../../scripts/server/redis-process.js';
import { itWithProcess } from '../support/availability.js';
import { type Certificate, hasOpenssl, makeCertificate } from '../support/certificate.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { Ledger } from './gates.js';
import { useRig } from './rig.js';

describe('a client with a key prefix', () => {
  guardLeaks();

  it.each<[string, () => EchoMqOptions['connection']]>([
    ['options', () => ({ host: '127.0.0.1', keyPrefix: 'app:' })],
    ['a client', () => new Redis({ lazyConnect: true, keyPrefix: 'app:' })],
    ['a URL', () => 'redis://127.0.0.1:6379?keyPrefix=app:'],
    ['a cluster', () => ({ cluster: [{ host: '127.0.0.1', port: 1 }], options: { keyPrefix: 'app:' } })],
    ["a cluster's nodes", () => ({ cluster: [{ port: 1 }], options: { redisOptions: { keyPrefix: 'app:' } } })],
    ['a cluster client', () => new Cluster([{ port: 1 }], { lazyConnect: true, keyPrefix: 'app:' })],
  ])('is refused before anything is opened: %s', (_what, source) => {
    const make = () => EchoMq.create({ connection: source() });
    expect(make).toThrow(EchoConfigError);
    expect(make).toThrow("use option 'prefix'".replace('use', 'Use'));
  });
});

describe('a source that does not say which database', () => {
  guardLeaks();

  const refused = (connection: unknown) => {
    const make = () => EchoMq.create({ connection: connection as RedisOptions });
    expect(make).toThrow(EchoConfigError);
    return expect(make);
  };

  it.each([Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY, null, '', 'abc', '1.5', '-1'])(
    'is refused before anything is opened: options, also of sentinels, with %p',
    (db) => {
      const options = { host: '127.0.0.1', db } as RedisOptions;
      refused(options).toThrow(/^option 'connection\.db' must be a whole number from 0, got /);
      refused({ sentinels: [{ host: '127.0.0.1' }], name: 'x', db }).toThrow("option 'connection.db'");
    },
  );

  it('is refused as a client too', () => {
    for (const db of [Number.NaN, 1.5, -1]) {
      refused(new Redis({ host: '127.0.0.1', db, lazyConnect: true })).toThrow("option 'connection.db'");
    }
  });

  it.each(['/abc', '/1.5', '/-1', '/1/2', '/NaN', '?db=abc', '/%31', '?db='])('is refused as a URL with %s', (end) => {
    refused(`redis://127.0.0.1:6379${end}`).toThrow(/the database of the URL, .* must be a whole number from 0/);
  });

  it('is refused without what may be the end of a password', () => {
    refused('redis://jobs:12/secret@127.0.0.1').not.toThrow(/secret/);
  });
});

describe('a source that does not say where the server is', () => {
  guardLeaks();

  const refusal = (connection: object | string) => {
    try {
      EchoMq.create({ connection: connection as RedisOptions });
    } catch (error) {
      expect(error).toBeInstanceOf(EchoConfigError);
      return (error as Error).message;
    }
    return undefined;
  };

  it.each([
    {},
    { hots: 'redis.example.org' },
    { password: 'x', db: 1 },
    { host: undefined, port: 6379 },
    { host: '', port: 6379 },
    { sentinels: [] },
  ])('is refused before anything is opened: %p', (options) => {
    expect(refusal(options)).toMatch(
      /^option 'connection' does not say where .* need host \(or path, or sentinels\)\. It/,
    );
  });

  it('is told how to give a URL, where it has one as an option', () => {
    for (const more of [{}, { port: 6379 }, { maxRetriesPerRequest: null }]) {
      expect(refusal({ url: 'redis://127.0.0.1:6379', ...more })).toContain("give it as 'connection' itself");
    }
  });

  it.each(['redis://', 'redis:///1', 'redis:localhost'])('is refused as a URL: %s', (url) => {
    expect(refusal(url)).toContain('a URL without a host');
  });

  it.each<[string, object | string]>([
    ['a host', { host: '127.0.0.1' }],
    ['a port, which is of this host', { port: 6380 }],
    ['the path of a socket', { path: '/run/redis.sock' }],
    ['sentinels', { sentinels: [{ host: '127.0.0.1' }], name: 'x' }],
    ['a URL with a host', 'redis://127.0.0.1'],
    ['a URL with a database', 'redis://127.0.0.1/3?family=6'],
    ['a URL with the path of a socket', 'redis://?path=/run/redis.sock'],
    ['a database as the environment has it', { host: '127.0.0.1', db: '3' }],
  ])('is not what says so by %s', (_what, connection) => {
    expect(refusal(connection)).toBeUndefined();
  });

  it('may be a client: where its server is, is its business', () => {
    expect(refusal(new Redis({ lazyConnect: true }))).toBeUndefined();
  });
});

describe('a client that is passed in', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  it('lends its settings: it is neither used nor closed', async () => {
    const own = server.client({ connectionName: 'mine' });
    const sent: string[] = [];
    await own.ping();
    const send = own.sendCommand.bind(own);
    own.sendCommand = (command, ...rest) => {
      sent.push(command.name);
      return send(command, ...rest);
    };
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: own });
    echo.consume('q', {}, ledger.handler);
    await echo.jobs.enqueue('q', 'job');
    await ledger.ran(1);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await echo.close();
    expect(sent).toEqual([]);
    expect(own.status).toBe('ready');
    expect(own.options.retryStrategy?.(1)).toBeGreaterThan(0);
    await own.ping();
    await expectInvariants(server.client(), 'q');
  });

  it.each<[string, RedisOptions & { replyMapping?: NonNullable<RedisOptions['replyMapping']> }]>([
    ['that speaks the second version of the protocol', { protocol: 2 }],
    ['that speaks the third', { protocol: 3 }],
    ['that wants the shapes of the third', { protocol: 3, replyMapping: 'resp3' }],
    ['of another database', { db: 3 }],
    ['that does not ask whether the server is ready', { enableReadyCheck: false }],
    ['that tells the server nothing of itself', { disableClientInfo: true }],
    ['that wants numbers as text', { stringNumbers: true }],
  ])('may be one %s', async (_what, options) => {
    const own = new Redis(server.url, { ...options, lazyConnect: true });
    const { client, ledger, echo } = await worked(own, server.client({ db: own.options.db ?? 0 }));
    expect(ledger.jobs.map(({ name, data }) => [name, data])).toEqual([['job', { text: 'Größe' }]]);
    expect((await echo.health()).ok).toBe(true);
    expect(own.status).toBe('wait');
    await expectInvariants(client, 'q');
  });

  itWithProcess('may have a password, and a user who may do anything but PING', async () => {
    await server.process.command('ACL', 'SETUSER', 'deaf', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-ping');
    const own = new Redis(server.url, { username: 'deaf', password: 'secret', lazyConnect: true });
    const { client } = await worked(own, server.client());
    expect(rig.complaints).toEqual([]);
    await expectInvariants(client, 'q');
  });

  /** A job that was enqueued, run and completed through the settings of a client. */
  async function worked(own: Redis, client: Redis) {
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: own });
    echo.consume('q', {}, ledger.handler);
    await echo.jobs.enqueue('q', 'job', { text: 'Größe' });
    await ledger.ran(1);
    await until(() => client.hget('emq:{q}:metrics:completed', 'count'), { what: 'its completion' });
    return { client, ledger, echo };
  }

  it('need not be connected, and its habits that are unsafe here are not taken over', async () => {
    const own = new Redis(server.url, { lazyConnect: true, commandTimeout: 1, enableAutoPipelining: true });
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: own });
    echo.consume('q', {}, ledger.handler);
    await echo.jobs.enqueueMany(
      'q',
      Array.from({ length: 500 }, () => ({ name: 'job' })),
    );
    await ledger.ran(500);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 500, { what: 'all completions' });
    expect(own.status).toBe('wait');
    await expectInvariants(server.client(), 'q');
  });

  it('may be of another copy of the client library, which takes no commands but its own', async () => {
    let copy!: typeof import('ioredis');
    jest.isolateModules(() => {
      copy = createRequire(import.meta.url)('ioredis');
    });
    expect(copy.Redis).not.toBe(Redis);
    const send = copy.Redis.prototype.sendCommand;
    copy.Redis.prototype.sendCommand = function (this: Redis, command, ...rest) {
      if (!(command instanceof copy.Command)) throw new TypeError('a command of another copy');
      return send.call(this, command, ...rest);
    };
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: new copy.Redis(server.url, { lazyConnect: true }) });
    echo.consume('q', {}, ledger.handler);
    await echo.jobs.enqueue('q', 'job');
    await ledger.ran(1);
  });
});

describe('the version fence', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  it('stamps an unbranded server, and lets its own brand pass', async () => {
    const client = server.client();
    await rig.connect();
    expect(await client.get('{emq}:version')).toBe('echomq:6.0.0');
    await rig.connect();
    await expectInvariants(client, 'q');
  });

  it.each(['echomq:5.0.0', 'echomq:6.0.1', 'something else', ''])('refuses the brand %j', async (brand) => {
    const client = server.client();
    await client.set('{emq}:version', brand);
    const refused = await rig.connect().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(EchoWireError);
    expect(refused).toMatchObject({ code: 'EMQWIRE', retryable: false });
    expect(await client.get('{emq}:version')).toBe(brand);
    expect(await client.dbsize()).toBe(1);
    await expectInvariants(client, 'q');
  });

  it('keeps the generations apart, either way, and lets them live under prefixes of their own', async () => {
    const client = server.client();
    await rig.connect();
    await expect(rig.connect({ wire: 4 })).rejects.toBeInstanceOf(EchoWireError);
    const old = await rig.connect({ wire: 4, prefix: 'old' });
    expect(await client.get('{old}:version')).toBe('echomq:4.0.0');
    await expect(rig.connect({ prefix: 'old' })).rejects.toBeInstanceOf(EchoWireError);
    await old.jobs.enqueue('q', 'job');
    await expectInvariants(client, 'q', { prefix: 'old' });
  });

  it('opens wire 4 with plain tokens and no epoch in the row', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect({ wire: 4 });
    const { id } = await echo.jobs.enqueue('q', 'by hand');
    const [job] = await echo.jobs.claim('q', { leaseMs: 60_000 });
    expect(job).toMatchObject({ id, token: '1' });
    expect(await client.hget(`emq:{q}:job:${id}`, 'lease_epoch')).toBe('-');
    expect(await echo.jobs.extend('q', id, '1', { leaseMs: 60_000 })).toBe('ok');
    expect(await echo.jobs.complete('q', id, '1')).toBe('ok');
    echo.consume('q', { backoff: { type: 'fixed', delayMs: 1 } }, (run) => {
      ledger.handler(run);
      if (run.attempt < 2) throw new Error('again');
    });
    await echo.jobs.enqueue('q', 'consumed');
    await ledger.ran(2);
    expect(ledger.jobs.map((run) => [run.token, run.attempt])).toEqual([
      ['1', 1],
      ['2', 2],
    ]);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both completions' });
    await expectInvariants(client, 'q');
  });
});

const run = promisify(execFile);

/** Why the TLS specs cannot run here, or undefined. */
async function tlsObstacle(): Promise<string | undefined> {
  const binary = findBinary();
  if (!binary) return 'no valkey-server or redis-server on PATH';
  if (!(await hasOpenssl())) return 'no openssl to make a certificate with';
  const { stderr = '', stdout = '' } = await run(binary, [
    '--tls-port',
    '0',
    '--tls-cert-file',
    '/',
    '--port',
    '-1',
  ]).catch((error: { stdout?: string; stderr?: string }) => error);
  return /bad directive|unknown|not supported/i.test((stdout + stderr).replace(/port/g, ''))
    ? 'this server was built without TLS'
    : undefined;
}

const obstacle = await tlsObstacle();
const describeTls = obstacle ? describe.skip : describe;

describeTls(`TLS${obstacle ? ` (skipped: ${obstacle})` : ''}`, () => {
  let certificate: Certificate;
  let server: RedisProcess;
  let port: number;
  let ca: Buffer;

  beforeAll(async () => {
    certificate = await makeCertificate();
    ca = certificate.cert;
    port = await freePort();
    server = await RedisProcess.start({
      config: {
        'tls-port': String(port),
        'tls-cert-file': certificate.certFile,
        'tls-key-file': certificate.keyFile,
        'tls-ca-cert-file': certificate.certFile,
        'tls-auth-clients': 'no',
      },
    });
  });
  afterAll(async () => {
    await server?.stop();
    await certificate?.remove();
  });
  const rig = useRig({ url: 'not used' });
  guardLeaks();

  it('is spoken by every connection when the options ask for it', async () => {
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: { host: 'localhost', port, tls: { ca } } });
    echo.consume('q', {}, ledger.handler);
    const said = ['short', 'x'.repeat(20_000), 'ß'.repeat(20_000)];
    await echo.jobs.enqueue('q', 'job', said[0]);
    await ledger.ran(1);
    const many = Array.from({ length: 299 }, (_, n) => ({ name: 'job', data: said[(n + 1) % 3] }));
    await echo.jobs.enqueueMany('q', many);
    await ledger.ran(300);
    expect(ledger.jobs.map(({ data }, n) => data === said[n % 3])).toEqual(ledger.jobs.map(() => true));
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 300, { what: 'all completions' });
    await echo.close();
    const plain = new Redis(server.url);
    await expectInvariants(plain, 'q');
    await plain.quit();
  });

  it('does not trust a stranger: an unknown certificate is refused, also with rediss://', async () => {
    const connecting = rig.connect({ connection: `rediss://localhost:${port}`, connectTimeoutMs: 300 });
    await expect(connecting).rejects.toMatchObject({
      retryable: true,
      message: expect.stringContaining('self-signed'),
    });
  });
});
