import { describe, expect, it } from '@jest/globals';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { Gates, Ledger } from './gates.js';
import { hashOf } from './hashes.js';
import { quiet } from './jobs/stage.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';

/** Each script is called once before its reply is lost: the server then knows its hash, by which the proxy knows the call. */
describe('when the server did it and the answer was lost', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();

  it('an enqueued job lands once, and the call resolves', async () => {
    const client = server.client();
    const { jobs } = await rig.connect({ connection: proxied.url });
    await jobs.enqueue('q', 'warm');
    const lost = proxied.proxy.passAndDropReply(hashOf('enqueue'));
    const { id } = await jobs.enqueue('q', 'once');
    await lost;
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(['warm', 'once']);
    expect(await jobs.enqueue('q', 'once', undefined, { id })).toEqual({ id, status: 'duplicate', state: 'pending' });
    expect(await jobs.counts('q')).toMatchObject({ pending: 2, metrics: { enqueued: 2 } });
    await expectInvariants(client, 'q');
  });

  it('five hundred jobs of one call land once each, in their order', async () => {
    const client = server.client();
    const { jobs } = await rig.connect({ connection: proxied.url });
    await jobs.enqueue('q', 'warm');
    const lost = proxied.proxy.passAndDropReply(hashOf('enqueue'));
    const landed = await jobs.enqueueMany(
      'q',
      Array.from({ length: 500 }, (_, n) => ({ name: `job ${n}` })),
    );
    await lost;
    const { jobs: listed } = await jobs.list('q', 'pending', { offset: 1, limit: 1000 });
    expect(listed.map((job) => job.id)).toEqual(landed.map((result) => result.id));
    expect(await jobs.counts('q')).toMatchObject({ pending: 501, metrics: { enqueued: 501 } });
    await expectInvariants(client, 'q');
  });

  it('a lost claim costs its job at most one lease', async () => {
    const client = server.client();
    const gates = new Gates();
    const echo = await rig.connect({ connection: proxied.url });
    const { jobs } = echo;
    const consumer = echo.consume('q', { leaseMs: 300 }, gates.handler).on('error', () => {});
    await jobs.enqueue('q', 'first');
    const first = await gates.run(1);
    const lost = proxied.proxy.passAndDropReply(hashOf('claim'));
    const { id } = await jobs.enqueue('q', 'second');
    first.end();
    await lost;
    const started = performance.now();
    const second = await gates.run(2, 10_000);
    expect(performance.now() - started).toBeLessThan(300 + 3_000 + 2_000); // a lease, a beat, and a busy machine
    expect(second.job).toMatchObject({ id, attempts: 2 });
    second.end();
    await until(async () => (await jobs.counts('q')).metrics.completed === 2, { what: 'both jobs to be completed' });
    expect(gates.runs).toHaveLength(2);
    await expectInvariants(client, 'q');
    await consumer.close();
    await expectInvariants(client, 'q');
  });

  it.each([0, 60_000])('a completion (kept for %i ms) is taken once, and reported as one', async (keepMs) => {
    const client = server.client();
    const gates = new Gates();
    const echo = await rig.connect({ connection: proxied.url });
    const events: string[] = [];
    const consumer = echo
      .consume('q', { keepMs }, gates.handler)
      .on('completed', (job) => events.push(`completed ${job.name}`))
      .on('lease-lost', (job) => events.push(`lost ${job.name}`))
      .on('error', () => {});
    await echo.jobs.enqueue('q', 'warm');
    (await gates.run(1)).end('warm');
    await until(() => events.length === 1, { what: 'the first completion' });
    await echo.jobs.enqueue('q', 'job');
    const run = await gates.run(2);
    const lost = proxied.proxy.passAndDropReply(hashOf('complete'));
    run.end('result');
    await lost;
    await until(() => events.length === 2, { what: 'the second completion' });
    expect(events).toEqual(['completed warm', 'completed job']);
    expect(await echo.jobs.counts('q')).toMatchObject({ active: 0, pending: 0, metrics: { completed: 2 } });
    await consumer.close();
    expect(events).toHaveLength(2);
    await expectInvariants(client, 'q');
  });

  it('a retry is taken once: the job stands in one place, one attempt further', async () => {
    const client = server.client();
    const gates = new Gates();
    const echo = await rig.connect({ connection: proxied.url });
    const { jobs } = echo;
    const lostLeases: string[] = [];
    const failures: string[] = [];
    echo
      .consume('q', { backoff: { type: 'fixed', delayMs: 3_600_000 } }, gates.handler)
      .on('lease-lost', (job) => lostLeases.push(job.id))
      .on('failed', (job, _error, outcome) => failures.push(`${job.name} ${outcome}`))
      .on('error', () => {});
    await jobs.enqueue('q', 'warm');
    (await gates.run(1)).fail(new Error('warm'));
    await until(async () => (await jobs.counts('q')).scheduled === 1, { what: 'the first retry' });
    const { id } = await jobs.enqueue('q', 'job');
    const run = await gates.run(2);
    const lost = proxied.proxy.passAndDropReply(hashOf('retry'));
    run.fail(new Error('boom'));
    await lost;
    await until(async () => (await jobs.counts('q')).scheduled === 2, { what: 'the second retry' });
    expect(await jobs.counts('q')).toMatchObject({ active: 0, pending: 0, dead: 0, metrics: { retried: 2 } });
    expect((await jobs.get('q', id))?.errors.map(({ attempt }) => attempt)).toEqual([1]);
    await until(() => failures.length === 2, { what: 'both failures to be told' });
    expect(failures).toEqual(['warm scheduled', 'job scheduled']);
    expect(lostLeases).toEqual([]);
    await expectInvariants(client, 'q');
  });

  it('a promotion is taken once, and the promoted job runs', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: proxied.url });
    const { jobs } = echo;
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    await jobs.enqueue('q', 'warm', undefined, { delayMs: 20 });
    await ledger.ran(1);
    const lost = proxied.proxy.passAndDropReply(hashOf('promote'));
    const { id } = await jobs.enqueue('q', 'job', undefined, { delayMs: 20 });
    await lost;
    await ledger.ran(2);
    expect(ledger.ids[1]).toBe(id);
    await until(async () => (await jobs.counts('q')).metrics.completed === 2, { what: 'both completions' });
    expect(ledger.jobs).toHaveLength(2);
    await expectInvariants(client, 'q');
  });

  describe('a job that was claimed by hand', () => {
    const claimed = async (name: 'complete' | 'retry' | 'release') => {
      const { jobs } = await rig.connect({ connection: proxied.url });
      const settle = {
        complete: (id: string, token: string, keepMs = 0) => jobs.complete('q', id, token, { keepMs }),
        retry: (id: string, token: string) => jobs.retry('q', id, token, { maxAttempts: 5, delayMs: 3_600_000 }),
        release: (id: string, token: string) => jobs.release('q', id, token, { delayMs: 3_600_000 }),
      }[name];
      await jobs.enqueueMany('q', [{ name: 'warm' }, { name: 'job' }]);
      const [warm, job] = await jobs.claim('q', { leaseMs: 60_000, count: 2 });
      await settle(warm!.id, warm!.token);
      return { jobs, job: job!, settle };
    };

    it('is completed: the answer is ok, not gone', async () => {
      const { job, settle } = await claimed('complete');
      const lost = proxied.proxy.passAndDropReply(hashOf('complete'));
      expect(await settle(job.id, job.token)).toBe('ok');
      await lost;
      await expectInvariants(server.client(), 'q');
    });

    it('is completed and kept: the answer is ok, and stays so', async () => {
      const { job, settle } = await claimed('complete');
      const lost = proxied.proxy.passAndDropReply(hashOf('complete'));
      expect(await settle(job.id, job.token, 60_000)).toBe('ok');
      await lost;
      expect(await settle(job.id, job.token, 60_000)).toBe('ok');
      await expectInvariants(server.client(), 'q');
    });

    it('is released: the answer is ok, not stale', async () => {
      const { jobs, job, settle } = await claimed('release');
      const lost = proxied.proxy.passAndDropReply(hashOf('release'));
      expect(await settle(job.id, job.token)).toBe('ok');
      await lost;
      expect(await jobs.get('q', job.id)).toMatchObject({ state: 'scheduled', attempts: 1, uncharged: 1 });
      await expectInvariants(server.client(), 'q');
    });

    it('is retried: the answer says where it went, not stale', async () => {
      const { jobs, job, settle } = await claimed('retry');
      const lost = proxied.proxy.passAndDropReply(hashOf('retry'));
      expect(await settle(job.id, job.token)).toBe('scheduled');
      await lost;
      expect(await jobs.get('q', job.id)).toMatchObject({ state: 'scheduled', attempts: 1 });
      await expectInvariants(server.client(), 'q');
    });
  });

  it.each(['pause', 'resume'] as const)('a %s has changed something, and says so', async (name) => {
    const { jobs } = await rig.connect({ connection: proxied.url });
    if (name === 'resume') await jobs.pause('q');
    await jobs[name]('warm');
    const lost = proxied.proxy.passAndDropReply(hashOf(name));
    expect(await jobs[name]('q')).toBe(true);
    await lost;
    expect(await jobs.isPaused('q')).toBe(name === 'pause');
    expect(await jobs[name]('q')).toBe(false);
    await expectInvariants(server.client(), 'q');
  });

  it('a job that had not started is cancelled: the answer is removed, not gone', async () => {
    const { jobs } = await rig.connect({ connection: proxied.url });
    const { id } = await jobs.enqueue('q', 'job');
    expect(await jobs.cancel('q', jobs.mintId())).toBe('gone');
    const lost = proxied.proxy.passAndDropReply(hashOf('cancel'));
    expect(await jobs.cancel('q', id)).toBe('removed');
    await lost;
    expect(await jobs.cancel('q', id)).toBe('gone');
    expect(await jobs.counts('q')).toMatchObject({ pending: 0, metrics: { removed: 1 } });
    await expectInvariants(server.client(), 'q');
  });

  it('a running job is asked to stop: the answer is stopping', async () => {
    const { jobs } = await rig.connect({ connection: proxied.url });
    await jobs.enqueue('q', 'job');
    const [job] = await jobs.claim('q', { leaseMs: 60_000 });
    expect(await jobs.cancel('q', jobs.mintId())).toBe('gone');
    const lost = proxied.proxy.passAndDropReply(hashOf('cancel'));
    expect(await jobs.cancel('q', job!.id)).toBe('stopping');
    await lost;
    expect(await jobs.extend('q', job!.id, job!.token, { leaseMs: 60_000 })).toBe('cancelled');
    await expectInvariants(server.client(), 'q');
  });

  it('a job is removed: the answer is ok, not gone', async () => {
    const { jobs } = await rig.connect({ connection: proxied.url });
    const { id } = await jobs.enqueue('q', 'job');
    expect(await jobs.remove('q', jobs.mintId())).toBe('gone');
    const lost = proxied.proxy.passAndDropReply(hashOf('remove'));
    expect(await jobs.remove('q', id)).toBe('ok');
    await lost;
    expect(await jobs.remove('q', id)).toBe('gone');
    await expectInvariants(server.client(), 'q');
  });

  it('a dead job is reprocessed: the answer is ok, not wrong_state', async () => {
    const { jobs } = await rig.connect({ connection: proxied.url });
    const { id } = await jobs.enqueue('q', 'job');
    const [job] = await jobs.claim('q', { leaseMs: 60_000 });
    await jobs.retry('q', id, job!.token, { maxAttempts: 1 });
    expect(await jobs.reprocess('q', jobs.mintId())).toBe('gone');
    const lost = proxied.proxy.passAndDropReply(hashOf('reprocess'));
    expect(await jobs.reprocess('q', id)).toBe('ok');
    await lost;
    expect(await jobs.reprocess('q', id)).toBe('wrong_state');
    expect(await jobs.counts('q')).toMatchObject({ pending: 1, dead: 0 });
    await expectInvariants(server.client(), 'q');
  });

  it('a connection that is cut before the server sees the call costs nothing either', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: proxied.url });
    const elsewhere = await rig.connect({ connection: proxied.url });
    echo.consume('q', {}, ledger.handler).on('error', () => {});
    await elsewhere.jobs.enqueue('q', 'warm');
    await ledger.ran(1);
    const calls = [
      [elsewhere, 'enqueue'],
      [elsewhere, 'claim'],
      [elsewhere, 'complete'],
      [echo, 'dispatch'],
    ] as const;
    for (const [{ jobs }, script] of calls) {
      const before = ledger.jobs.length;
      await quiet(echo, 'q');
      const cut = proxied.proxy.cutBefore(hashOf(script));
      await jobs.enqueue('q', script);
      await cut;
      await ledger.ran(before + 1);
    }
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 5, { what: 'all completions' });
    expect(ledger.jobs.map((job) => job.attempts)).toEqual([1, 1, 1, 1, 1]);
    await expectInvariants(client, 'q');
  });
});
