import { describe, expect, it } from '@jest/globals';
import type { EchoMq } from '../../lib/core.js';
import { ID_EPOCH_MS, spellId } from '../../lib/kernel/id.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { beatNow, led, MINUTE, once, WELL } from './checkups.js';
import { Gates, Ledger } from './gates.js';
import { hashOf } from './hashes.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';
import { SkewedClock } from './skewed-clock.js';

describe('a consumer', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();

  /** One job, and a queue whose every claim is refused. */
  const spoilt = async (echo: EchoMq) => {
    await echo.jobs.enqueue('q', 'job');
    await server.client().set('emq:{q}:hungry', 'not what it should be');
  };

  it('whose claims are refused is stuck after a while, and is not when it claims again', async () => {
    const ledger = new Ledger();
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    await spoilt(echo);
    echo.consume('q', {}, ledger.handler);
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, pending: 1, stuck: false });
    clock.skip(MINUTE);
    const { q } = (await echo.health()).queues;
    expect(q).toMatchObject({ ok: false, pending: 1, stuck: true });
    expect(q!.reasons).toContainEqual(expect.stringMatching(/^jobs are pending \(1\) .* answered for 6\d{4} ms$/));
    expect((await echo.health({ stuckAfterMs: 2 * MINUTE })).queues.q).toMatchObject({ stuck: false });
    await server.client().del('emq:{q}:hungry');
    expect((await once(true, echo)).queues.q).toMatchObject({ stuck: false });
    await ledger.ran(1);
    await expectInvariants(server.client(), 'q');
  });

  it('whose claims are refused is stuck also when it has worked before', async () => {
    const gates = new Gates();
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    echo.consume('q', { leaseMs: 100 * MINUTE }, gates.handler);
    await echo.jobs.enqueueMany('q', [{ name: 'first' }, { name: 'second' }]);
    const run = await gates.run(1);
    await led(echo);
    await server.client().set('emq:{q}:hungry', 'not what it should be');
    run.end();
    await until(() => rig.complaints.some(({ code }) => code === 'EMQTYPE'), { what: 'a claim to be refused' });
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, pending: 1, stuck: false });
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toMatchObject({ ok: false, pending: 1, stuck: true });
    await server.client().del('emq:{q}:hungry');
    (await gates.run(2)).end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both to be done' });
    await expectInvariants(server.client(), 'q');
  });

  it('that ignores what the beat tells of claimable jobs is stuck after a while', async () => {
    const client = server.client();
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    const producer = await rig.connect();
    const consumer = echo.consume('q', {}, () => undefined);
    await led(echo);
    await until(() => client.zcard('emq:{q}:hungry'), { what: 'the consumer to park' });
    const { claims } = consumer as unknown as { claims: { wake(): void } };
    claims.wake = () => undefined; // as if it had a fault
    await producer.jobs.enqueue('q', 'job');
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, pending: 1, stuck: false });
    await beatNow(client);
    await until(() => consumer.claimOwedSince, { what: 'the beat' });
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toMatchObject({ ok: false, pending: 1, stuck: true });
    await expectInvariants(client, 'q');
  });

  it('whose claims are refused is not stuck while nothing is pending', async () => {
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    await server.client().set('emq:{q}:hungry', 'not what it should be');
    echo.consume('q', {}, () => undefined);
    await led(echo);
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toEqual(WELL);
  });

  it('whose queue is paused is not stuck, and its jobs may wait', async () => {
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    await spoilt(echo);
    echo.consume('q', {}, () => undefined);
    await led(echo);
    clock.skip(MINUTE);
    await echo.jobs.pause('q');
    expect((await echo.health({ maxWaitingMs: 0 })).queues.q).toMatchObject({ ok: true, pending: 1, paused: true });
    await server.client().del('emq:{q}:paused');
    expect((await echo.health()).queues.q).toMatchObject({ ok: false, paused: false, stuck: true });
  });

  it('that is paused in its process is not stuck, and is given time when it goes on', async () => {
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    await spoilt(echo);
    const consumer = echo.consume('q', {}, () => undefined);
    consumer.pause();
    await led(echo);
    clock.skip(MINUTE);
    expect((await echo.health({ maxWaitingMs: 0 })).queues.q).toMatchObject({ ok: true, pending: 1, paused: true });
    consumer.resume();
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, paused: false, stuck: false });
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toMatchObject({ ok: false, stuck: true });
  });

  it('whose slots are busy is not stuck, nor in the moment in which one becomes free', async () => {
    const gates = new Gates();
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock, connection: proxied.url });
    echo.consume('q', { leaseMs: 100 * MINUTE }, gates.handler);
    await echo.jobs.enqueueMany('q', [{ name: 'long' }, { name: 'next' }]);
    const run = await gates.run(1);
    await led(echo);
    const beat = proxied.proxy.request(hashOf('lead'));
    await beatNow(server.client());
    await beat; // which is told that something is claimable
    await echo.jobs.counts('q');
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toEqual({ ...WELL, pending: 1, waitingMs: expect.any(Number) });
    const claim = proxied.proxy.hold(hashOf('claim'));
    run.end();
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, pending: 1, stuck: false });
    (await claim).release();
    (await gates.run(2)).end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both to be done' });
    await expectInvariants(server.client(), 'q');
  });

  it('whose slots are busy is not stuck, although it would claim ahead and cannot', async () => {
    const client = server.client();
    const gates = new Gates();
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    echo.consume('q', { leaseMs: 100 * MINUTE }, (job) => (job.name === 'fast' ? undefined : gates.handler(job)));
    await echo.jobs.enqueueMany('q', Array(100).fill({ name: 'fast' }));
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 100, { what: 'the fast ones' });
    await echo.jobs.enqueue('q', 'long');
    const run = await gates.run(1);
    await echo.jobs.pause('q'); // so that nobody is woken
    await echo.jobs.enqueue('q', 'next');
    await client.del('emq:{q}:paused');
    await client.set('emq:{q}:hungry', 'not what it should be');
    await beatNow(client);
    await until(() => rig.complaints.some(({ code }) => code === 'EMQTYPE'), { what: 'a claim to be refused' });
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, pending: 1, stuck: false });
    await client.del('emq:{q}:hungry');
    run.end();
    (await gates.run(2)).end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 102, { what: 'all to be done' });
    await expectInvariants(client, 'q');
  });

  it('that nobody has woken yet after a long quiet is not stuck', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock });
    const producer = await rig.connect();
    echo.consume('q', {}, ledger.handler);
    await led(echo);
    await until(() => client.zcard('emq:{q}:hungry'), { what: 'the consumer to park' });
    await client.del('emq:{q}:hungry');
    await producer.jobs.enqueue('q', 'job');
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toMatchObject({ ok: true, pending: 1, stuck: false });
    await ledger.ran(1); // found by the beat
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'it to be done' });
    await expectInvariants(client, 'q');
  });

  it('is given time after an outage', async () => {
    const clock = new SkewedClock();
    const echo = await rig.connect({ clock, connection: proxied.url });
    await spoilt(echo);
    echo.consume('q', {}, () => undefined);
    await led(echo);
    clock.skip(MINUTE);
    expect((await echo.health()).queues.q).toMatchObject({ stuck: true });
    proxied.proxy.cut();
    expect((await once(true, echo)).queues.q).toMatchObject({ pending: 1, stuck: false });
    clock.skip(MINUTE);
    expect((await once(false, echo)).queues.q).toMatchObject({ stuck: true });
  });

  it('tells how long the next job has waited, which is no fault unless a limit is given', async () => {
    const gates = new Gates();
    const echo = await rig.connect();
    echo.consume('q', {}, gates.handler);
    await echo.jobs.enqueue('q', 'long');
    const run = await gates.run(1);
    await led(echo);
    const id = spellId(Date.now() - MINUTE - ID_EPOCH_MS, 0, 0);
    await echo.jobs.enqueue('q', 'next', undefined, { id });
    const { q } = (await echo.health()).queues;
    expect(q).toMatchObject({ ok: true, pending: 1, stuck: false });
    expect(q!.waitingMs).toBeGreaterThanOrEqual(MINUTE - 1000);
    expect(q!.waitingMs).toBeLessThan(2 * MINUTE);
    expect((await echo.health({ maxWaitingMs: MINUTE / 2 })).queues.q).toMatchObject({
      ok: false,
      reasons: [expect.stringMatching(/^the next job has waited \d+ ms, allowed are 30000$/)],
    });
    expect(await echo.health({ maxWaitingMs: 2 * MINUTE })).toMatchObject({ ok: true });
    run.end();
    (await gates.run(2)).end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both to be done' });
    await expectInvariants(server.client(), 'q');
  });

  it('whose queue the server refuses to look at does not hide how the others are', async () => {
    const client = server.client();
    const echo = await rig.connect();
    for (const queue of ['q', 'mail']) echo.consume(queue, {}, () => undefined);
    await led(echo, 'mail');
    await client.set('emq:{q}:schedule', 'not what it should be');
    const { ok, error, queues } = await echo.health();
    expect({ ok, error, queues }).toEqual({
      ok: false,
      error: undefined,
      queues: { q: { ok: false, reasons: [expect.stringMatching(/^EMQTYPE: .*schedule holds a string/)] }, mail: WELL },
    });
  });
});
