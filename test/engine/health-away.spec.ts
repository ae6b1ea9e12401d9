import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type ClusterSet, startCluster } from '../../scripts/server/cluster.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { asksForHealth, beatNow, led, MINUTE, once, WELL } from './checkups.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';
import { SkewedClock } from './skewed-clock.js';

describeWithProcess('the health of a process whose server', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();

  it('was killed is an answer, and good again when the server is back', async () => {
    const echo = await rig.connect();
    echo.consume('q', {}, () => undefined);
    await once(true, echo);
    await server.process.kill();
    const error = expect.stringMatching(/^ECHO_(UNREACHABLE|TIMEOUT): /);
    const queues = { q: { ok: false, reasons: [error] } };
    expect(await echo.health({ timeoutMs: 100 })).toEqual({ ok: false, error, queues });
    await server.process.restart();
    expect((await once(true, echo)).queues).toEqual({ q: expect.objectContaining({ ok: true }) });
  });

  it('does not answer is an answer within the time limit', async () => {
    const echo = await rig.connect();
    echo.consume('q', {}, () => undefined);
    await once(true, echo);
    server.process.pause();
    const error = 'ECHO_TIMEOUT: gave up after 100 ms: the server has not answered';
    expect(await echo.health({ timeoutMs: 100 })).toEqual({
      ok: false,
      error,
      queues: { q: { ok: false, reasons: [error] } },
    });
    server.process.resume();
    await once(true, echo);
  });

  it('was away is not asked later for what was given up', async () => {
    const echo = await rig.connect({ connection: proxied.url });
    echo.consume('q', {}, () => undefined);
    await once(true, echo);
    let asked = 0;
    proxied.proxy.onRequest((command) => {
      if (asksForHealth(command)) asked += 1;
      return undefined;
    });
    proxied.proxy.refuse();
    proxied.proxy.cut();
    for (let n = 0; n < 3; n++) expect(await echo.health({ timeoutMs: 100 })).toMatchObject({ ok: false });
    proxied.proxy.accept();
    asked = 0;
    await echo.jobs.counts('q');
    expect(asked).toBe(0);
  });

  it('is full of data is told as ever', async () => {
    const client = server.client();
    const echo = await rig.connect();
    echo.consume('q', {}, () => undefined);
    await led(echo);
    await client.config('SET', 'maxmemory', '1');
    try {
      expect((await echo.health()).queues.q).toEqual(WELL);
    } finally {
      await client.config('SET', 'maxmemory', '0');
    }
  });

  it('does not let it listen is bad after a while: nobody leads, and it is stuck when there are jobs', async () => {
    const client = server.client();
    await client.call('ACL', 'SETUSER', 'deaf', 'reset', 'on', '>secret', '~*', 'resetchannels', '+@all');
    const url = new URL(server.url);
    [url.username, url.password] = ['deaf', 'secret'];
    const clock = new SkewedClock();
    const echo = await rig.connect({ connection: url.href, clock });
    echo.consume('q', {}, () => undefined);
    expect((await echo.health()).queues.q).toEqual({ ...WELL, leader: false });
    clock.skip(MINUTE);
    const silent = expect.stringMatching(/^nobody leads it, .* answered for 6\d{4} ms$/);
    expect((await echo.health()).queues.q).toEqual({ ...WELL, ok: false, leader: false, reasons: [silent] });
    await echo.jobs.enqueue('q', 'job');
    const stuck = expect.stringMatching(/^jobs are pending/);
    expect((await echo.health()).queues.q).toMatchObject({ ok: false, stuck: true, reasons: [stuck, silent] });
    await until(() => rig.complaints.some(({ code }) => code === 'NOPERM'), { what: 'the fault to be told too' });
    await client.call('ACL', 'DELUSER', 'deaf');
    await expectInvariants(client, 'q');
  });

  it('refuses its beats is bad after a while, once nobody leads', async () => {
    const client = server.client();
    await client.call('ACL', 'SETUSER', 'weak', 'reset', 'on', '>secret', '~*', '&*', '+@all');
    const url = new URL(server.url);
    [url.username, url.password] = ['weak', 'secret'];
    const clock = new SkewedClock();
    const echo = await rig.connect({ connection: url.href, clock });
    echo.consume('q', {}, () => undefined);
    await led(echo);
    await client.call('ACL', 'SETUSER', 'weak', '-set', '-pexpire');
    await beatNow(client);
    await until(() => rig.complaints.some(({ code }) => code === 'NOPERM'), { what: 'the beat to be refused' });
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toEqual(WELL); // its leadership has not ended yet
    await client.del('emq:{q}:leader');
    expect((await echo.health()).queues.q).toMatchObject({
      leader: false,
      reasons: [expect.stringMatching(/^nobody leads it/)],
    });
    await client.call('ACL', 'SETUSER', 'weak', '+@all');
    await client.call('ACL', 'DELUSER', 'weak');
  });

  it('cannot be reached never tells a password', async () => {
    const { port } = new URL(server.url);
    const quoting = class {
      check = () => true;
      disconnect = () => undefined;
      connect = async () => {
        throw new Error('cannot connect to redis://jobs:sesame@example.org:6379');
      };
    };
    const sources = [
      'redis://jobs:sesame@127.0.0.1:1',
      `redis://jobs:sesame@127.0.0.1:${port}`,
      { host: 'example.org', Connector: quoting as never },
    ];
    for (const connection of sources) {
      const { ok, error } = await rig.create({ connection }).health({ timeoutMs: 200 });
      expect(ok).toBe(false);
      expect(error).toMatch(/^ECHO_TIMEOUT: .*(ECONNREFUSED|WRONGPASS|example\.org)/);
      expect(error).not.toContain('sesame');
    }
  });
});

describeWithProcess('the health of a process in a cluster', () => {
  let set: ClusterSet;
  beforeAll(async () => {
    set = await startCluster();
  });
  afterAll(() => set.stop());
  const rig = useRig({ url: 'not used' });
  guardLeaks();

  it('is that of each queue on its own node', async () => {
    const ownerOf = async (key: string) => {
      const slot = Number(await set.nodes[0]!.command('CLUSTER', 'KEYSLOT', key));
      return set.nodes[Math.floor((slot * 3) / 16_384)]!;
    };
    const names = Array.from({ length: 30 }, (_, n) => `q${n}`);
    const owners = await Promise.all(names.map((name) => ownerOf(`{${name}}`)));
    const prefixOwner = await ownerOf('{emq}'); // asked for the process as a whole
    const dark = set.nodes.find((node) => node !== prefixOwner)!;
    const [near] = names.filter((_, i) => owners[i] !== dark) as [string];
    const [known, unknown] = names.filter((_, i) => owners[i] === dark) as [string, string];
    const connection = { cluster: set.nodes.map(({ host, port }) => ({ host, port })) };
    const echo = await rig.connect({ connection });
    for (const queue of [near, known]) echo.consume(queue, {}, () => undefined);
    for (const queue of [near, known]) await led(echo, queue);
    expect(await echo.health()).toMatchObject({ ok: true, queues: { [near]: WELL, [known]: WELL } });

    dark.pause();
    echo.consume(unknown, {}, () => undefined);
    // The other nodes have to answer within it, on a busy machine too; after 2 s they would miss this one.
    const { ok, queues } = await echo.health({ timeoutMs: 800 });
    const away = { ok: false, reasons: [expect.stringMatching(/^ECHO_TIMEOUT: gave up after 800 ms/)] };
    expect({ ok, queues }).toEqual({ ok: false, queues: { [near]: WELL, [known]: away, [unknown]: away } });
    dark.resume();
    await once(true, echo, { timeoutMs: 5000 });
  });
});
