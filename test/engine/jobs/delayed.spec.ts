import { describe, expect, it } from '@jest/globals';
import type { EchoMq } from '../../../lib/core.js';
import type { ProxiedConnection } from '../../support/proxied-connection.js';
import { until } from '../../support/until.js';
import { rareBeats } from '../fast-clock.js';
import { hungry, latch, numbers, quiet, serverMs, useStage } from './stage.js';

const HOUR_MS = 3_600_000;
/** Far more than a wake-up takes. With the delays here still before the second beat, after 3 s, which would find due jobs too. */
const PROMPT_MS = 1500;

describe('a delayed job', () => {
  const stage = useStage();

  /** Consumes `q`, noting what ran and when, on the server's clock. */
  const record = (echo: EchoMq) => {
    const ran: { name: string; at: number }[] = [];
    echo.consume('q', {}, async ({ name }) => {
      ran.push({ name, at: await serverMs(stage.control) });
    });
    return ran;
  };

  it('runs at its time although a longer one was there first (C066)', async () => {
    const echo = await stage.connect();
    const ran = record(echo);
    await hungry(stage.control, 'q');
    await echo.jobs.enqueue('q', 'long', undefined, { delayMs: 6 * HOUR_MS });
    const asked = await serverMs(stage.control);
    await echo.jobs.enqueue('q', 'short', undefined, { delayMs: 700 });
    const answered = await serverMs(stage.control);
    await until(() => ran.length > 0, { what: 'the short one' });
    expect(ran[0]!.name).toBe('short');
    expect(ran[0]!.at).toBeGreaterThanOrEqual(asked + 700);
    expect(ran[0]!.at).toBeLessThan(answered + 700 + PROMPT_MS);
    expect(await echo.jobs.counts('q')).toMatchObject({ scheduled: 1, pending: 0 });
  });

  it('runs at its time when another process leads the queue', async () => {
    const [leader, other] = [await stage.connect(), await stage.connect()];
    leader.consume('q', {}, () => undefined);
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'a leader' });
    await hungry(stage.control, 'q');
    await other.jobs.enqueue('q', 'far', undefined, { delayMs: HOUR_MS });
    const answered = await serverMs(stage.control);
    await other.jobs.enqueue('q', 'near', undefined, { delayMs: 50 });
    await until(async () => (await other.jobs.counts('q')).metrics.completed === 1, { what: 'the near one' });
    expect(await serverMs(stage.control)).toBeLessThan(answered + 50 + PROMPT_MS);
  });

  it('runs at its time when the process that led the queue closes before', async () => {
    const leader = await stage.connect();
    const first = leader.consume('q', {}, () => undefined);
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'a leader' });
    const heir = await stage.connect();
    const ran = record(heir);
    await hungry(stage.control, 'q', 2);
    await heir.jobs.enqueue('q', 'a', undefined, { delayMs: 300 });
    const answered = await serverMs(stage.control);
    await first.close();
    await until(() => ran.length === 1, { what: 'the job' });
    expect(ran[0]!.at).toBeLessThan(answered + 300 + PROMPT_MS);
  });

  it('runs at its time when it lands while its leader waits for the answer that makes it one', async () => {
    const proxy = await stage.proxy();
    const asked = latch<ProxiedConnection>();
    const forget = proxy.onRequest((command, connection) => {
      if (!command.includes('{q}:leader')) return undefined;
      forget();
      connection.toClient.setShut(true);
      asked.open(connection);
      return 'pass';
    });
    const leader = await stage.connect({ connection: proxy.url });
    const ran = record(leader);
    const connection = await asked.opened;
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'the server to have answered' });
    const other = await stage.connect();
    await other.jobs.enqueue('q', 'a', undefined, { delayMs: 100 });
    const answered = await serverMs(stage.control);
    await quiet(other, 'q');
    connection.toClient.setShut(false);
    await until(() => ran.length === 1, { what: 'the job' });
    expect(ran[0]!.at).toBeLessThan(answered + 100 + PROMPT_MS);
  });

  it('is among thousands due at once, all promoted promptly, in mint order, and one waits on (C068)', async () => {
    const echo = await stage.connect();
    await echo.jobs.enqueue('q', 'later', undefined, { delayMs: 2 * HOUR_MS });
    const landed = await echo.jobs.enqueueMany(
      'q',
      numbers(5000).map((n) => ({ name: String(n), opts: { delayMs: HOUR_MS } })),
    );
    // Due only once all have landed: on a busy machine that may take longer than any short delay.
    const at = (await serverMs(stage.control)) + 600;
    await stage.control.zadd('emq:{q}:schedule', 'XX', ...landed.flatMap(({ id }) => [at, id]));
    const order: string[] = [];
    const begun = Math.max(at, await serverMs(stage.control));
    echo.consume('q', { concurrency: 50 }, (job) => void order.push(job.name));
    await until(() => order.length === 5000, { what: 'all of them', progress: () => order.length });
    expect(await serverMs(stage.control)).toBeLessThan(begun + 10_000); // a thousand with each beat would be 12 s
    expect(order).toEqual(numbers(5000).map(String));
    expect(await echo.jobs.counts('q')).toMatchObject({ scheduled: 1, pending: 0 });
  });

  it('is promoted by hand in the order of run-at, then of minting, as many as asked for', async () => {
    const { jobs } = await stage.connect();
    const now = await serverMs(stage.control);
    const soon = now + 30;
    await jobs.enqueueMany('q', [
      { name: 'third', opts: { runAt: soon + 20 } },
      { name: 'first', opts: { runAt: soon } },
      { name: 'second', opts: { runAt: soon } },
      { name: 'not yet', opts: { runAt: now + HOUR_MS } },
    ]);
    await until(async () => (await serverMs(stage.control)) > soon + 20, { what: 'three to be due' });
    expect(await jobs.promote('q', { limit: 1 })).toEqual({ moved: 1, nextRunAt: soon, nextInMs: 0 });
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(['first']);
    expect(await jobs.promote('q', { limit: 1 })).toMatchObject({ moved: 1, nextRunAt: soon + 20 });
    expect((await jobs.list('q', 'pending')).jobs.map((job) => job.name)).toEqual(['first', 'second']);
    const last = await jobs.promote('q');
    expect(last).toMatchObject({ moved: 1, nextRunAt: now + HOUR_MS });
    expect(last.nextInMs).toBeGreaterThan(HOUR_MS - 60_000);
    expect(await jobs.promote('q')).toMatchObject({ moved: 0 });
  });

  it('with no delay, or a time that has passed, is pending at once', async () => {
    const { jobs } = await stage.connect();
    await jobs.enqueue('q', 'zero', undefined, { delayMs: 0 });
    await jobs.enqueue('q', 'past', undefined, { runAt: 0 });
    await jobs.enqueue('q', 'past date', undefined, { runAt: new Date('2001-01-01') });
    expect(await jobs.counts('q')).toMatchObject({ pending: 3, scheduled: 0 });
  });

  it('keeps its own priority when its time comes', async () => {
    const echo = await stage.connect();
    await echo.jobs.enqueue('q', 'plain');
    await echo.jobs.enqueue('q', 'urgent', undefined, { delayMs: 1, priority: -5 });
    await until(async () => (await echo.jobs.promote('q')).moved === 1, { what: 'promotion' });
    const ran = record(echo);
    await until(() => ran.length === 2, { what: 'both' });
    expect(ran.map(({ name }) => name)).toEqual(['urgent', 'plain']);
  });
});

describe('the time of a delayed job', () => {
  const stage = useStage();

  it('can be put off: it then runs at the new time (C070)', async () => {
    const echo = await stage.connect();
    const ran: number[] = [];
    echo.consume('q', {}, async () => void ran.push(await serverMs(stage.control)));
    await hungry(stage.control, 'q');
    const { id } = await echo.jobs.enqueue('q', 'a', undefined, { delayMs: 300 });
    const asked = await serverMs(stage.control);
    expect(await echo.jobs.reschedule('q', id, { delayMs: 700 })).toBe('ok');
    const answered = await serverMs(stage.control);
    await until(() => ran.length === 1, { what: 'the job' });
    expect(ran[0]).toBeGreaterThanOrEqual(asked + 700);
    expect(ran[0]).toBeLessThan(answered + 700 + PROMPT_MS);
  });

  it('can be brought forward, to a moment or to now', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.name));
    await hungry(stage.control, 'q');
    const [near, now] = await echo.jobs.enqueueMany('q', [
      { name: 'near', opts: { delayMs: HOUR_MS } },
      { name: 'now', opts: { delayMs: HOUR_MS } },
    ]);
    const moment = new Date((await serverMs(stage.control)) + 200);
    expect(await echo.jobs.reschedule('q', near!.id, { runAt: moment })).toBe('ok');
    expect(await echo.jobs.reschedule('q', now!.id, { delayMs: 0 })).toBe('ok');
    await until(() => ran.length === 2, { timeoutMs: 200 + PROMPT_MS, what: 'both' });
    expect(ran).toEqual(['now', 'near']);
  });

  it('cannot be changed once it has come: the answer says so, and nothing moves', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'a', undefined, { delayMs: 1 });
    await until(async () => (await jobs.promote('q')).moved === 1, { what: 'promotion' });
    expect(await jobs.reschedule('q', id, { delayMs: HOUR_MS })).toBe('wrong_state');
    const [claimed] = await jobs.claim('q', { leaseMs: 10_000 });
    expect(await jobs.reschedule('q', id, { delayMs: HOUR_MS })).toBe('wrong_state');
    await jobs.complete('q', id, claimed!.token);
    expect(await jobs.reschedule('q', id, { delayMs: HOUR_MS })).toBe('gone');
  });

  it('changed in a race with its promotion leaves every job in one place, as the answer says', async () => {
    const echo = await stage.connect();
    const ran = new Set<string>();
    const due = (await serverMs(stage.control)) + 100;
    const landed = await echo.jobs.enqueueMany(
      'q',
      numbers(300).map((n) => ({ name: String(n), opts: { runAt: due + Math.floor(n / 3) } })),
    );
    echo.consume('q', { concurrency: 20 }, (job) => void ran.add(job.id));
    await until(() => ran.size > 30, { what: 'the race to be on' });
    const outcomes = await Promise.all(landed.map(({ id }) => echo.jobs.reschedule('q', id, { delayMs: HOUR_MS })));
    const putOff = landed.filter((_, i) => outcomes[i] === 'ok');
    expect(new Set(outcomes).size).toBeGreaterThan(1);
    await until(() => ran.size === 300 - putOff.length, { what: 'those that were not put off' });
    await quiet(echo, 'q');
    for (const { id } of putOff) expect(ran.has(id)).toBe(false);
    expect(await echo.jobs.counts('q')).toMatchObject({ scheduled: putOff.length, pending: 0, active: 0 });
  });
});

describe('a due job whose queue takes nothing leaves the schedule on time all the same (C072)', () => {
  const stage = useStage();
  const due = async (jobs: EchoMq['jobs']) => {
    await jobs.enqueue('q', 'due', undefined, { delayMs: 150 });
    const landed = await serverMs(stage.control);
    await until(async () => (await jobs.counts('q')).pending === 1, { what: 'the schedule to be left' });
    expect(await serverMs(stage.control)).toBeLessThan(landed + 150 + PROMPT_MS);
    expect((await jobs.counts('q')).scheduled).toBe(0);
  };

  it('with no free slot', async () => {
    const { jobs, ...echo } = await busy();
    await due(jobs);
    echo.gate.open();
    await until(async () => (await jobs.counts('q')).metrics.completed === 2, { what: 'both' });
  });

  it('with the queue paused', async () => {
    const { jobs, gate } = await busy();
    await jobs.pause('q');
    gate.open();
    await due(jobs);
    await jobs.resume('q');
    await until(async () => (await jobs.counts('q')).metrics.completed === 2, { what: 'both' });
  });

  it('with its consumer paused', async () => {
    const { jobs, gate, consumer } = await busy();
    consumer.pause();
    gate.open();
    await due(jobs);
    consumer.resume();
    await until(async () => (await jobs.counts('q')).metrics.completed === 2, { what: 'both' });
  });

  /** A consumer whose only slot is taken. */
  async function busy() {
    const echo = await stage.connect();
    const gate = latch();
    const started = latch();
    const consumer = echo.consume('q', {}, async () => {
      started.open();
      await gate.opened;
    });
    await echo.jobs.enqueue('q', 'busy');
    await started.opened;
    return { jobs: echo.jobs, gate, consumer };
  }
});

describe('the beat of a process', () => {
  const stage = useStage();

  it('goes on when a queue is added while the answer for the others is awaited', async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url, clock: rareBeats() });
    const held = proxy.hold('{first}:leader');
    echo.consume('first', {}, () => undefined);
    const beat = await held;
    echo.consume('second', {}, () => undefined);
    await until(async () => (await stage.control.pubsub('NUMSUB', 'emq:{second}:beat'))[1], { what: 'its channel' });
    await quiet(await stage.connect(), 'second');
    beat.release();
    await until(() => stage.control.exists('emq:{second}:leader'), { what: 'a beat of its own' });
  });
});
