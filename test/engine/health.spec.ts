import { describe, expect, it } from '@jest/globals';
import { EchoArgumentError, type HealthOptions } from '../../lib/core.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { asksForHealth, led, MINUTE, once, WELL } from './checkups.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';
import { SkewedClock } from './skewed-clock.js';

describe('the health of a process', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();

  it('that only enqueues is that of its server', async () => {
    const echo = await rig.connect();
    await echo.jobs.enqueue('q', 'not consumed here');
    expect(await echo.health()).toEqual({ ok: true, pingMs: expect.any(Number), queues: {} });
  });

  it('that has not been opened tells by the first connection', async () => {
    expect(await rig.create().health({ timeoutMs: 5000 })).toMatchObject({ ok: true });
  });

  it('that has closed is not well, and so it says', async () => {
    const echo = await rig.connect();
    echo.consume('q', {}, () => undefined);
    await echo.close();
    const error = 'ECHO_STATE: the connection is closed';
    expect(await echo.health()).toEqual({ ok: false, error, queues: {} });
  });

  it('tells of each queue that it consumes, and of no other', async () => {
    const echo = await rig.connect();
    for (const queue of ['q', 'mail', '__proto__']) echo.consume(queue, {}, () => undefined);
    await echo.jobs.enqueue('other', 'job');
    for (const queue of ['q', 'mail', '__proto__']) await led(echo, queue);
    const { queues, ...rest } = await echo.health();
    expect(rest).toEqual({ ok: true, pingMs: expect.any(Number) });
    expect(Object.entries(queues)).toEqual([
      ['q', WELL],
      ['mail', WELL],
      ['__proto__', WELL],
    ]);
  });

  it('no longer tells of a queue whose consumer has closed', async () => {
    const echo = await rig.connect();
    const consumer = echo.consume('q', {}, () => undefined);
    await consumer.close();
    expect((await echo.health()).queues).toEqual({});
  });

  it('is asked for in one round trip for all queues, and when it is asked for', async () => {
    const echo = await rig.connect({ connection: proxied.url });
    const queues = Array.from({ length: 20 }, (_, n) => `q${n}`);
    for (const queue of queues) echo.consume(queue, {}, () => undefined);
    let asked = 0;
    proxied.proxy.onRequest((command) => {
      if (asksForHealth(command)) asked += 1;
      return undefined;
    });
    for (const queue of queues) await until(() => server.client().zcard(`emq:{${queue}}:hungry`), { what: 'parked' });
    expect(asked).toBe(0);
    await echo.health(); // teaches the server the script
    asked = 0;
    proxied.proxy.freeze('replies');
    const health = echo.health({ timeoutMs: 5000 });
    await until(() => asked === 1 + queues.length, { what: 'all to be asked before one has answered' });
    proxied.proxy.thaw('replies');
    expect(await health).toMatchObject({ ok: true });
    expect(asked).toBe(1 + queues.length);
  });

  it.each([
    [{ timeoutMs: 0 }, 'timeoutMs'],
    [{ maxLateMs: -1 }, 'maxLateMs'],
    [{ stuckAfterMs: 1.5 }, 'stuckAfterMs'],
    [{ maxWaitingMs: 'long' }, 'maxWaitingMs'],
    [{ timeout: 5 }, "unknown option 'timeout' (here: timeoutMs)"],
    [null, 'health options'],
  ])('refuses the options %j', async (options, words) => {
    const echo = rig.create();
    const refused = await echo.health(options as HealthOptions).catch((error: Error) => error);
    expect(refused).toBeInstanceOf(EchoArgumentError);
    expect((refused as Error).message).toContain(words);
  });
});

describe('the leader of a queue', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  it('is not there right after the start, which is no fault', async () => {
    const echo = await rig.connect();
    echo.consume('q', {}, () => undefined);
    expect(await echo.health()).toMatchObject({ ok: true, queues: { q: { leader: false, reasons: [] } } });
    await led(echo);
  });

  it('may be gone until the next beat, which is no fault either', async () => {
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    echo.consume('q', {}, () => undefined);
    await led(echo);
    clock.skip(MINUTE);
    await server.client().del('emq:{q}:leader');
    expect(await echo.health()).toMatchObject({ ok: true, queues: { q: { reasons: [] } } });
  });

  it('may be another process', async () => {
    const [one, two] = [await rig.connect(), await rig.connect()];
    one.consume('q', {}, () => undefined);
    await led(one);
    two.consume('q', {}, () => undefined);
    expect((await two.health()).queues.q).toEqual(WELL);
  });

  it('that does not promote makes every process of the queue unwell, until it does', async () => {
    const client = server.client();
    await client.set('emq:{q}:leader', 'a stranger that does nothing');
    const echo = await rig.connect();
    echo.consume('q', {}, () => undefined);
    const { id } = await echo.jobs.enqueue('q', 'job', undefined, { delayMs: MINUTE });
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, lateMs: 0 });
    await client.zadd('emq:{q}:schedule', Date.now() - MINUTE, id);
    const { q } = (await echo.health()).queues;
    expect(q).toMatchObject({ ok: false, leader: true, stuck: false, reasons: [expect.stringContaining('late by')] });
    expect(q!.lateMs).toBeGreaterThanOrEqual(MINUTE - 1000);
    expect(await echo.health({ maxLateMs: 2 * MINUTE })).toMatchObject({ ok: true });
    await echo.jobs.promote('q');
    expect((await once(true, echo)).queues.q).toMatchObject({ lateMs: 0 });
    await client.del('emq:{q}:leader');
    await expectInvariants(client, 'q');
  });

  it('that does not reap makes them unwell too', async () => {
    const client = server.client();
    await client.set('emq:{q}:leader', 'a stranger that does nothing');
    const echo = await rig.connect();
    const { id } = await echo.jobs.enqueue('q', 'job');
    await echo.jobs.claim('q', { leaseMs: MINUTE });
    echo.consume('q', {}, () => undefined);
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, lateMs: 0 });
    await client.zadd('emq:{q}:active', Date.now() - MINUTE, id);
    const { q } = (await echo.health()).queues;
    expect(q).toMatchObject({ ok: false, reasons: [expect.stringContaining('late by')] });
    expect(q!.lateMs).toBeGreaterThanOrEqual(MINUTE - 1000);
    await echo.jobs.reap('q');
    await once(true, echo);
    await client.del('emq:{q}:leader');
    await expectInvariants(client, 'q');
  });
});
