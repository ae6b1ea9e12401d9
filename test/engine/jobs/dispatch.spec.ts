import { beforeEach, describe, expect, it } from '@jest/globals';
import { type Codec, type EchoMqOptions, EchoTimeoutError, type Handler, type Jobs } from '../../../lib/core.js';
import { expectInvariants } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import type { ProxiedConnection } from '../../support/proxied-connection.js';
import { useServer } from '../../support/server.js';
import { until } from '../../support/until.js';
import { fastClock } from '../fast-clock.js';
import { Gates, Ledger } from '../gates.js';
import { hashOf } from '../hashes.js';
import { useProxy } from '../proxied.js';
import { useRig } from '../rig.js';
import { hungry } from './stage.js';

/** Hashes of the steps that may follow an enqueue. */
const STEPS = ['dispatch', 'enqueue', 'claim'] as const;

describe('a job that is enqueued where a consumer idles', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();
  let seen: string[];
  let hearing: ProxiedConnection | undefined;
  let commanding: ProxiedConnection | undefined;
  beforeEach(() => {
    seen = [];
    proxied.proxy.onRequest((command, connection) => {
      if (/subscribe/i.test(command.toString())) hearing = connection;
      else if (command.includes('evalsha')) commanding = connection;
      const step = STEPS.find((name) => command.includes(hashOf(name)));
      if (step) seen.push(step);
      return undefined;
    });
  });

  /** The engine's two connections: the one it listens on, and that for commands. */
  function connections(): [ProxiedConnection, ProxiedConnection] {
    return [hearing!, commanding!];
  }

  /** The server knows so many as hungry, and the process of `jobs` has been told: a later answer has arrived there. */
  async function parked(jobs: Jobs, processes = 1): Promise<void> {
    await hungry(server.client(), 'q', processes);
    await jobs.counts('q');
    await new Promise((next) => setImmediate(next));
  }

  /** An engine behind the proxy whose consumer idles, and all scripts known to the server. */
  async function idle(handler: Handler, concurrency = 1, options: Partial<EchoMqOptions> = {}) {
    const echo = await rig.connect({ connection: proxied.url, ...options });
    await echo.jobs.enqueue('q', 'warm');
    const consumer = echo.consume('q', { concurrency, leaseMs: 300 }, handler).on('error', () => {});
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'the first job' });
    await parked(echo.jobs);
    await echo.jobs.enqueue('q', 'warm too');
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'the second job' });
    await parked(echo.jobs);
    seen.length = 0;
    return { echo, jobs: echo.jobs, consumer };
  }

  it('lands and is claimed in one step', async () => {
    const ledger = new Ledger();
    const { jobs } = await idle(ledger.handler, 10);
    expect(await jobs.enqueue('q', 'work', { n: 1 })).toMatchObject({ status: 'landed' });
    await ledger.ran(3);
    await until(async () => (await jobs.counts('q')).metrics.completed === 3, { what: 'the job to be completed' });
    expect(ledger.jobs[2]).toMatchObject({ name: 'work', data: { n: 1 }, attempts: 1 });
    expect(seen).toEqual(['dispatch']);
    await expectInvariants(server.client(), 'q');
  });

  it('lands with those that are enqueued beside it, as one call', async () => {
    const ledger = new Ledger();
    const { jobs } = await idle(ledger.handler, 10);
    await Promise.all([jobs.enqueue('q', 'one'), jobs.enqueue('q', 'another')]);
    await ledger.ran(4);
    expect(ledger.jobs.slice(2).map(({ name }) => name)).toEqual(['one', 'another']);
    await until(async () => (await jobs.counts('q')).metrics.completed === 4, { what: 'both to be completed' });
    expect(seen).toEqual(['enqueue', 'claim']);
  });

  it('does not wake another process for it', async () => {
    const other = new Ledger();
    const elsewhere = await rig.connect();
    const ledger = new Ledger();
    const { jobs } = await idle(ledger.handler);
    elsewhere.consume('q', {}, other.handler);
    await parked(jobs, 2);
    for (let n = 0; n < 20; n++) {
      await jobs.enqueue('q', 'work');
      await ledger.ran(3 + n);
      await parked(jobs, 2);
    }
    expect(other.jobs).toEqual([]);
    expect(seen.filter((step) => step === 'enqueue')).toEqual([]);
  });

  it('comes in its turn when more are enqueued than there are slots', async () => {
    const gates = new Gates();
    const ledger = new Ledger();
    let handler: Handler = ledger.handler;
    const { jobs, consumer } = await idle((job) => handler(job), 3);
    handler = gates.handler;
    const names = Array.from({ length: 8 }, (_, n) => `job ${n}`);
    for (const name of names) {
      jobs.enqueue('q', name); // each in a turn of its own, none waits for the one before
      await new Promise((next) => setImmediate(next));
    }
    for (let n = 1; n <= names.length; n++) {
      const run = await gates.run(n);
      expect(run.job.name).toBe(names[n - 1]);
      expect(consumer.active).toBeLessThanOrEqual(3);
      expect((await jobs.counts('q')).active).toBeLessThanOrEqual(3);
      run.end();
    }
    await until(async () => (await jobs.counts('q')).metrics.completed === 10, { what: 'all jobs' });
    expect(await jobs.counts('q')).toMatchObject({ pending: 0, active: 0, metrics: { enqueued: 10, stalled: 0 } });
    await expectInvariants(server.client(), 'q');
  });

  it('comes before what the same process enqueues later, also when it has to be enqueued', async () => {
    const elsewhere = await rig.connect();
    const gates = new Gates();
    let handler: Handler = () => undefined;
    const { jobs, echo } = await idle((job) => handler(job), 2);
    handler = gates.handler;
    echo.consume('other', {}, () => undefined);
    await hungry(server.client(), 'other');
    const [hearing, commands] = connections();
    hearing.toClient.setShut(true);
    commands.toClient.setShut(true);
    await elsewhere.jobs.enqueue('q', 'from elsewhere');
    await elsewhere.jobs.enqueue('other', 'heard of behind it');
    const landing = [jobs.enqueue('q', 'first')];
    await until(() => seen.includes('dispatch'), { what: 'the step to be sent' });
    landing.push(jobs.enqueue('q', 'second'), jobs.enqueue('q', 'third'));
    await until(() => seen.includes('enqueue'), { what: 'the others to be sent' });
    hearing.toClient.setShut(false);
    await until(() => seen.includes('claim'), { what: 'the wake-ups' });
    commands.toClient.setShut(false);
    await Promise.all(landing);
    for (let n = 1; n <= 4; n++) (await gates.run(n)).end();
    const names = gates.runs.map(({ job }) => job.name).filter((name) => name !== 'from elsewhere');
    expect(names).toEqual(['first', 'second', 'third']);
  });

  it('has bytes of its own: what whoever enqueued it does with theirs is not seen', async () => {
    const bytes: Codec = {
      encode: (_name, data) => data as Buffer,
      decode: (payload) => ({ name: 'bytes', data: payload, opts: undefined }),
      encodeResult: () => '',
    };
    const gates = new Gates();
    const echo = await rig.connect({ connection: proxied.url, codec: bytes });
    echo.consume('q', {}, gates.handler);
    await parked(echo.jobs);
    const data = Buffer.from('mine');
    await echo.jobs.enqueue('q', 'bytes', data);
    data.fill('x');
    const { job, end } = await gates.run(1);
    expect(String(job.data)).toBe('mine');
    end();
  });

  it('waits behind what waits already, and lands in a queue that is paused', async () => {
    const ledger = new Ledger();
    const { jobs } = await idle(ledger.handler);
    await jobs.pause('q');
    const first = await jobs.enqueue('q', 'first');
    const second = await jobs.enqueue('q', 'second');
    expect(await jobs.counts('q')).toMatchObject({ pending: 2, active: 0 });
    expect(await jobs.enqueue('q', 'again', undefined, { id: first.id })).toEqual({
      id: first.id,
      status: 'duplicate',
      state: 'pending',
    });
    await jobs.resume('q');
    await ledger.ran(4);
    expect(ledger.ids.slice(2)).toEqual([first.id, second.id]);
    // Nor is every later one tried in vain: one step says so, and they are enqueued from then on.
    expect(seen.filter((step) => step === 'dispatch')).toHaveLength(1);
    await until(async () => (await jobs.counts('q')).metrics.completed === 4, { what: 'both jobs' });
    await parked(jobs);
    await jobs.enqueue('q', 'third');
    await ledger.ran(5);
    expect(seen.filter((step) => step === 'dispatch')).toHaveLength(2);
  });

  it('lands once when the answer is lost, and runs when the lease is over', async () => {
    const ledger = new Ledger();
    const { jobs } = await idle(ledger.handler);
    const lost = proxied.proxy.passAndDropReply(hashOf('dispatch'));
    const landed = await jobs.enqueue('q', 'once');
    await lost;
    expect(landed.status).toBe('landed');
    expect(await jobs.counts('q')).toMatchObject({ metrics: { enqueued: 3 } });
    await ledger.ran(3);
    await until(async () => (await jobs.counts('q')).metrics.completed === 3, { what: 'the job to be completed' });
    expect(ledger.jobs[2]).toMatchObject({ id: landed.id, attempts: 2 });
    expect(ledger.jobs).toHaveLength(3);
    await expectInvariants(server.client(), 'q');
  });

  it('lands once when the call is lost', async () => {
    const ledger = new Ledger();
    const { jobs } = await idle(ledger.handler);
    const end = proxied.proxy.onRequest((command) => (command.includes(hashOf('dispatch')) ? 'cut' : undefined));
    const landed = await jobs.enqueue('q', 'once');
    end();
    expect(landed.status).toBe('landed');
    await ledger.ran(3);
    await until(async () => (await jobs.counts('q')).metrics.completed === 3, { what: 'the job to be completed' });
    expect(ledger.jobs[2]).toMatchObject({ id: landed.id, attempts: 1 });
    expect(await jobs.counts('q')).toMatchObject({ metrics: { enqueued: 3, stalled: 0 } });
  });

  it('is given up with its call in whole milliseconds', async () => {
    const echo = await rig.connect({ connection: proxied.url, enqueueTimeoutMs: 100 });
    echo.consume('q', {}, () => undefined).on('error', () => {});
    await parked(echo.jobs);
    proxied.proxy.onRequest((command) => (command.includes('evalsha') ? 'cut' : undefined));
    const error = await echo.jobs.enqueue('q', 'lost').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EchoTimeoutError);
    expect((error as Error).message).toMatch(/^gave up after \d+ ms: /);
  });

  it('is given back when the consumer closes before the answer comes', async () => {
    const ledger = new Ledger();
    const { jobs, consumer } = await idle(ledger.handler);
    proxied.proxy.freeze('replies');
    const landing = jobs.enqueue('q', 'late');
    await until(() => seen.includes('dispatch'), { what: 'the step to be sent' });
    const closed = consumer.close();
    proxied.proxy.thaw('replies');
    expect(await landing).toMatchObject({ status: 'landed' });
    await closed;
    expect(ledger.jobs).toHaveLength(2);
    expect(await jobs.counts('q')).toMatchObject({ pending: 1, active: 0 });
    const [row] = (await jobs.list('q', 'pending')).jobs;
    expect(row).toMatchObject({ name: 'late' });
    await expectInvariants(server.client(), 'q');
  });

  it('may have landed when its engine is closed before the answer comes, and says no more than that', async () => {
    const { echo, jobs } = await idle(() => undefined, 1, { enqueueTimeoutMs: 60_000, clock: fastClock(10) });
    proxied.proxy.freeze('replies');
    const landing = jobs.enqueue('q', 'late').catch((reason: unknown) => reason);
    await until(() => seen.includes('dispatch'), { what: 'the step to be sent' });
    await echo.close();
    expect(await landing).toMatchObject({ code: 'ECHO_UNREACHABLE', retryable: true });
    expect(await server.client().hget('emq:{q}:metrics:enqueued', 'count')).toBe('3');
  });

  it('is waited for no longer than any other, and runs if it landed after all', async () => {
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: proxied.url, enqueueTimeoutMs: 100 });
    echo.consume('q', {}, ledger.handler);
    await parked(echo.jobs);
    proxied.proxy.freeze();
    const error = await echo.jobs.enqueue('q', 'slow').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EchoTimeoutError);
    expect(error).toMatchObject({ code: 'ECHO_TIMEOUT', retryable: true });
    proxied.proxy.thaw();
    await ledger.ran(1);
    expect(ledger.jobs[0]).toMatchObject({ name: 'slow', attempts: 1 });
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'the job to be completed' });
  });

  it.each(['comes after all', 'is lost'])(
    'counts once against the buffer when its time is over and its answer %s',
    async (how) => {
      const echo = await rig.connect({ connection: proxied.url, enqueueTimeoutMs: 100, enqueueBufferLimit: 1 });
      const ledger = new Ledger();
      echo.consume('q', {}, ledger.handler).on('error', () => {});
      await hungry(server.client(), 'q');
      proxied.proxy.freeze('replies');
      const late = await echo.jobs.enqueue('q', 'late').catch((reason: unknown) => reason);
      expect(late).toMatchObject({ code: 'ECHO_TIMEOUT' });
      proxied.proxy.refuse();
      if (how === 'is lost') proxied.proxy.cut();
      proxied.proxy.thaw('replies');
      if (how === 'comes after all') await ledger.ran(1);
      proxied.proxy.cut();
      await until(() => rig.complaints.length > 0, { what: 'the loss to be told' });
      const codes = await Promise.all(
        ['buffered', 'too many'].map((name) => echo.jobs.enqueue('q', name).catch(({ code }) => code)),
      );
      expect(codes).toEqual(['ECHO_TIMEOUT', 'ECHO_BUFFER_FULL']);
      proxied.proxy.accept();
    },
  );

  it('is run with all that come at once after the server has forgotten its scripts, in their order', async () => {
    const gates = new Gates();
    let handler: Handler = () => undefined;
    const { jobs } = await idle((job) => handler(job), 4);
    handler = gates.handler;
    await server.client().script('FLUSH');
    const names = Array.from({ length: 6 }, (_, n) => `job ${n}`);
    const landing = [];
    for (const name of names) {
      landing.push(jobs.enqueue('q', name));
      await new Promise((next) => setImmediate(next));
    }
    for (let n = 1; n <= names.length; n++) (await gates.run(n)).end();
    expect((await Promise.all(landing)).map(({ status }) => status)).toEqual(names.map(() => 'landed'));
    expect(gates.runs.map(({ job }) => job.name)).toEqual(names);
    await until(async () => (await jobs.counts('q')).metrics.completed === 8, { what: 'all jobs' });
    expect(await jobs.counts('q')).toMatchObject({ pending: 0, active: 0, metrics: { enqueued: 8, stalled: 0 } });
    await expectInvariants(server.client(), 'q');
  });

  it('is enqueued, in its order, when the key of what runs is of another type, which is then the user’s to hear of', async () => {
    const ledger = new Ledger();
    const { jobs } = await idle(ledger.handler, 4);
    const client = server.client();
    await client.set('emq:{q}:active', 'text');
    const landing = await Promise.all([jobs.enqueue('q', 'first'), jobs.enqueue('q', 'second')]);
    const third = await jobs.enqueue('q', 'third');
    expect([...landing, third].map(({ status }) => status)).toEqual(['landed', 'landed', 'landed']);
    expect(await jobs.counts('q').catch(({ code }) => code)).toBe('EMQTYPE');
    await client.del('emq:{q}:active');
    await ledger.ran(5);
    expect(ledger.jobs.slice(2).map(({ name }) => name)).toEqual(['first', 'second', 'third']);
    await until(async () => (await jobs.counts('q')).metrics.completed === 5, { what: 'all jobs' });
    expect(await jobs.counts('q')).toMatchObject({ metrics: { enqueued: 5 } });
  });
});
