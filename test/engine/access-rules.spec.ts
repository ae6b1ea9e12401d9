import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import type { EchoMq, Job, Lane } from '../../lib/core.js';
import { RateLimited, WaitForChildren } from '../../lib/core.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants, expectInvariantsOf } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { fastClock } from './fast-clock.js';
import { Ledger } from './gates.js';
import { useRig } from './rig.js';

/** The smallest user, as docs/deployment.md tells people to make one: keys, channels and commands. */
const RULES = rulesOnThePage();
const COMMANDS = RULES.filter((rule) => rule.startsWith('+')).map((rule) => rule.slice(1));

describeWithProcess('a user of the server', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  const login = async (rules: readonly string[]): Promise<string> => {
    await server.process.command('ACL', 'SETUSER', 'worker', 'reset', 'on', '>secret', ...rules);
    await server.process.command('ACL', 'LOG', 'RESET');
    const url = new URL(server.url);
    [url.username, url.password] = ['worker', 'secret'];
    return url.href;
  };

  /** What the user was refused. The client library would like to name its connections; where it may not, it does without. */
  const refused = async (): Promise<string[]> => {
    const log = (await server.process.command('ACL', 'LOG')) as unknown[][];
    return log.map((entry) => String(entry[7])).filter((what) => !what.startsWith('client|'));
  };

  /** Long after all that the queues owed each other was applied, it is dropped; by whoever leads them. */
  const lookTwice = async (echo: EchoMq): Promise<void> => {
    for (const queue of ['up', 'down']) echo.consume(queue, {}, () => undefined);
    const client = server.client();
    const owed = async () => (await client.xlen('emq:{up}:outbox')) + (await client.xlen('emq:{down}:outbox'));
    expect(await owed()).toBeGreaterThan(0);
    await until(async () => (await owed()) === 0, { what: 'the second look at what was owed', timeoutMs: 15_000 });
    await echo.drain();
  };

  /** By anybody, also inside scripts. */
  const commandsCalled = async (): Promise<Set<string>> => {
    const stats = String(await server.process.command('INFO', 'commandstats'));
    return new Set([...stats.matchAll(/^cmdstat_([a-z]+)(?:\|[a-z]+)?:/gm)].map((match) => match[1]!));
  };

  it('needs the commands of docs/deployment.md, each of them and no more, to do all there is to do', async () => {
    const client = server.client();
    await server.process.command('CONFIG', 'RESETSTAT');
    const url = await login(RULES);
    const echo = await rig.connect({ connection: url });
    await workFlat(echo);
    await workInLanes(echo);
    await workInFlows(echo);
    expect((await echo.health()).ok).toBe(true);
    await echo.drain();
    await lookTwice(await rig.connect({ connection: url, clock: fastClock(10), requestTimeoutMs: 60_000 }));
    await expectInvariantsOf(client, ['q', 'up', 'down', 'turns', 'held']);
    for (const queue of ['q', 'turns']) {
      expect(await echo.jobs.obliterate(queue)).toBe(queue === 'q' ? 0 : 2);
      const left = await client.keys(`emq:{${queue}}:*`);
      expect(left.filter((key) => !key.endsWith(':heard'))).toEqual([]); // that somebody listened: it goes with its time
    }
    const called = await commandsCalled();
    expect(COMMANDS.filter((command) => !called.has(command))).toEqual([]);
    expect(await refused()).toEqual([]);
    expect(rig.complaints).toEqual([]);
  });

  it('needs the same for tests, with the keys that the test kit makes', async () => {
    const rules = RULES.map((rule) => rule.replace('emq', 'test-*'));
    const echo = await rig.connect({ connection: await login(rules), prefix: 'test-k3p9x2ab' });
    const kit = echo.byHand();
    const queue = kit.serve('q', {}, () => 'done');
    await echo.flows.add({
      queue: 'q',
      name: 'up',
      children: [{ queue: 'q', name: 'down', opts: { delayMs: 3_600_000 } }],
    });
    await kit.letTimePass('q', 3_600_000);
    for (let runs = 0; runs < 2; runs++) for (const row of await queue.take(1)) await queue.runOne(row);
    expect((await kit.counts('q')).metrics.completed).toBe(2);
    await queue.consumer.close();
    await kit.wipe();
    expect(await server.client().keys('*')).toEqual([]);
    expect(await refused()).toEqual([]);
    expect(rig.complaints).toEqual([]);
  });

  it('who may not use the channels is told so, loudly, and consumes nothing', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect({ connection: await login(RULES.filter((rule) => !rule.startsWith('&'))) });
    echo.consume('q', {}, ledger.handler);
    const told = await until(() => rig.complaints[0], { what: 'the complaint' });
    expect(told).toMatchObject({ name: 'EchoStoreError', code: 'NOPERM', retryable: false });
    expect(told.message).toContain('channels');
    await echo.jobs.enqueue('q', 'job');
    await expectInvariants(client, 'q');
  });

  it('with the wrong password is refused at once, not at the end of the time limit', async () => {
    const url = new URL(await login(RULES));
    url.password = 'wrong';
    const started = performance.now();
    await expect(rig.connect({ connection: url.href })).rejects.toMatchObject({ code: 'WRONGPASS', retryable: false });
    expect(performance.now() - started).toBeLessThan(5_000);
    await expectInvariants(server.client(), 'q');
  });

  it('that is missing is refused at once as well', async () => {
    await server.process.command('CONFIG', 'SET', 'requirepass', 'secret');
    try {
      await expect(rig.connect()).rejects.toMatchObject({ code: 'NOAUTH', retryable: false });
    } finally {
      const client = server.client({ password: 'secret' });
      await client.config('SET', 'requirepass', '');
      await expectInvariants(client, 'q');
    }
  });
});

function rulesOnThePage(): string[] {
  const page = readFileSync(new URL('../../docs/deployment.md', import.meta.url), 'utf8');
  const found = /^ACL SETUSER jobs on >password resetkeys resetchannels -@all ([^`]+)^```/m.exec(page);
  return found![1]!.trim().split(/\s+/);
}

/** Whatever can be done to jobs that have to do with no other. */
async function workFlat(echo: EchoMq): Promise<void> {
  const { jobs } = echo;
  const told: string[] = [];
  const { ready, close } = echo.bus.listen('q', ({ event }) => told.push(event));
  await ready;
  const ledger = new Ledger();
  const consumer = echo.consume('q', { keepMs: 60_000, attempts: 1, record: true }, (job) => {
    ledger.handler(job);
    job.progress('begun');
    if (job.name === 'fails') throw new Error('boom');
  });
  await jobs.enqueueMany('q', [
    { name: 'now', opts: { priority: 1 } },
    { name: 'later', opts: { delayMs: 10 } },
    { name: 'fails' },
  ]);
  await ledger.ran(3);
  await until(async () => (await jobs.counts('q')).dead === 1, { what: 'the failure to be buried' });
  await until(() => told.includes('dead'), { what: 'the failure to be told' });
  close();
  await consumer.close();
  const { jobs: dead } = await jobs.list('q', 'dead');
  expect(await jobs.reprocess('q', dead[0]!.id, { fresh: true })).toBe('ok');
  const [claimed] = await jobs.claim('q', { leaseMs: 60_000 });
  expect(await jobs.extend('q', claimed!.id, claimed!.token, { leaseMs: 60_000 })).toBe('ok');
  expect(await jobs.cancel('q', claimed!.id)).toBe('stopping');
  expect(await jobs.retry('q', claimed!.id, claimed!.token, { maxAttempts: 3 })).toBe('dead');
  expect(await jobs.get('q', claimed!.id)).toMatchObject({ state: 'dead' });
  expect(await jobs.trim('q', { keepCount: 0 })).toBe(1);
  const { id } = await jobs.enqueue('q', 'far', undefined, { delayMs: 3_600_000 });
  expect(await jobs.changePriority('q', id, 5)).toBe('ok');
  expect(await jobs.changeData('q', id, 'other')).toBe('ok');
  expect(await jobs.reschedule('q', id, { delayMs: 0 })).toBe('ok');
  const [again] = await jobs.claim('q', { leaseMs: 1 });
  await until(async () => (await jobs.reap('q')).requeued === 1, { what: 'the lease to lapse' });
  expect(await jobs.complete('q', again!.id, again!.token)).toBe('ok');
  expect((await jobs.completions('q')).entries).toHaveLength(3);
  expect(await jobs.reprocessMany('q')).toBe(0);
  await jobs.enqueue('q', 'waits');
  expect(await jobs.drain('q')).toBe(1);
  await jobs.pause('q');
  await jobs.resume('q');
  await jobs.promote('q');
}

/** Lanes with a cap and a rate, groups, a queue that is held back, and keys that jobs hold. */
async function workInLanes(echo: EchoMq): Promise<void> {
  const { jobs, lanes } = echo;
  await lanes.configure('turns', 'a', { cap: 1, rate: { limit: 50, perMs: 1000 }, maxWaiting: 9 });
  const ledger = new Ledger();
  const consumer = echo.consume(
    'turns',
    { concurrency: 3, attempts: 2, backoff: { type: 'fixed', delayMs: 0 } },
    (job) => {
      ledger.handler(job);
      if (job.attempts === 1 && job.name === 'limited') throw new RateLimited(20);
      if (job.attempts === 1) throw new Error('boom');
    },
  );
  const items = ['a', ['g', 'x'], ['g', 'y'], 'a', null].map((lane) => ({ name: 'job', opts: { lane: lane as Lane } }));
  await jobs.enqueueMany('turns', items);
  await jobs.enqueue('turns', 'limited', undefined, { lane: 'b', dedup: { key: 'k' } });
  await ledger.ran(12);
  await until(async () => (await jobs.counts('turns')).active === 0, { what: 'the end of all' });
  await consumer.close();
  await jobs.enqueue('turns', 'left', undefined, {
    lane: ['g', 'z'],
    dedup: { key: 'k', mode: 'throttle', ttlMs: 60_000 },
  });
  await jobs.enqueue('turns', 'left', undefined, { lane: 'c', dedup: { key: 'l', mode: 'latest-wins' } });
  await jobs.enqueue('turns', 'left', undefined, { lane: 'c', dedup: { key: 'l', mode: 'latest-wins' } });
  expect((await lanes.list('turns')).total).toBeGreaterThan(2);
  expect((await jobs.list('turns', 'pending')).total).toBe(2);
  await lanes.configureDefault('turns', { cap: 5 });
  await lanes.pause('turns', 'c');

  await jobs.limit('held', { concurrency: 5, rate: { limit: 20, perMs: 1000 } });
  const held = new Ledger();
  const limited = echo.consume('held', {}, held.handler);
  await jobs.enqueueMany('held', [{ name: 'one' }, { name: 'two' }, { name: 'three' }]);
  await held.ran(3);
  await limited.close();
}

/** Parents with children in their own queue and in another one, failures on the way up, waiting, and removing. */
async function workInFlows(echo: EchoMq): Promise<void> {
  const { jobs, flows } = echo;
  let broken = true;
  const handler = async (job: Job): Promise<unknown> => {
    if (job.name === 'fails' && broken) throw new Error('boom');
    if (job.name !== 'grows') return job.name;
    const { values } = await job.children();
    if (Object.keys(values).length > 0) return values;
    await job.addChildren([
      { queue: 'up', name: 'near' },
      { queue: 'down', name: 'far' },
    ]);
    throw new WaitForChildren();
  };
  for (const queue of ['up', 'down']) echo.consume(queue, { attempts: 1 }, handler);

  expect(await jobs.enqueueAndWait('up', 'single', {})).toBe('single');
  const grown = await jobs.enqueueAndWait('up', 'grows', {}, { keepMs: 60_000 });
  expect(Object.values(grown as object).sort()).toEqual(['far', 'near']);

  const failing = { queue: 'down', name: 'fails' };
  const { id, children } = await flows.add({ queue: 'up', name: 'sum', children: [failing, failing] });
  await expect(jobs.wait('up', id)).rejects.toMatchObject({ code: 'ECHO_JOB_DEAD' });
  await until(async () => Object.keys(await flows.failures('up', id)).length === 2, { what: 'both to be recorded' });
  broken = false;
  for (const [reprocessed, other] of [children, [...children].reverse()]) {
    expect(await jobs.reprocess('down', reprocessed!.id)).toBe('ok');
    const namesOther = async () => (await jobs.get('up', id))?.lastError?.includes(other!.id) !== false;
    await until(namesOther, { what: 'the parent to name the other child, or to live' });
  }
  expect(await jobs.wait('up', id)).toBe('sum');

  const late = { queue: 'down', name: 'late', opts: { delayMs: 3_600_000 } };
  const tree = await flows.add({ queue: 'up', name: 'sum', children: [late, { ...late, queue: 'up' }] });
  expect(await flows.dependencies('up', tree.id)).toBe(2);
  expect((await flows.tree('up', tree.id)).children).toHaveLength(2);
  expect(await flows.ignoredFailures('up', tree.id)).toEqual({});
  expect(await jobs.remove('up', tree.id, { tree: true })).toBe('ok');
}
