import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { endWorkers, spawnWorker } from '../support/worker-process.js';
import { fastClock } from './fast-clock.js';
import { Gates, Ledger } from './gates.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';

/** What a busy machine may add to times that are the sum of our own. */
const MARGIN_MS = 2_000;

type Role = 'commands' | 'subscriber';

/** Server-side ids of the connections with this role. */
async function connectionIds(client: Redis, role: Role): Promise<string[]> {
  const lines = String(await client.call('CLIENT', 'LIST')).split('\n');
  return lines.filter((line) => line.includes(` name=echomq:${role} `)).map((line) => /^id=(\d+)/.exec(line)![1]!);
}

async function killConnections(client: Redis, ...roles: Role[]): Promise<void> {
  for (const role of roles) {
    for (const id of await connectionIds(client, role)) await client.call('CLIENT', 'KILL', 'ID', id);
  }
}

/** The server knows the process of `queue`'s consumer as one that waits to be woken. */
async function parked(client: Redis, queue = 'q'): Promise<void> {
  await until(() => client.zcard(`emq:{${queue}}:hungry`), { what: 'the consumer to park' });
}

/** What both connections send before they are used, the client library's own handshake included. */
const GREETINGS = ['hello', 'info'];

describeWithProcess('a consumer that waits for work', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  endWorkers();
  guardLeaks();

  it.each<[string, Role[]]>([
    ['subscriber', ['subscriber']],
    ['command', ['commands']],
    ['subscriber and command', ['subscriber', 'commands']],
  ])('is served within a beat in each of 20 rounds of killed %s connections', async (_which, roles) => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect();
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    const producer = await rig.connect();
    for (let round = 1; round <= 20; round++) {
      await parked(client);
      await killConnections(client, ...roles);
      const started = performance.now();
      await producer.jobs.enqueue('q', `round ${round}`);
      await ledger.ran(round);
      expect(performance.now() - started).toBeLessThan(3_000 + MARGIN_MS);
    }
    await until(async () => (await producer.jobs.counts('q')).metrics.completed === 20, {
      what: 'all to be completed',
    });
    expect(ledger.jobs).toHaveLength(20);
    await expectInvariants(client, 'q');
  });

  it('hears of a job at once after a reconnect that found nothing to do', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect();
    const producer = await rig.connect();
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    for (let round = 1; round <= 5; round++) {
      await parked(client);
      const before = await connectionIds(client, 'subscriber');
      await client.del('emq:{q}:hungry'); // only a new registration may wake it
      await killConnections(client, 'subscriber');
      await until(async () => !before.includes((await connectionIds(client, 'subscriber'))[0] ?? before[0]!), {
        what: 'a new subscriber',
      });
      await parked(client);
      const started = performance.now();
      await producer.jobs.enqueue('q', 'job');
      await ledger.ran(round);
      expect(performance.now() - started).toBeLessThan(1_500); // the reconnect has beaten just now: the next one is 3 s away
    }
    await expectInvariants(client, 'q');
  });

  it('is served within a beat when its wake-up was lost', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect();
    echo.consume('q', {}, ledger.handler);
    await parked(client);
    await client.del('emq:{q}:hungry');
    const started = performance.now();
    await echo.jobs.enqueue('q', 'job');
    await ledger.ran(1);
    expect(performance.now() - started).toBeLessThan(3_000 + MARGIN_MS);
    await expectInvariants(client, 'q');
  });

  it('makes new sockets when the old ones are half open, and runs the job', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: proxied.url, clock: fastClock(5) });
    echo.consume('q', {}, ledger.handler);
    await parked(client);
    const before = proxied.connections;
    proxied.darken();
    const direct = await rig.connect();
    const started = performance.now();
    await direct.jobs.enqueue('q', 'job');
    await ledger.ran(1, 10_000);
    // Beat 3 s, silence 5 s, a look every 2 s, a second look: 10 s of that clock at the most.
    expect(performance.now() - started).toBeLessThan(11_000 / 5 + MARGIN_MS);
    await until(() => proxied.connections >= before + 2, { what: 'both connections to be made anew' });
    await until(async () => (await direct.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    expect(rig.complaints.map((error) => error.message)).toEqual(
      expect.arrayContaining([
        'the subscriber connection has gone silent; a new one is made',
        'the command connection has gone silent; a new one is made',
      ]),
    );
    await expectInvariants(client, 'q');
  });

  it('goes on although onError throws: the connection is made anew, and the error is the application’s to see', async () => {
    const client = server.client();
    const worker = spawnWorker('test/engine/workers/thrower.ts', { args: [server.url] });
    await worker.next('ready');
    const producer = await rig.connect();
    for (let round = 1; round <= 3; round++) {
      await parked(client);
      await killConnections(client, 'commands', 'subscriber');
      expect(await worker.next('uncaught')).toMatchObject({ text: 'onError threw' });
      await producer.jobs.enqueue('q', `round ${round}`);
      expect(await worker.next('ran', 5_000)).toMatchObject({ name: `round ${round}` });
    }
    worker.send({ type: 'close' });
    await worker.next('closed');
    await expectInvariants(client, 'q');
  });

  it.each(GREETINGS)('tries again when the new connections go dark before %s is answered', async (text) => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: proxied.url, clock: fastClock(5) });
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    await parked(client);
    await proxied.cutAndDarken(2, text);
    const direct = await rig.connect();
    await direct.jobs.enqueue('q', 'job');
    await ledger.ran(1, 10_000);
    await until(async () => (await direct.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await expectInvariants(client, 'q');
  });

  it.each(GREETINGS)('closes while its connections are dark, with %s unanswered', async (text) => {
    const client = server.client();
    const echo = await rig.connect({ connection: proxied.url, clock: fastClock(5) });
    echo.consume('q', {}, () => {}).on('error', () => {});
    await parked(client);
    await proxied.cutAndDarken(2, text);
    await echo.close();
    await until(() => proxied.proxy.size === 0, { what: 'every socket to be closed' });
    await expectInvariants(client, 'q');
  });

  it('is not taken for dead when answers are slow: 30 pings with 100 to 900 ms each way', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const factor = 5;
    proxied.proxy.delay(() => (100 + Math.random() * 800) / factor);
    const echo = await rig.connect({ connection: proxied.url, clock: fastClock(factor) });
    echo.consume('q', {}, ledger.handler);
    const direct = await rig.connect();
    await parked(client);
    const [subscriber, commands] = [await connectionIds(client, 'subscriber'), await connectionIds(client, 'commands')];
    let pings = 0;
    const end = proxied.proxy.onRequest((command) => {
      if (/\r\nping\r\n/i.test(command.toString('latin1'))) pings++;
      return undefined;
    });
    for (let jobs = 1; pings < 30; jobs++) {
      await direct.jobs.enqueue('q', 'job');
      await ledger.ran(jobs);
    }
    end();
    proxied.proxy.delay(0);
    expect(rig.complaints).toEqual([]);
    expect(await connectionIds(client, 'subscriber')).toEqual(subscriber);
    expect(await connectionIds(client, 'commands')).toEqual(expect.arrayContaining(commands));
    await until(async () => (await direct.jobs.counts('q')).active === 0, { what: 'all to be completed' });
    await expectInvariants(client, 'q');
  });

  it('obeys pause and cancel after all its connections were killed', async () => {
    const client = server.client();
    const gates = new Gates();
    const echo = await rig.connect();
    echo.consume('q', { concurrency: 2 }, gates.handler).on('error', () => {});
    const remote = await rig.connect();
    const { id } = await remote.jobs.enqueue('q', 'long');
    const { job, end } = await gates.run(1);
    const aborted = new Promise<unknown>((resolve) => {
      job.signal.addEventListener('abort', () => resolve(job.signal.reason));
    });
    const before = await connectionIds(client, 'subscriber');
    await killConnections(client, 'subscriber', 'commands');
    await until(async () => (await connectionIds(client, 'subscriber')).some((one) => !before.includes(one)), {
      what: 'a new subscriber',
    });
    await parked(client);
    await remote.jobs.pause('q');
    await remote.jobs.enqueue('q', 'not now');
    expect(await remote.jobs.cancel('q', id)).toBe('stopping');
    expect(await aborted).toMatchObject({ why: 'cancelled' });
    end();
    await until(async () => (await remote.jobs.counts('q')).active === 0, { what: 'the long job to end' });
    expect(gates.runs).toHaveLength(1);
    expect(await remote.jobs.counts('q')).toMatchObject({ paused: true, pending: 1 });
    await remote.jobs.resume('q');
    (await gates.run(2)).end();
    await until(async () => (await remote.jobs.counts('q')).metrics.completed === 2, { what: 'the second job' });
    await expectInvariants(client, 'q');
  });

  it('stays in its database when it reconnects', async () => {
    const url = new URL(server.url);
    url.pathname = '/1';
    const client = server.client({ db: 1 });
    const elsewhere = server.client({ db: 0 });
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: url.href });
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    for (let round = 1; round <= 3; round++) {
      await parked(client);
      await killConnections(client, 'subscriber', 'commands');
      await echo.jobs.enqueue('q', 'job');
      await ledger.ran(round);
    }
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 3, { what: 'all to be completed' });
    expect(await elsewhere.dbsize()).toBe(0);
    await expectInvariants(client, 'q');
  });

  it('goes on after the server was killed and came back empty', async () => {
    const ledger = new Ledger();
    const echo = await rig.connect();
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    await echo.jobs.enqueue('q', 'before');
    await ledger.ran(1);
    await server.process.kill();
    await server.process.restart();
    await echo.jobs.enqueue('q', 'after');
    await ledger.ran(2);
    const client = server.client();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await expectInvariants(client, 'q');
  });
});

describeWithProcess('a process that only enqueues', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();

  it('makes a new socket when the old one is half open, and its job lands', async () => {
    const producer = await rig.connect({
      connection: proxied.url,
      clock: fastClock(5),
      enqueueTimeoutMs: 60_000,
    });
    await producer.jobs.enqueue('q', 'before');
    const before = proxied.connections;
    proxied.darken();
    const started = performance.now();
    await producer.jobs.enqueue('q', 'job');
    // Silence 5 s, a look every 2 s, a second look, on that clock.
    expect(performance.now() - started).toBeLessThan(8_000 / 5 + MARGIN_MS);
    expect(proxied.connections).toBe(before + 1);
    expect(rig.complaints.map((error) => error.message)).toContain(
      'the command connection has gone silent; a new one is made',
    );
    expect((await producer.jobs.list('q', 'pending')).jobs.map(({ name }) => name)).toEqual(['before', 'job']);
    await expectInvariants(server.client(), 'q');
  });
});
