import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { type Codec, defineQueue, EchoDataError, type EchoMq, jsonCodec } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { rareBeats } from '../fast-clock.js';
import { failure, hungry, latch, numbers, useStage } from './stage.js';

const LONG = { leaseMs: 60_000 };

/** A job in every state, by its name. */
async function everywhere({ jobs, flows }: EchoMq): Promise<Record<string, string>> {
  const land = async (name: string) => (await jobs.enqueue('q', name, { n: 1 })).id;
  const claim = async (name: string) => {
    const id = await land(name);
    const [claimed] = await jobs.claim('q', LONG);
    expect(claimed!.id).toBe(id);
    return claimed!;
  };
  const dead = await claim('dead');
  await jobs.retry('q', dead.id, dead.token, { maxAttempts: 0 });
  const done = await claim('done');
  await jobs.complete('q', done.id, done.token, { keepMs: 60_000 });
  const active = await claim('active');
  const waiting = await flows.add({
    queue: 'q',
    name: 'waiting',
    data: { n: 1 },
    children: [{ queue: 'r', name: 'child' }],
  });
  const scheduled = await jobs.enqueue('q', 'scheduled', { n: 1 }, { delayMs: 3_600_000 });
  const pending = await land('pending');
  return {
    pending,
    scheduled: scheduled.id,
    waiting: waiting.id,
    dead: dead.id,
    active: active.id,
    done: done.id,
    gone: jobs.mintId(),
  };
}

describe('changePriority', () => {
  const stage = useStage();

  it('changes that of every job that has not completed, and says of the others why not', async () => {
    const echo = await stage.connect();
    const ids = await everywhere(echo);
    const answers: Record<string, string> = {};
    for (const [state, id] of Object.entries(ids)) answers[state] = await echo.jobs.changePriority('q', id, 5);
    const rest = { pending: 'ok', scheduled: 'ok', waiting: 'ok', dead: 'ok', active: 'ok' };
    expect(answers).toEqual({ ...rest, done: 'wrong_state', gone: 'gone' });
    for (const state of Object.keys(rest)) expect((await echo.jobs.get('q', ids[state]!))?.priority).toBe(5);
  });

  it('lets a job overtake those before it, and be overtaken', async () => {
    const { jobs } = await stage.connect();
    const landed = await jobs.enqueueMany(
      'q',
      numbers(4).map((n) => ({ name: String(n) })),
    );
    expect(await jobs.changePriority('q', landed[2]!.id, -1)).toBe('ok');
    expect(await jobs.changePriority('q', landed[0]!.id, 1)).toBe('ok');
    const claimed = await jobs.claim('q', { ...LONG, count: 4 });
    expect(claimed.map(({ name }) => name)).toEqual(['2', '1', '3', '0']);
  });

  it('lets a job overtake those of its lane', async () => {
    const { jobs } = await stage.connect();
    const lane = ['tenants', 'ada'] as const;
    const landed = await jobs.enqueueMany(
      'q',
      numbers(3).map((n) => ({ name: String(n), opts: { lane } })),
    );
    expect(await jobs.changePriority('q', landed[2]!.id, -1)).toBe('ok');
    const claimed = await jobs.claim('q', { ...LONG, count: 3 });
    expect(claimed.map(({ name }) => name)).toEqual(['2', '0', '1']);
  });

  it('holds when a running job comes back, a scheduled one is promoted, a dead one reprocessed', async () => {
    const echo = await stage.connect();
    const { jobs } = echo;
    const ids = await everywhere(echo);
    for (const state of ['scheduled', 'dead', 'active']) await jobs.changePriority('q', ids[state]!, -2);
    const { attempts } = (await jobs.get('q', ids.active!))!;
    expect(attempts).toBe(1);
    expect(await jobs.promoteNow('q', ids.scheduled!)).toBe('ok');
    expect(await jobs.reprocess('q', ids.dead!)).toBe('ok');
    expect((await jobs.list('q', 'pending')).jobs.map((job) => [job.name, job.priority])).toEqual([
      ['dead', -2],
      ['scheduled', -2],
      ['pending', 0],
    ]);
  });

  it.each([1.5, Number.NaN, 2 ** 53, '1', null, undefined])('refuses %p before anything is sent', async (priority) => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'a');
    const error = await failure(jobs.changePriority('q', id, priority as number));
    expect(error).toMatchObject({ name: 'EchoArgumentError', message: expect.stringMatching(/^priority must be/) });
    expect(await failure(jobs.changePriority('q', 'mine', 1))).toMatchObject({ name: 'EchoArgumentError' });
  });
});

describe('changeData', () => {
  const stage = useStage();

  it('changes that of every job that nobody runs, and says of the others why not', async () => {
    const echo = await stage.connect();
    const ids = await everywhere(echo);
    const answers: Record<string, string> = {};
    for (const [state, id] of Object.entries(ids)) answers[state] = await echo.jobs.changeData('q', id, { n: 2 });
    const resting = { pending: 'ok', scheduled: 'ok', waiting: 'ok', dead: 'ok' };
    expect(answers).toEqual({ ...resting, active: 'wrong_state', done: 'wrong_state', gone: 'gone' });
    for (const [state, id] of Object.entries(ids)) {
      if (state === 'gone') continue;
      expect(await echo.jobs.get('q', id)).toMatchObject({ name: state, data: { n: state in resting ? 2 : 1 } });
    }
  });

  it('leaves name, options and everything else of the job as they were', async () => {
    const { jobs } = await stage.connect();
    const opts = { attempts: 4, timeoutMs: 6000, keepMs: 7, backoff: { type: 'fixed' as const, delayMs: 5 } };
    const { id } = await jobs.enqueue('q', 'mail', { to: 'Ada' }, { ...opts, priority: 3 });
    const before = (await jobs.get('q', id))!;
    expect(await jobs.changeData('q', id, { to: 'Grace' })).toBe('ok');
    const after = (await jobs.get('q', id))!;
    expect(after).toEqual({ ...before, data: { to: 'Grace' }, payload: after.payload });
    expect(await jobs.changeData('q', id, undefined)).toBe('ok');
    expect(await jobs.get('q', id)).toMatchObject({ name: 'mail', data: undefined, opts });
  });

  it('of a schedule’s job keeps what it says of its schedule', async () => {
    const echo = await stage.connect();
    await echo.jobs.schedule('q', 'daily', { cron: '0 8 * * *' }, 'digest', { to: 'all' });
    const { id } = await echo.schedules.runNow('q', 'daily');
    expect(await echo.jobs.changeData('q', id!, { to: 'Ada' })).toBe('ok');
    expect(await echo.jobs.get('q', id!)).toMatchObject({ data: { to: 'Ada' }, opts: { schedule: 'daily' } });
  });

  it('is what the handler gets', async () => {
    const echo = await stage.connect();
    const { id } = await echo.jobs.enqueue('q', 'mail', { to: 'Ada' }, { delayMs: 3_600_000 });
    const got = latch<unknown>();
    echo.consume('q', {}, (job) => got.open(job.data));
    await hungry(stage.control, 'q');
    expect(await echo.jobs.changeData('q', id, { to: 'Grace' })).toBe('ok');
    expect(await echo.jobs.promoteNow('q', id)).toBe('ok');
    expect(await got.opened).toEqual({ to: 'Grace' });
  });

  it('loses nothing where several change one job at once: the last one written stands, and all are told ok', async () => {
    const { jobs } = await stage.connect();
    const other = await stage.connect();
    const { id } = await jobs.enqueue('q', 'a', 0, { attempts: 9 });
    const changes = numbers(20).map((n) => (n % 2 ? jobs : other.jobs).changeData('q', id, n));
    expect(new Set(await Promise.all(changes))).toEqual(new Set(['ok']));
    const job = (await jobs.get('q', id))!;
    expect(numbers(20)).toContain(job.data);
    expect(job).toMatchObject({ name: 'a', opts: { attempts: 9 } });
  });

  it('leaves a job that is claimed between the look and the change as it is', async () => {
    const proxy = await stage.proxy();
    const slow = await stage.connect({ connection: proxy.url });
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'a', 'before');
    await slow.jobs.changeData('q', jobs.mintId(), 1); // its scripts are known from here on
    const reading = proxy.hold(id);
    const changed = slow.jobs.changeData('q', id, 'after');
    const { release } = await reading;
    const writing = proxy.hold('after');
    release();
    const write = await writing;
    const [claimed] = await jobs.claim('q', LONG);
    write.release();
    expect(await changed).toBe('wrong_state');
    expect(await jobs.get('q', id)).toMatchObject({ state: 'active', data: 'before' });
    await jobs.release('q', id, claimed!.token);
  });

  it('gives up when others change the job all the while, and leaves theirs', async () => {
    const proxy = await stage.proxy();
    const slow = await stage.connect({ connection: proxy.url });
    const { id } = await slow.jobs.enqueue('q', 'a', 'before');
    await slow.jobs.changeData('q', id, 'between'); // its scripts are known from here on
    let writing = proxy.hold('after');
    const changed = failure(slow.jobs.changeData('q', id, 'after'));
    for (let n = 1; n <= 50; n++) {
      const { release } = await writing;
      await stage.control.hset(`emq:{q}:job:${id}`, 'payload', `{"name":"a","data":${n}}`);
      release();
      if (n < 50) writing = proxy.hold('after');
    }
    expect(await changed).toMatchObject({ name: 'EchoStoreError', code: 'ECHO_CONFLICT', retryable: true });
    expect((await slow.jobs.get('q', id))?.data).toBe(50);
  });

  it('reads and writes by the codec', async () => {
    const reversed = (bytes: Buffer) => Buffer.from(bytes).reverse();
    const codec: Codec = {
      ...jsonCodec,
      encode: (...parts) => reversed(Buffer.from(jsonCodec.encode(...parts))),
      decode: (payload) => jsonCodec.decode(reversed(payload)),
    };
    const { jobs } = await stage.connect({ codec });
    const { id } = await jobs.enqueue('q', 'a', 1);
    expect(await jobs.changeData('q', id, 2)).toBe('ok');
    expect((await jobs.get('q', id))?.data).toBe(2);
    expect(await stage.control.hget(`emq:{q}:job:${id}`, 'payload')).toBe('}2:"atad","a":"eman"{');
  });

  it.each([
    ['no envelope', 'plain bytes'],
    ['an envelope with more in it', '{"name":"a","more":1}'],
  ])('refuses a payload that is %s: there is no data in it to change', async (_, payload) => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'a', 1);
    await stage.control.hset(`emq:{q}:job:${id}`, 'payload', payload);
    const error = await failure(jobs.changeData('q', id, 2));
    expect(error).toMatchObject({ name: 'EchoStateError', code: 'ECHO_NO_ENVELOPE', retryable: false });
    expect(error.message).toContain(id);
    expect(await stage.control.hget(`emq:{q}:job:${id}`, 'payload')).toBe(payload);
  });

  it('refuses data that cannot be sent, or is too large, and changes nothing', async () => {
    const { jobs } = await stage.connect({ maxPayloadBytes: 100 });
    const { id } = await jobs.enqueue('q', 'a', 1);
    for (const data of [1n, Buffer.from('x'), () => 1, 'x'.repeat(101)]) {
      expect(await failure(jobs.changeData('q', id, data))).toMatchObject({ name: 'EchoArgumentError' });
    }
    expect((await jobs.get('q', id))?.data).toBe(1);
  });
});

describe('changeData on a queue with schemas', () => {
  const stage = useStage();
  const Mail = defineQueue('q', {
    welcome: z.object({ to: z.string() }),
    slow: z.object({ n: z.number().refine(async (n) => n > 0) }),
  });

  it('validates the data by the name of the job, and sends it as it was given', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue(Mail, 'welcome', { to: 'Ada' });
    const late = await jobs.enqueue(Mail, 'slow', { n: 1 });
    const error = await failure<EchoDataError>(jobs.changeData(Mail, id, { n: 2 }));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error.issues[0]?.path).toEqual(['to']);
    expect(await failure(jobs.changeData(Mail, late.id, { n: -1 }))).toBeInstanceOf(EchoDataError);
    expect((await jobs.get('q', id))?.data).toEqual({ to: 'Ada' });
    expect(await jobs.changeData(Mail, id, { to: 'Grace' })).toBe('ok');
    expect(await jobs.changeData(Mail, late.id, { n: 3 })).toBe('ok');
    expect((await jobs.get('q', id))?.data).toEqual({ to: 'Grace' });
    expect((await jobs.get('q', late.id))?.data).toEqual({ n: 3 });
  });

  it('refuses a job of a name that the queue does not declare', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'older', 1);
    const error = await failure(jobs.changeData(Mail, id, { to: 'Ada' }));
    expect(error).toMatchObject({ name: 'EchoArgumentError', message: expect.stringContaining('no job "older"') });
  });
});

describe('promoteNow', () => {
  const stage = useStage();

  it('takes a job that waits for its time, and no other', async () => {
    const echo = await stage.connect();
    const ids = await everywhere(echo);
    const answers: Record<string, string> = {};
    for (const [state, id] of Object.entries(ids)) answers[state] = await echo.jobs.promoteNow('q', id);
    const others = ['pending', 'waiting', 'dead', 'active', 'done'].map((state) => [state, 'wrong_state']);
    expect(answers).toEqual({ ...Object.fromEntries(others), scheduled: 'ok', gone: 'gone' });
    expect((await echo.jobs.get('q', ids.scheduled!))?.state).toBe('pending');
  });

  it('has a parked consumer run it at once', async () => {
    const echo = await stage.connect({ clock: rareBeats() });
    const ran: string[] = [];
    echo.consume('q', {}, (job) => void ran.push(job.id));
    const { id } = await echo.jobs.enqueue('q', 'a', undefined, { delayMs: 3_600_000 });
    await hungry(stage.control, 'q');
    expect(await echo.jobs.promoteNow('q', id)).toBe('ok');
    await until(() => ran.length === 1, { what: 'the job' });
  });
});
