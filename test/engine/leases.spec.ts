import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { type DeadJob, Discard, type Job, type JobAborted } from '../../lib/core.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { endWorkers, spawnWorker, type WorkerProcess } from '../support/worker-process.js';
import { fastClock, rareBeats } from './fast-clock.js';
import { Gates, Ledger } from './gates.js';
import { hashOf } from './hashes.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';
import { SkewedClock } from './skewed-clock.js';

const WORKER = 'test/engine/workers/consumer.ts';
const BEAT_MS = 3_000;
/** What a busy machine may add to times that are the sum of our own. */
const MARGIN_MS = 2_000;

async function serverMs(client: Redis): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

describeWithProcess('a lease', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  endWorkers();
  guardLeaks();

  const worker = async (options: object, queue = 'q'): Promise<WorkerProcess> => {
    const started = spawnWorker(WORKER, { args: [server.url, queue, JSON.stringify(options)] });
    await started.next('ready');
    return started;
  };

  const ended = async (counts: object, queue = 'q') => {
    const client = server.client();
    const { jobs } = await rig.connect();
    await until(async () => (await jobs.counts(queue)).active === 0, { what: 'all to be settled' });
    expect(await jobs.counts(queue)).toMatchObject(counts);
    await expectInvariants(client, queue);
  };

  it('is renewed at once when the claim was long on its way', async () => {
    const clock = new SkewedClock();
    const gates = new Gates();
    const echo = await rig.connect({ connection: proxied.url, clock });
    const { id } = await echo.jobs.enqueue('q', 'job');
    const held = proxied.proxy.hold(hashOf('claim'));
    const lost: string[] = [];
    echo.consume('q', { leaseMs: 60_000 }, gates.handler).on('lease-lost', (job) => lost.push(job.id));
    const { release } = await held;
    const renewal = proxied.proxy.request(hashOf('extend'));
    clock.skip(25_000);
    release();
    const run = await gates.run(1);
    expect((await renewal).toString()).toContain(id);
    run.end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    expect(lost).toEqual([]);
    await expectInvariants(server.client(), 'q');
  });

  it('that a blocked process lost is not settled by it: the other process has the job', async () => {
    const client = server.client();
    const gates = new Gates();
    const completed: string[] = [];
    const b = await rig.connect();
    const consumer = b
      .consume('q', { leaseMs: 1_000, keepMs: 60_000 }, gates.handler)
      .on('completed', (_job, result) => completed.push(String(result)));
    await until(() => client.exists('emq:{q}:leader'), { what: 'b to lead' });
    consumer.pause();
    const a = await worker({ leaseMs: 1_000, keepMs: 60_000 });
    const { id } = await b.jobs.enqueue('q', 'job', { do: 'block', ms: 3_000 });
    await a.next('started');
    consumer.resume();
    const run = await gates.run(1);
    expect(run.job).toMatchObject({ id, attempts: 2 });
    expect(await a.next('lease-lost')).toMatchObject({ id, attempts: 1 });
    run.end('b');
    await until(() => completed.length === 1, { what: 'the completion' });
    expect((await b.jobs.get('q', id))?.result?.toString()).toBe('"b"');
    await expect(a.next('completed', 100)).rejects.toThrow('said no "completed" within');
    await ended({ pending: 0, dead: 0, metrics: { completed: 1, stalled: 1 } });
  });

  it('that lapsed is still settled by its holder, before a reap and after it, as long as nobody has claimed the job', async () => {
    const client = server.client();
    const { jobs } = await rig.connect();
    await jobs.enqueueMany('q', [{ name: 'before' }, { name: 'after' }]);
    const [before, after] = await jobs.claim('q', { leaseMs: 1, count: 2 });
    const score = Number(await client.zscore('emq:{q}:active', after!.id));
    await until(async () => (await serverMs(client)) > score, { what: 'the leases to lapse' });
    expect(await jobs.complete('q', before!.id, before!.token)).toBe('ok');
    expect(await jobs.reap('q')).toMatchObject({ requeued: 1, died: 0 });
    expect(await jobs.complete('q', after!.id, after!.token)).toBe('ok');
    expect(await jobs.claim('q', { leaseMs: 1_000, count: 10 })).toEqual([]);
    await ended({ pending: 0, dead: 0, metrics: { completed: 2 } });
  });

  it('is not found by a reap that comes after the job was completed', async () => {
    const { jobs } = await rig.connect();
    await jobs.enqueueMany('q', [{ name: 'gone' }, { name: 'kept' }]);
    const [gone, kept] = await jobs.claim('q', { leaseMs: 1, count: 2 });
    expect(await jobs.complete('q', gone!.id, gone!.token)).toBe('ok');
    expect(await jobs.complete('q', kept!.id, kept!.token, { keepMs: 60_000 })).toBe('ok');
    expect(await jobs.reap('q')).toEqual({ requeued: 0, died: 0, deadIds: [], nextAt: undefined, nextInMs: undefined });
    expect(await jobs.claim('q', { leaseMs: 1_000, count: 10 })).toEqual([]);
    expect((await jobs.get('q', kept!.id))?.state).toBe('done');
    await ended({ pending: 0, metrics: { completed: 2 } });
  });

  it('buries a job that kills its process each time, after exactly three starts', async () => {
    const client = server.client();
    const starts: number[] = [];
    const keeper = await rig.connect({ clock: fastClock(10) }); // beats ten times as often
    keeper.consume('q', { leaseMs: 300 }, () => {}).pause(); // leads and reaps, runs nothing
    await until(() => client.exists('emq:{q}:leader'), { what: 'a leader' });
    const { id } = await keeper.jobs.enqueue('q', 'poison', { do: 'suicide' });
    for (let life = 1; life <= 3; life++) {
      const one = await worker({ leaseMs: 300, attempts: 3 });
      starts.push((await one.next('started')).attempts as number);
      await one.kill();
    }
    await until(async () => (await keeper.jobs.counts('q')).dead === 1, { what: 'the job to be buried' });
    expect(starts).toEqual([1, 2, 3]);
    const healthy = await worker({ leaseMs: 300 });
    await keeper.jobs.enqueue('q', 'fine');
    await healthy.next('completed');
    await expect(healthy.next('started', 50)).resolves.toMatchObject({ attempts: 1 });
    expect(await keeper.jobs.get('q', id)).toMatchObject({
      state: 'dead',
      attempts: 3,
      stalls: 3,
      lastError: 'lease lapsed 3 times',
    });
    await ended({ pending: 0, dead: 1, metrics: { completed: 1, failed: 1, stalled: 3 } });
  });

  it('that lapsed once too often is told, with the job and the reason, by the process that leads (C048)', async () => {
    const client = server.client();
    const told: DeadJob[] = [];
    const keeper = await rig.connect();
    const consumer = keeper.consume('q', { maxStalls: 0 }, () => {}).on('dead', (job) => told.push(job));
    await until(() => client.exists('emq:{q}:leader'), { what: 'a leader' });
    consumer.pause();
    const { id } = await keeper.jobs.enqueue('q', 'mail', { to: 'a' }, { attempts: 1 });
    expect(await keeper.jobs.claim('q', { leaseMs: 1 })).toHaveLength(1); // and never heard of again
    await until(() => told.length === 1, { what: 'the death to be told', timeoutMs: 10_000 }); // by the next beat
    const reason = 'lease lapsed 1 times';
    expect(told).toEqual([{ queue: 'q', id, name: 'mail', data: { to: 'a' }, attempts: 1, attempt: 1, reason }]);
    await ended({ pending: 0, dead: 1 });
  });

  it('is not needed for a death to be told: so is that of a job whose handler gave it up', async () => {
    const told: DeadJob[] = [];
    const echo = await rig.connect();
    const handler = (job: Job) => {
      throw job.name === 'discarded' ? new Discard('no such address') : new Error('boom');
    };
    const backoff = { type: 'fixed', delayMs: 0 } as const;
    echo.consume('q', { attempts: 2, backoff }, handler).on('dead', (job) => told.push(job));
    await echo.jobs.enqueueMany('q', [{ name: 'discarded', data: 1 }, { name: 'failed' }]);
    await until(() => told.length === 2, { what: 'both deaths' });
    expect(told).toMatchObject([
      { name: 'discarded', data: 1, attempts: 1, attempt: 1, reason: 'no such address' },
      { name: 'failed', attempts: 2, attempt: 2, reason: expect.stringContaining('Error: boom') },
    ]);
    await ended({ dead: 2 });
  });

  it('of a killed process is over at its deadline, and a parked consumer gets the job with no new one coming', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const idle = await rig.connect();
    const consumer = idle.consume('q', { leaseMs: 400 }, ledger.handler);
    await until(() => client.exists('emq:{q}:leader'), { what: 'the idle one to lead' });
    consumer.pause();
    const victim = await worker({ leaseMs: 400 });
    const { id } = await idle.jobs.enqueue('q', 'job', { do: 'hang' });
    await victim.next('started');
    consumer.resume();
    await until(async () => (await client.zcard('emq:{q}:hungry')) === 1, { what: 'the idle one to park' });
    const killed = performance.now();
    await victim.kill();
    await ledger.ran(1, 10_000);
    expect(performance.now() - killed).toBeLessThan(400 + BEAT_MS + MARGIN_MS);
    expect(ledger.jobs[0]).toMatchObject({ id, attempts: 2 });
    await ended({ pending: 0, metrics: { completed: 1, stalled: 1 } });
  });

  it('of a killed process that led the queue too is over once another has taken the lead', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const victim = await worker({ leaseMs: 400 });
    await until(() => client.exists('emq:{q}:leader'), { what: 'the victim to lead' });
    const leader = await client.get('emq:{q}:leader');
    const idle = await rig.connect({ clock: fastClock(10) });
    const { id } = await idle.jobs.enqueue('q', 'job', { do: 'hang' });
    await victim.next('started');
    idle.consume('q', { leaseMs: 4_000 }, ledger.handler);
    const killed = performance.now();
    await victim.kill();
    await ledger.ran(1, 20_000);
    expect(performance.now() - killed).toBeLessThan(10_000 + BEAT_MS + MARGIN_MS);
    expect(ledger.jobs[0]).toMatchObject({ id, attempts: 2 });
    expect(await client.get('emq:{q}:leader')).not.toBe(leader);
    await ended({ pending: 0, metrics: { completed: 1, stalled: 1 } });
  });

  it('is known to be lost by our own clock when the server cannot be reached; the result is dropped', async () => {
    const leaseMs = 1_000;
    const client = server.client();
    const gatesOfB = new Gates();
    const b = await rig.connect();
    const consumerB = b.consume('q', { leaseMs }, gatesOfB.handler);
    await until(() => client.exists('emq:{q}:leader'), { what: 'b to lead' });
    consumerB.pause();
    const gates = new Gates();
    const events: string[] = [];
    const a = await rig.connect({ connection: proxied.url });
    a.consume('q', { leaseMs }, gates.handler)
      .on('completed', (job) => events.push(`completed ${job.attempts}`))
      .on('lease-lost', (job) => events.push(`lost ${job.attempts}`))
      .on('error', () => {});
    const { id } = await b.jobs.enqueue('q', 'job');
    const run = await gates.run(1);
    const aborted = new Promise<number>((resolve) => {
      run.job.signal.addEventListener('abort', () => resolve(performance.now()));
    });
    consumerB.resume();
    const frozen = performance.now();
    proxied.proxy.freeze();
    expect((await aborted) - frozen).toBeLessThan(leaseMs + MARGIN_MS);
    expect(run.job.signal.reason as JobAborted).toMatchObject({ why: 'lease_lost' });
    expect(events).toEqual(['lost 1']);
    const taken = await gatesOfB.run(1);
    expect(taken.job).toMatchObject({ id, attempts: 2 });
    run.end('too late');
    proxied.proxy.thaw();
    await a.close(); // waits for the answer to what `a` still had to say
    expect(events).toEqual(['lost 1']);
    expect(await b.jobs.get('q', id)).toMatchObject({ state: 'active', attempts: 2 });
    taken.end();
    await ended({ pending: 0, metrics: { completed: 1, stalled: 1 } });
  });

  it('is renewed for as long as the handler runs: ten renewals, one run', async () => {
    const leaseMs = 1_000;
    const client = server.client();
    const [first, second] = [new Gates(), new Gates()];
    const [a, b] = [await rig.connect(), await rig.connect()];
    a.consume('q', { leaseMs }, first.handler);
    b.consume('q', { leaseMs }, second.handler);
    const { id } = await a.jobs.enqueue('q', 'long');
    const { runs } = await until<Gates | undefined>(() => [first, second].find(({ runs }) => runs.length === 1), {
      what: 'its start',
    });
    const deadlines = new Set<string | null>();
    const renewed = async () => deadlines.add(await client.zscore('emq:{q}:active', id)).size > 10;
    await until(renewed, { what: 'ten renewals', progress: () => deadlines.size });
    expect(deadlines).not.toContain(null);
    const times = [...deadlines].map(Number);
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(2 * leaseMs);
    runs[0]!.end();
    await ended({ pending: 0, metrics: { completed: 1, stalled: 0 } });
    expect(first.runs.length + second.runs.length).toBe(1);
  });

  it('is asked for once for all jobs of a claim, and all of them keep it', async () => {
    const gates = new Gates();
    const a = await rig.connect({ connection: proxied.url });
    a.consume('q', { leaseMs: 1_000, concurrency: 100 }, gates.handler);
    await a.jobs.enqueueMany(
      'q',
      Array.from({ length: 100 }, () => ({ name: 'job' })),
    );
    await gates.run(100);
    const client = server.client();
    const scores = async () => (await client.zrange('emq:{q}:active', '0', '0', 'WITHSCORES'))[1];
    const begun = Number(await scores());
    await until(async () => Number(await scores()) >= begun + 3_000, {
      what: 'three leases to pass',
      timeoutMs: 20_000,
    });
    for (const run of gates.runs) run.end();
    await ended({ pending: 0, metrics: { completed: 100, stalled: 0 } });
    expect(gates.runs).toHaveLength(100);
  });
});

describeWithProcess('two processes that share a queue', () => {
  const server = useServer();
  const rig = useRig(server);
  endWorkers();
  guardLeaks();

  it('share a burst, and every job of it runs once', async () => {
    const client = server.client();
    const workers = await Promise.all(
      [1, 2].map(async () => {
        const one = spawnWorker(WORKER, { args: [server.url, 'q', '{"concurrency":10}'] });
        await one.next('ready');
        return one;
      }),
    );
    await until(async () => (await client.zcard('emq:{q}:hungry')) === 2, { what: 'both to park' });
    const { jobs } = await rig.connect();
    // Every handler hangs: what does not fit into one process can only run in the other.
    const landed = await jobs.enqueueMany(
      'q',
      Array.from({ length: 20 }, () => ({ name: 'job', data: { do: 'hang' } })),
    );
    const ids: unknown[] = [];
    for (const one of workers) for (let n = 0; n < 10; n++) ids.push((await one.next('started')).id);
    expect(new Set(ids)).toEqual(new Set(landed.map(({ id }) => id)));
    for (const one of workers) one.send({ type: 'go on' });
    await until(async () => (await jobs.counts('q')).metrics.completed === 20, { what: 'all to be completed' });
    await expectInvariants(client, 'q');
  });

  it('take over from each other at once when one closes', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const one = spawnWorker(WORKER, { args: [server.url, 'q', '{}'] });
    await one.next('ready');
    await until(() => client.exists('emq:{q}:leader'), { what: 'the first to lead' });
    const echo = await rig.connect({ clock: rareBeats() });
    echo.consume('q', {}, ledger.handler);
    await until(async () => (await client.zcard('emq:{q}:hungry')) === 2, { what: 'both to park' });
    const leader = await client.get('emq:{q}:leader');
    one.send({ type: 'close' });
    await one.next('closed');
    await until(async () => ![null, leader].includes(await client.get('emq:{q}:leader')), {
      what: 'the other to lead',
    });
    await echo.jobs.enqueue('q', 'job', undefined, { delayMs: 50 }); // twenty times that on its clock
    await ledger.ran(1);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await expectInvariants(client, 'q');
  });
});
