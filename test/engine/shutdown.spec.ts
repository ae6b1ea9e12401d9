import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { freePort } from '../../scripts/server/free-port.js';
import { RedisProcess } from '../../scripts/server/redis-process.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { endWorkers, spawnWorker, type WorkerProcess } from '../support/worker-process.js';
import { Gates, Ledger } from './gates.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';

/** What a busy machine may add to times that are our own. */
const MARGIN_MS = 3_000;

/** The process ends by itself, with code 0: all that is left then is for Node to go down. */
async function naturalEnd(worker: WorkerProcess): Promise<void> {
  await expect(worker.next('nothing more')).rejects.toThrow('it ended with 0');
}

describeWithProcess('closing', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  endWorkers();
  guardLeaks();

  it.each(['unopened', 'opening', 'idle', 'subscribing', 'consuming', 'twice'])(
    'leaves nothing that keeps the process awake, which then ends by itself: %s',
    async (way) => {
      const worker = spawnWorker('test/engine/workers/closer.ts', { args: [server.url, way] });
      expect((await worker.next('closed')).left).toEqual([]);
      await naturalEnd(worker);
      const left = String(await server.process.command('CLIENT', 'LIST'));
      expect(left).not.toContain('name=echomq:');
      await expectInvariants(server.client(), 'q');
    },
  );

  it.each(['unopened', 'opening'])(
    'leaves nothing that keeps the process awake where no server is: %s',
    async (way) => {
      const worker = spawnWorker('test/engine/workers/closer.ts', {
        args: [`redis://127.0.0.1:${await freePort()}`, way],
      });
      expect((await worker.next('closed')).left).toEqual([]);
      await naturalEnd(worker);
      await expectInvariants(server.client(), 'q');
    },
  );

  it.each(['consumer.close()', 'echo.drain()'])('waits for handlers that %s is waiting for already', async (first) => {
    const echo = await rig.connect();
    const gates = new Gates();
    const consumer = echo.consume('q', {}, gates.handler);
    await echo.jobs.enqueue('q', 'job');
    const run = await gates.run(1);
    const earlier = first === 'echo.drain()' ? echo.drain() : consumer.close();
    let closed = false;
    const closing = echo.close().then(() => {
      closed = true;
    });
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 1 }); // over sockets that are still there
    expect(closed).toBe(false);
    run.end();
    await closing;
    await earlier;
    const client = server.client();
    expect(await client.hget('emq:{q}:metrics:completed', 'count')).toBe('1');
    await expectInvariants(client, 'q');
  });

  it('resolves while it still looks for a server, and the opening call rejects', async () => {
    const echo = rig.create({ connection: `redis://127.0.0.1:${await freePort()}` });
    const opening = echo.open();
    const started = performance.now();
    await Promise.all([expect(opening).rejects.toMatchObject({ code: 'ECHO_STATE' }), echo.close()]);
    expect(performance.now() - started).toBeLessThan(5_000); // not the time in which it may connect
    await echo.close();
    await expectInvariants(server.client(), 'q');
  });

  it('resolves when the server was killed before the last job ended; the process ends by itself', async () => {
    const mortal = await RedisProcess.start({ appendonly: true });
    try {
      const worker = spawnWorker('test/engine/workers/orphan.ts', { args: [mortal.url] });
      const { jobs } = await rig.connect({ connection: mortal.url });
      const { id } = await jobs.enqueue('q', 'job');
      await worker.next('started');
      worker.send({ type: 'close' });
      await worker.next('closing');
      await mortal.kill();
      const started = performance.now();
      worker.send({ type: 'end' });
      const { left } = await worker.next('closed');
      expect(performance.now() - started).toBeLessThan(2_000 + MARGIN_MS);
      expect(left).toEqual([]);
      await naturalEnd(worker);
      await mortal.restart();
      const client = new Redis(mortal.url);
      await expectInvariants(client, 'q');
      expect(await client.hget(`emq:{q}:job:${id}`, 'state')).toBe('active'); // until its lease lapses
      await client.quit();
    } finally {
      await mortal.stop();
    }
  });

  it('waits for the retry of a job that fails meanwhile', async () => {
    const gates = new Gates();
    const echo = await rig.connect();
    const told: string[] = [];
    echo.consume('q', {}, gates.handler).on('failed', (_job, _error, outcome) => told.push(outcome));
    const { id } = await echo.jobs.enqueue('q', 'job');
    const run = await gates.run(1);
    let closed = false;
    const closing = echo.close().then(() => {
      closed = true;
    });
    const other = await rig.connect();
    expect(await other.jobs.get('q', id)).toMatchObject({ state: 'active' });
    expect(closed).toBe(false);
    run.fail(new Error('at the last moment'));
    await closing;
    expect(told).toEqual(['scheduled']);
    expect(await other.jobs.get('q', id)).toMatchObject({ state: 'scheduled', attempts: 1, uncharged: 0 });
    await expectInvariants(server.client(), 'q');
  });

  it.each(['consumer', 'engine'] as const)(
    'of the %s from a listener waits for running handlers, also for the one that enqueued the job it hears of',
    async (which) => {
      const echo = await rig.connect();
      const gates = new Gates();
      let closing: Promise<string> | undefined;
      let ended = false;
      const consumer = echo.consume('q', { concurrency: 2 }, async (job) => {
        if (job.name === 'quick') return;
        await echo.jobs.enqueue('q', 'quick');
        await gates.handler(job);
        ended = true;
      });
      consumer.on('completed', (job) => {
        if (job.name !== 'quick') return;
        closing = (which === 'engine' ? echo.close() : consumer.close()).then(() => (ended ? 'after' : 'before'));
      });
      await until(() => server.client().zcard('emq:{q}:hungry'), { what: 'the consumer to park' });
      await echo.jobs.enqueue('q', 'long');
      const long = await gates.run(1);
      await until(() => closing !== undefined, { what: 'the listener' });
      const observer = await rig.connect();
      for (let n = 0; n < 20; n++) await observer.jobs.counts('q');
      long.end();
      expect(await closing).toBe('after');
      expect(await observer.jobs.counts('q')).toMatchObject({ active: 0, metrics: { completed: 2 } });
      await expectInvariants(server.client(), 'q');
    },
  );

  it.each(['consumer', 'engine'] as const)('from inside a handler closes the %s without a deadlock', async (which) => {
    const echo = await rig.connect();
    const gates = new Gates();
    const closed: string[] = [];
    const consumer = echo.consume('q', { concurrency: 2 }, async (job) => {
      if (job.name !== 'closes') return gates.handler(job);
      await (which === 'engine' ? echo.close() : consumer.close());
      closed.push(job.name);
    });
    await echo.jobs.enqueueMany('q', [{ name: 'other' }, { name: 'closes' }]);
    const other = await gates.run(1);
    const observer = await rig.connect();
    await until(async () => (await observer.jobs.counts('q')).active === 2, { what: 'both to run' });
    expect(closed).toEqual([]); // it waits for the other handler
    other.end();
    await consumer.close();
    await until(async () => (await observer.jobs.counts('q')).metrics.completed === 2, { what: 'both completions' });
    expect(closed).toEqual(['closes']);
    await expectInvariants(server.client(), 'q');
  });

  it('from inside a handler that has lost its lease does not wait for that handler', async () => {
    const echo = await rig.connect({ connection: proxied.url });
    const consumer = echo.consume('q', { leaseMs: 200, drainMs: 5_000 }, async (job) => {
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      await consumer.close();
      closedAt = performance.now();
    });
    let closedAt = 0;
    consumer.on('error', () => {});
    await echo.jobs.enqueue('q', 'job');
    await until(() => consumer.active === 1, { what: 'the job to run' });
    proxied.proxy.freeze();
    await new Promise<void>((resolve) => consumer.on('lease-lost', () => resolve()));
    const lostAt = performance.now();
    proxied.proxy.thaw();
    await until(() => closedAt > 0, { what: 'the close inside the handler' });
    expect(closedAt - lostAt).toBeLessThan(4_000); // not the five seconds of the drain
    await expectInvariants(server.client(), 'q');
  });

  it('from two handlers at once ends too', async () => {
    const echo = await rig.connect();
    const consumer = echo.consume('q', { concurrency: 2 }, () => consumer.close());
    await echo.jobs.enqueueMany('q', [{ name: 'one' }, { name: 'two' }]);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed >= 1, { what: 'a completion' });
    await consumer.close();
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 0 });
    await expectInvariants(server.client(), 'q');
  });

  it('leaves a job that throws at the instant of its release in one place, uncharged, and runs it elsewhere', async () => {
    const echo = await rig.connect();
    const ledger = new Ledger();
    const started = new Gates();
    echo.consume('q', { drainMs: 50 }, async (job) => {
      await new Promise((_, reject) => {
        job.signal.addEventListener('abort', () => reject(new Error('stopped')));
        started.handler(job);
      });
    });
    const { id } = await echo.jobs.enqueue('q', 'job');
    await started.run(1);
    await echo.close();
    const other = await rig.connect();
    expect(await other.jobs.get('q', id)).toMatchObject({ state: 'pending', attempts: 1, uncharged: 1, errors: [] });
    await expectInvariants(server.client(), 'q');
    other.consume('q', {}, ledger.handler);
    await ledger.ran(1);
    expect(ledger.jobs[0]).toMatchObject({ id, attempts: 2, attempt: 1 });
    await until(async () => (await other.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await expectInvariants(server.client(), 'q');
  });

  it('gives back at once what was claimed ahead and not started', async () => {
    const echo = await rig.connect();
    const gates = new Gates();
    const consumer = echo.consume('q', { drainMs: 50 }, (job) =>
      job.name === 'slow' ? gates.handler(job) : undefined,
    );
    await echo.jobs.enqueueMany('q', [
      ...Array.from({ length: 200 }, () => ({ name: 'fast' })),
      { name: 'slow' },
      ...Array.from({ length: 50 }, () => ({ name: 'fast' })),
    ]);
    await gates.run(1);
    await consumer.close();
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 0, pending: 51, metrics: { completed: 200 } });
    const { jobs } = await echo.jobs.list('q', 'pending');
    expect(jobs.map((job) => job.attempts - job.uncharged)).toEqual(Array.from({ length: 51 }, () => 0));
    await expectInvariants(server.client(), 'q');
  });

  it('a consumer leaves its queue to be consumed again by the same engine', async () => {
    const echo = await rig.connect();
    for (let life = 1; life <= 5; life++) {
      const ledger = new Ledger();
      const consumer = echo.consume('q', {}, ledger.handler);
      await echo.jobs.enqueue('q', 'job');
      await ledger.ran(1);
      await consumer.close();
      await consumer.close();
    }
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 0, metrics: { completed: 5 } });
    await expectInvariants(server.client(), 'q');
  });

  it('answers what was enqueued just before, and refuses what comes after', async () => {
    const echo = await rig.connect();
    const last = echo.jobs.enqueue('q', 'last');
    const closing = echo.close();
    await expect(last).resolves.toMatchObject({ status: 'landed' });
    await closing;
    await expect(echo.jobs.enqueue('q', 'late')).rejects.toMatchObject({ code: 'ECHO_STATE' });
    const closed = { name: 'EchoStateError', code: 'ECHO_STATE', retryable: false };
    expect(() => echo.jobs.mintId()).toThrow(expect.objectContaining(closed));
    await expectInvariants(server.client(), 'q');
  });
});
