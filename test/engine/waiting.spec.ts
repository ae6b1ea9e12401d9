import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import {
  Discard,
  defineQueue,
  EchoDataError,
  EchoJobError,
  type EchoMq,
  EchoStateError,
  type Job,
} from '../../lib/core.js';
import { until } from '../support/until.js';
import { hashOf } from './hashes.js';
import { failure, latch, numbers, quiet, useStage } from './jobs/stage.js';

/** Runs jobs by what their data says; `held` ones end when they are let. */
function serve(echo: EchoMq, queue = 'q') {
  const gates = latch();
  echo.consume(queue, { concurrency: 20 }, async (job: Job) => {
    const { hold, die, answer } = (job.data ?? {}) as { hold?: boolean; die?: string; answer?: unknown };
    if (hold) await gates.opened;
    if (die) throw new Discard(die);
    return answer;
  });
  return { end: () => gates.open() };
}

describe('whoever waits for a job', () => {
  const stage = useStage();

  const channels = async () => ((await stage.control.pubsub('CHANNELS', '*settled')) as string[]).length;
  const awaited = (id: string) => stage.control.hget(`emq:{q}:job:${id}`, 'awaited');
  const waited = (id: string) => until(async () => (await awaited(id)) === '1', { what: 'the wait to begin' });

  it('hears its result, also when nobody here consumes the queue', async () => {
    const { jobs } = await stage.connect();
    serve(await stage.connect());
    const results: unknown[] = [undefined, null, 0, '', { a: [1, 'é'] }, false];
    for (const answer of results) {
      expect(await jobs.enqueueAndWait('q', 'job', { answer })).toEqual(answer === undefined ? undefined : answer);
    }
    const { id } = await jobs.enqueue('q', 'job', { answer: 'late' }, { delayMs: 50 });
    expect(await jobs.wait('q', id)).toBe('late');
  });

  it('hears at once of one that has ended and is kept, and of one that is dead', async () => {
    const echo = await stage.connect();
    serve(echo);
    const kept = await echo.jobs.enqueue('q', 'job', { answer: 1 }, { keepMs: 60_000 });
    const dead = await echo.jobs.enqueue('q', 'job', { die: 'broken\nat line 2' });
    await until(async () => (await echo.jobs.counts('q')).active === 0, { what: 'both to end' });
    await until(async () => (await echo.jobs.get('q', kept.id))?.state === 'done', { what: 'the kept one' });
    expect(await echo.jobs.wait('q', kept.id)).toBe(1);
    expect(await echo.jobs.result('q', kept.id)).toBe(1);
    for (const ask of ['wait', 'result'] as const) {
      const error = await failure<EchoJobError>(echo.jobs[ask]('q', dead.id));
      expect(error).toBeInstanceOf(EchoJobError);
      expect(error).toMatchObject({
        code: 'ECHO_JOB_DEAD',
        jobId: dead.id,
        reason: 'broken\nat line 2',
        retryable: false,
      });
      expect(error.message).toBe(`job ${dead.id} is dead: broken`);
    }
  });

  it('hears that it is gone when it has ended and was not kept, or never was', async () => {
    const echo = await stage.connect();
    serve(echo);
    const { id } = await echo.jobs.enqueue('q', 'job', { answer: 1 });
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'it to end' });
    for (const one of [id, echo.jobs.mintId()]) {
      for (const ask of ['wait', 'result'] as const) {
        expect(await failure(echo.jobs[ask]('q', one))).toMatchObject({
          code: 'ECHO_JOB_REMOVED',
          jobId: one,
          retryable: false,
        });
      }
    }
  });

  it('is told that it has not ended, when it only asks', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'job');
    const error = await failure(jobs.result('q', id));
    expect(error).toBeInstanceOf(EchoStateError);
    expect(error).toMatchObject({ code: 'ECHO_NOT_ENDED', message: expect.stringContaining('it is pending') });
    expect(await awaited(id)).toBeNull();
  });

  it.each(['removed', 'cancelled', 'trimmed', 'obliterated'])(
    'hears of one that is %s meanwhile (C152)',
    async (how) => {
      const { jobs } = await stage.connect();
      const other = await stage.connect();
      const { id } = await jobs.enqueue('q', 'job', undefined, { delayMs: how === 'removed' ? 60_000 : 0 });
      const [own, far] = [failure(jobs.wait('q', id)), failure(other.jobs.wait('q', id))];
      await waited(id);
      if (how === 'removed') await jobs.remove('q', id);
      if (how === 'cancelled') await jobs.cancel('q', id);
      if (how === 'obliterated') await jobs.obliterate('q');
      if (how === 'trimmed') {
        const [job] = await jobs.claim('q', { leaseMs: 60_000 });
        await jobs.retry('q', id, job!.token, { maxAttempts: 0, error: 'bad' });
        await jobs.trim('q', { keepCount: 0 });
      }
      for (const error of await Promise.all([own, far])) {
        // Between its death and the trim it may be seen dead.
        const codes = how === 'trimmed' ? ['ECHO_JOB_REMOVED', 'ECHO_JOB_DEAD'] : ['ECHO_JOB_REMOVED'];
        expect(codes).toContain((error as EchoJobError).code);
      }
    },
  );

  it('hears of its death, whatever it dies of', async () => {
    const echo = await stage.connect();
    const { jobs } = echo;
    const claimed = async () => {
      const { id } = await jobs.enqueue('q', 'job');
      const [job] = await jobs.claim('q', { leaseMs: 60_000 });
      const ended = failure<EchoJobError>(jobs.wait('q', id));
      await waited(id);
      return { id, token: job!.token, ended };
    };
    const lapsing = await claimed();
    await stage.control.zadd('emq:{q}:active', 'XX', 1, lapsing.id);
    await jobs.reap('q', { maxStalls: 0 });
    expect(await lapsing.ended).toMatchObject({ code: 'ECHO_JOB_DEAD', reason: 'lease lapsed 1 times' });
    const stopping = await claimed();
    await jobs.cancel('q', stopping.id);
    await jobs.release('q', stopping.id, stopping.token);
    expect(await stopping.ended).toMatchObject({ code: 'ECHO_JOB_DEAD', reason: 'cancelled' });
    const parent = await echo.flows.add({ queue: 'q', name: 'parent', children: [{ queue: 'q', name: 'child' }] });
    const ended = failure<EchoJobError>(jobs.wait('q', parent.id));
    await waited(parent.id);
    await jobs.remove('q', parent.children[0]!.id);
    expect(await ended).toMatchObject({
      code: 'ECHO_JOB_DEAD',
      reason: expect.stringMatching(/^child q\|JOB.*: removed$/),
    });
  });

  it('waits on when it fails and is tried again, or is reprocessed', async () => {
    const echo = await stage.connect();
    let tries = 0;
    echo.consume('q', { backoff: { type: 'fixed', delayMs: 5 } }, () => {
      if (++tries < 3) throw new Error('again');
      return tries;
    });
    expect(await echo.jobs.enqueueAndWait('q', 'job', undefined, { attempts: 3 })).toBe(3);
    tries = 0;
    const dead = await failure<EchoJobError>(echo.jobs.enqueueAndWait('q', 'job', undefined, { attempts: 2 }));
    expect(dead.code).toBe('ECHO_JOB_DEAD');
    await echo.jobs.reprocess('q', dead.jobId, { fresh: true });
    expect(await echo.jobs.wait('q', dead.jobId)).toBe(3);
  });

  it('is one of many: all hear, each in its own time', async () => {
    const [one, two] = [await stage.connect(), await stage.connect()];
    const work = serve(await stage.connect());
    const { id } = await one.jobs.enqueue('q', 'job', { hold: true, answer: 7 });
    const late = failure(one.jobs.wait('q', id, { timeoutMs: 30 }));
    const waits = [one, two, one, one, two].map(({ jobs }) =>
      jobs.wait('q', id, { timeoutMs: Number.POSITIVE_INFINITY }),
    );
    expect(await late).toMatchObject({ code: 'ECHO_TIMEOUT' });
    await waited(id); // on a busy machine the first may be late before the server knows of the others
    work.end();
    expect(await Promise.all(waits)).toEqual([7, 7, 7, 7, 7]);
  });

  it('is told when its time is over, and the job goes on', async () => {
    const echo = await stage.connect();
    const work = serve(echo);
    const started = performance.now();
    const error = await failure(
      echo.jobs.enqueueAndWait('q', 'job', { hold: true }, { timeoutMs: 1000, keepMs: 60_000 }),
    );
    expect(performance.now() - started).toBeGreaterThanOrEqual(1000);
    expect(error).toMatchObject({ code: 'ECHO_TIMEOUT', message: expect.stringContaining('not ended within 1000 ms') });
    await until(async () => (await channels()) === 0, { what: 'its channel to be given up' });
    work.end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'the job to end' });
  });

  it('hears it when the handler has ended before the enqueue is answered', async () => {
    const proxy = await stage.proxy();
    const { jobs } = await stage.connect({ connection: proxy.url, onError: () => {} });
    const echo = await stage.connect();
    serve(echo);
    await jobs.enqueueAndWait('q', 'script is loaded', undefined);
    const lost = proxy.passAndDropReply(hashOf('enqueue'));
    const waiting = jobs.enqueueAndWait('q', 'job', { answer: 'quick' });
    proxy.refuse();
    await lost;
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'it to end' });
    proxy.accept();
    expect(await waiting).toBe('quick');
  });

  it('under an id that is there already waits for that job, which is not enqueued again', async () => {
    const echo = await stage.connect();
    const work = serve(echo);
    const { id } = await echo.jobs.enqueue('q', 'job', { hold: true, answer: 'first' });
    const other = await echo.jobs.enqueue('q', 'job', { hold: true, answer: 'other' });
    const others = echo.jobs.wait('q', other.id); // so that the channel is there, and nothing is looked at for its sake
    await waited(other.id);
    const again = echo.jobs.enqueueAndWait('q', 'job', { answer: 'second' }, { id });
    await waited(id);
    const ended = await echo.jobs.enqueue('q', 'job', { answer: 'ended' }, { keepMs: 60_000 });
    await until(async () => (await echo.jobs.get('q', ended.id))?.state === 'done', { what: 'it to end' });
    expect(await echo.jobs.enqueueAndWait('q', 'job', { answer: 'anew' }, { id: ended.id })).toBe('ended');
    work.end();
    expect(await again).toBe('first');
    expect(await others).toBe('other');
    expect(await echo.jobs.enqueueAndWait('q', 'job', { answer: 'third' }, { id })).toBe('first');
    expect((await echo.jobs.counts('q')).metrics).toMatchObject({ enqueued: 3, completed: 3 });
  });

  it('may wait inside a handler', async () => {
    const echo = await stage.connect();
    serve(echo, 'inner');
    echo.consume('q', {}, () => echo.jobs.enqueueAndWait('inner', 'job', { answer: 'from within' }));
    expect(await echo.jobs.enqueueAndWait('q', 'job', undefined)).toBe('from within');
  });

  it('is refused what makes no sense, before a byte is sent', async () => {
    const { jobs } = await stage.connect();
    const Mail = defineQueue('mail', { welcome: z.object({ to: z.string() }) });
    expect(await failure(jobs.wait('q', 'no id'))).toMatchObject({ code: 'EMQARG' });
    const id = jobs.mintId();
    for (const timeoutMs of [0, -1, 1.5, Number.NaN, '1' as unknown as number]) {
      expect(await failure(jobs.wait('q', id, { timeoutMs }))).toMatchObject({ code: 'EMQARG' });
      expect(await failure(jobs.enqueueAndWait('q', 'job', 1, { timeoutMs }))).toMatchObject({ code: 'EMQARG' });
    }
    expect(await failure(jobs.wait('q', id, { timeout: 1 } as object))).toMatchObject({ code: 'EMQARG' });
    expect(await failure(jobs.enqueueAndWait('q', 'job', 1, { delay: 1 } as object))).toMatchObject({ code: 'EMQARG' });
    for (const queue of [null, undefined, 5, {}, '']) {
      const { name, message } = await failure(jobs.enqueueAndWait(queue as string, 'job', 1));
      expect([name, message]).toEqual(['EchoArgumentError', expect.stringMatching(/^queue name /)]);
    }
    for (const options of [null, 5, [], () => 1]) {
      const { message } = await failure(jobs.enqueueAndWait('q', 'job', 1, options as object));
      expect(message).toMatch(/^enqueueAndWait options must be an object, got /);
    }
    const wrong = { to: 1 } as unknown as { to: string };
    expect(await failure(jobs.enqueueAndWait(Mail, 'welcome', wrong))).toBeInstanceOf(EchoDataError);
    expect(await stage.control.keys('emq:*')).toEqual([]);
    expect(await channels()).toBe(0);
  });

  it('is told when its own process closes; the job goes on', async () => {
    const [echo, waiting] = [await stage.connect(), await stage.connect()];
    const work = serve(echo);
    const { id } = await echo.jobs.enqueue('q', 'job', { hold: true });
    const [held, begun] = [
      failure(waiting.jobs.wait('q', id)),
      failure(waiting.jobs.enqueueAndWait('q', 'job', { hold: true })),
    ];
    await waited(id);
    await until(async () => (await echo.jobs.counts('q')).active === 2, { what: 'both to run' });
    await waiting.close();
    for (const error of [await held, await begun]) {
      expect(error).toBeInstanceOf(EchoStateError);
      expect(error.message).toContain('was closed before the job ended');
    }
    expect(await failure(waiting.jobs.wait('q', id))).toMatchObject({ code: 'ECHO_STATE' });
    work.end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both to end' });
  });

  it('hears it from its own process, when that closes and the job ends meanwhile', async () => {
    const echo = await stage.connect();
    const work = serve(echo);
    const waiting = echo.jobs.enqueueAndWait('q', 'job', { hold: true, answer: 'in time' });
    await until(async () => (await echo.jobs.counts('q')).active === 1, { what: 'it to run' });
    const closed = echo.close();
    work.end();
    expect(await waiting).toBe('in time');
    await closed;
  });

  it('costs nothing where nobody waits: no field, no message, no row, no subscription', async () => {
    const echo = await stage.connect();
    serve(echo);
    await echo.jobs.enqueueAndWait('q', 'job', { answer: 1 });
    await until(async () => (await channels()) === 0, { what: 'its channel to be given up' });
    const ear = stage.server.client();
    const heard: string[] = [];
    await ear.psubscribe('emq:*');
    ear.on('pmessage', (_pattern, channel, message) => heard.push(`${channel} ${message}`));
    const landed = await echo.jobs.enqueueMany(
      'q',
      numbers(50).map(() => ({ name: 'job', data: { answer: 1 } })),
    );
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 51, { what: 'all to end' });
    expect(heard.filter((line) => line.includes('settled'))).toEqual([]);
    const rows = await stage.control.keys('emq:{q}:job:*');
    expect(rows.filter((row) => landed.some(({ id }) => row.endsWith(id)))).toEqual([]);
    expect(rows).toHaveLength(1);
  });

  it('leaves the result to be fetched for a minute, or as long as it is kept if that is longer', async () => {
    const echo = await stage.connect();
    serve(echo);
    for (const [keepMs, least, most] of [
      [0, 50_000, 60_000],
      [1, 50_000, 60_000],
      [600_000, 590_000, 600_000],
    ] as const) {
      const id = echo.jobs.mintId();
      expect(await echo.jobs.enqueueAndWait('q', 'job', { answer: keepMs }, { keepMs, id })).toBe(keepMs);
      const left = await stage.control.pttl(`emq:{q}:job:${id}`);
      expect(left).toBeGreaterThan(least);
      expect(left).toBeLessThanOrEqual(most);
      expect(await echo.jobs.wait('q', id)).toBe(keepMs);
    }
  });

  it('asks for many at once in few calls', async () => {
    const echo = await stage.connect();
    const work = serve(await stage.connect());
    const waits = numbers(200).map((answer) => echo.jobs.enqueueAndWait('q', 'job', { hold: true, answer }));
    await until(async () => (await echo.jobs.counts('q')).metrics.enqueued === 200, { what: 'all to land' });
    const ear = await stage.overhear();
    work.end();
    expect(await Promise.all(waits)).toEqual(numbers(200));
    const hashes = [hashOf('watch'), hashOf('get')];
    const asked = (await ear.said()).filter((args) => hashes.includes(args[1]!));
    expect(asked.length).toBeLessThan(100);
    await quiet(echo, 'q');
  });
});
