import { expect, it } from '@jest/globals';
import { EchoStoreError, EchoTimeoutError } from '../../lib/core.js';
import { freePort } from '../../scripts/server/free-port.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { useRig } from './rig.js';
import { SkewedClock } from './skewed-clock.js';

/** What a busy machine may add to a time limit; without the limit it would be 5 s, or never. */
const MARGIN_MS = 3_000;

/** What a promise comes to before anything else can happen. */
const inThisTurn = (answer: Promise<unknown>) =>
  Promise.race([answer, new Promise((next) => setImmediate(next, 'nothing yet'))]);

describeWithProcess('a producer whose server is down', () => {
  const server = useServer({ appendonly: true });
  const rig = useRig(server);
  guardLeaks();

  it('is refused with a retryable error within its time limit, and goes on once the server is back', async () => {
    const { jobs } = await rig.connect({ enqueueTimeoutMs: 300 });
    await jobs.enqueue('q', 'before');
    await server.process.kill();
    const started = performance.now();
    const error = await jobs.enqueue('q', 'lost').catch((reason: unknown) => reason);
    expect(performance.now() - started).toBeLessThan(300 + MARGIN_MS);
    expect(error).toBeInstanceOf(EchoTimeoutError);
    expect(error).toMatchObject({ code: 'ECHO_TIMEOUT', retryable: true });
    await expect(jobs.enqueueMany('q', [{ name: 'lost' }, { name: 'lost' }])).rejects.toMatchObject({
      code: 'ECHO_TIMEOUT',
      retryable: true,
    });
    await server.process.restart();
    await until(() => jobs.enqueue('q', 'after').catch(() => undefined), { what: 'a job to land' });
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(['before', 'after']);
    await expectInvariants(server.client(), 'q');
  });

  it('waits as long as it takes where the limit is Infinity: everything lands, once, in order', async () => {
    const { jobs } = await rig.connect({ enqueueTimeoutMs: Number.POSITIVE_INFINITY, requestTimeoutMs: 300 });
    await server.process.kill();
    const singles = Array.from({ length: 100 }, (_, n) => jobs.enqueue('q', `single ${n}`));
    const many = jobs.enqueueMany(
      'q',
      Array.from({ length: 600 }, (_, n) => ({ name: `many ${n}` })),
    );
    let answered = false;
    const all = Promise.all([...singles, many]).then(() => {
      answered = true;
    });
    await expect(jobs.counts('q')).rejects.toMatchObject({ retryable: true });
    expect(answered).toBe(false);
    await server.process.restart();
    await all;
    const { jobs: listed, total } = await jobs.list('q', 'pending', { limit: 1000 });
    expect(total).toBe(700);
    expect(listed.filter((job) => job.name.startsWith('single')).map((job) => job.name)).toEqual(
      singles.map((_, n) => `single ${n}`),
    );
    await expectInvariants(server.client(), 'q');
  });

  it('is refused at once where too many jobs wait already', async () => {
    const { jobs } = await rig.connect({
      enqueueTimeoutMs: Number.POSITIVE_INFINITY,
      enqueueBufferLimit: 3,
      requestTimeoutMs: 100,
    });
    await server.process.kill();
    await expect(jobs.counts('q')).rejects.toMatchObject({ retryable: true }); // by now the loss has been noticed
    const waiting = ['one', 'two', 'three'].map((name) => jobs.enqueue('q', name));
    const error = await inThisTurn(jobs.enqueue('q', 'four').catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(EchoStoreError);
    expect(error).toMatchObject({ code: 'ECHO_BUFFER_FULL', retryable: true });
    await expect(jobs.enqueueMany('q', [{ name: 'five' }])).rejects.toMatchObject({ code: 'ECHO_BUFFER_FULL' });
    await server.process.restart();
    await Promise.all(waiting);
    expect((await jobs.counts('q')).pending).toBe(3);
    await expectInvariants(server.client(), 'q');
  });

  it('does not land what has been given up, and can land it later under the same id', async () => {
    const { jobs } = await rig.connect({ enqueueTimeoutMs: 100 });
    const id = jobs.mintId();
    await server.process.kill();
    await expect(jobs.enqueue('q', 'job', undefined, { id })).rejects.toMatchObject({ retryable: true });
    await server.process.restart();
    await until(() => jobs.counts('q').catch(() => undefined), { what: 'the server' });
    expect((await jobs.counts('q')).pending).toBe(0);
    expect(await jobs.enqueue('q', 'job', undefined, { id })).toEqual({ id, status: 'landed' });
    await expectInvariants(server.client(), 'q');
  });

  it('is told within its time limit that the server answers nothing any more', async () => {
    const { jobs } = await rig.connect({ enqueueTimeoutMs: 200 });
    server.process.pause();
    const started = performance.now();
    await expect(jobs.enqueue('q', 'job')).rejects.toBeInstanceOf(EchoTimeoutError);
    expect(performance.now() - started).toBeLessThan(200 + MARGIN_MS);
    server.process.resume();
    await until(async () => (await jobs.counts('q')).pending === 1, { what: 'the job, which was already sent' });
    await expectInvariants(server.client(), 'q');
  });

  it('is refused within the time limit of an enqueue where it may not mint ids either, and goes on by itself', async () => {
    const clock = new SkewedClock();
    const { jobs } = await rig.connect({ clock, enqueueTimeoutMs: 200, requestTimeoutMs: 500 });
    await jobs.enqueue('q', 'before');
    await server.process.kill();
    await expect(jobs.counts('q')).rejects.toMatchObject({ retryable: true }); // by now the loss has been noticed
    clock.skip(400_000, ['wall']); // longer than a node number is leased for
    const started = performance.now();
    const calls = [jobs.enqueue('q', 'lost'), jobs.enqueueMany('q', [{ name: 'lost' }, { name: 'lost' }])];
    for (const call of await Promise.allSettled(calls)) {
      expect(call).toMatchObject({ status: 'rejected', reason: { code: 'ECHO_TIMEOUT', retryable: true } });
    }
    expect(() => jobs.mintId()).toThrow('no id can be minted');
    expect(performance.now() - started).toBeLessThan(200 + MARGIN_MS);
    await server.process.restart();
    await until(() => jobs.enqueue('q', 'after').catch(() => undefined), { what: 'a job to land' });
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(['before', 'after']);
    await expectInvariants(server.client(), 'q');
  });

  it('counts jobs that wait for their ids among those that wait', async () => {
    const clock = new SkewedClock();
    const { jobs } = await rig.connect({
      clock,
      enqueueTimeoutMs: 60_000,
      enqueueBufferLimit: 3,
      requestTimeoutMs: 100,
    });
    await server.process.kill();
    await expect(jobs.counts('q')).rejects.toMatchObject({ retryable: true }); // by now the loss has been noticed
    clock.skip(400_000, ['wall']);
    const waiting = [jobs.enqueue('q', 'one'), jobs.enqueueMany('q', [{ name: 'two' }, { name: 'three' }])];
    for (const refused of [jobs.enqueue('q', 'four'), jobs.enqueueMany('q', [{ name: 'five' }])]) {
      const error = await inThisTurn(refused.catch((reason: unknown) => reason));
      expect(error).toMatchObject({ code: 'ECHO_BUFFER_FULL', retryable: true });
    }
    await server.process.restart();
    await Promise.all(waiting);
    expect((await jobs.counts('q')).pending).toBe(3);
    await jobs.enqueue('q', 'six');
    await expectInvariants(server.client(), 'q');
  });

  it('cannot connect within its time limit, and leaves nothing open', async () => {
    const echo = rig.create({ connection: `redis://127.0.0.1:${await freePort()}`, connectTimeoutMs: 200 });
    const started = performance.now();
    await expect(echo.open()).rejects.toMatchObject({ code: 'ECHO_TIMEOUT', retryable: true });
    expect(performance.now() - started).toBeLessThan(200 + MARGIN_MS);
    await expectInvariants(server.client(), 'q');
  });
});
