import { beforeEach, describe, expect, it } from '@jest/globals';
import { type EchoMq, isJobId, type Jobs, readId } from '../../../lib/core.js';
import type { Overheard } from './overheard.js';
import { failure, numbers, useStage } from './stage.js';

describe('enqueue', () => {
  const stage = useStage();

  it('answers with the id and that the job has landed', async () => {
    const { jobs } = await stage.connect();
    const result = await jobs.enqueue('q', 'greet', { to: 'you' });
    expect(result).toEqual({ id: expect.any(String), status: 'landed' });
    expect(isJobId(result.id)).toBe(true);
    expect(Math.abs(readId(result.id).mintedAt.getTime() - Date.now())).toBeLessThan(60_000);
    expect(await jobs.get('q', result.id)).toMatchObject({ state: 'pending', name: 'greet', data: { to: 'you' } });
  });

  it('under an id that is there already changes nothing, whatever its state, and says so (C092)', async () => {
    const { jobs } = await stage.connect();
    const id = jobs.mintId();
    const again = () => jobs.enqueue('q', 'other', { other: true }, { id, priority: 5, delayMs: 60_000 });
    const unchanged = async (state: string) => {
      const before = await jobs.get('q', id);
      expect(before).toMatchObject({ state, name: 'first' });
      expect(await again()).toEqual({ id, status: 'duplicate', state });
      expect(await jobs.get('q', id)).toEqual(before);
    };
    expect(await jobs.enqueue('q', 'first', 1, { id, delayMs: 60_000 })).toEqual({ id, status: 'landed' });
    await unchanged('scheduled');
    await jobs.reschedule('q', id, { delayMs: 0 });
    await unchanged('pending');
    const claim = async () => (await jobs.claim('q', { leaseMs: 60_000 }))[0]!.token;
    const first = await claim();
    await unchanged('active');
    await jobs.retry('q', id, first, { maxAttempts: 0 });
    await unchanged('dead');
    await jobs.reprocess('q', id);
    const second = await claim();
    await jobs.complete('q', id, second, { keepMs: 60_000 });
    await unchanged('done');
    expect((await jobs.counts('q')).metrics.enqueued).toBe(1);
  });

  it('under an id that has run and gone lands again', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue('q', 'a');
    const [claimed] = await jobs.claim('q', { leaseMs: 60_000 });
    await jobs.complete('q', id, claimed!.token);
    expect(await jobs.enqueue('q', 'a', undefined, { id })).toEqual({ id, status: 'landed' });
  });

  it('mints ids that rise, also in one burst and between calls', async () => {
    const { jobs } = await stage.connect();
    const results = await Promise.all(numbers(3000).map(() => jobs.enqueue('q', 'a')));
    const minted = [...results.map(({ id }) => id), jobs.mintId(), jobs.mintId()];
    expect([...minted].sort()).toEqual(minted);
    expect(new Set(minted).size).toBe(minted.length);
  });

  it('refuses only the bad job of a turn; the others land', async () => {
    const { jobs } = await stage.connect();
    const calls = [jobs.enqueue('q', 'a'), jobs.enqueue('q', 'b', 1n), jobs.enqueue('q', 'c')];
    const statuses = (await Promise.allSettled(calls)).map(({ status }) => status);
    expect(statuses).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((await jobs.counts('q')).pending).toBe(2);
  });
});

describe('what goes over the wire', () => {
  const stage = useStage();
  let echo: EchoMq;
  let overheard: Overheard;
  beforeEach(async () => {
    echo = await stage.connect();
    // Teaches the server the scripts, so that each call is one command.
    await echo.jobs.enqueue('warm', 'a');
    overheard = await stage.overhear();
  });

  it('is one script call for 100 jobs enqueued to a queue in one turn', async () => {
    const results = await Promise.all(numbers(100).map((n) => echo.jobs.enqueue('q', 'a', n)));
    expect(results.every(({ status }) => status === 'landed')).toBe(true);
    const said = await overheard.said();
    expect(said.map(([command]) => command!.toLowerCase())).toEqual(['evalsha']);
    expect(await stage.control.zrange('emq:{q}:pending', '0', '-1')).toEqual(results.map(({ id }) => id));
  });

  it('is one script call a queue for several queues', async () => {
    await Promise.all(numbers(30).map((n) => echo.jobs.enqueue(`q${n % 3}`, 'a')));
    expect(await overheard.said()).toHaveLength(3);
  });

  it('is a call of its own in the next turn', async () => {
    await Promise.all([echo.jobs.enqueue('q', 'a'), echo.jobs.enqueue('q', 'b')]);
    await echo.jobs.enqueue('q', 'c');
    expect(await overheard.said()).toHaveLength(2);
  });

  it('is a script call for every 500 jobs of a longer turn or list', async () => {
    await Promise.all(numbers(1100).map(() => echo.jobs.enqueue('q', 'a')));
    expect(await overheard.said()).toHaveLength(3);
    await echo.jobs.enqueueMany(
      'q',
      numbers(1500).map(() => ({ name: 'a' })),
    );
    expect(await overheard.said()).toHaveLength(3);
  });

  const ID = 'JOB0KHTOWnGLuC';
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  /** What is called, and what the refusal must name. */
  const REFUSED: [what: string, call: (jobs: Jobs) => Promise<unknown>, names: RegExp][] = [
    ...[Number.NaN, -1, 1.5, '100', Number.POSITIVE_INFINITY, 2 ** 53, null, true, [], 1n].map(
      (delay): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
        `delayMs ${typeof delay} ${String(delay)}`,
        (jobs) => jobs.enqueue('q', 'a', undefined, { delayMs: delay as number }),
        /^delayMs/,
      ],
    ),
    ...[Number.NaN, -1, '2030-01-01', new Date(Number.NaN), Number.POSITIVE_INFINITY, null].map(
      (runAt): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
        `runAt ${String(runAt)}`,
        (jobs) => jobs.enqueue('q', 'a', undefined, { runAt: runAt as Date }),
        /^runAt/,
      ],
    ),
    ['both delayMs and runAt', (jobs) => jobs.enqueue('q', 'a', 1, { delayMs: 1, runAt: 1 }), /delayMs or runAt/],
    ...[0, -1, 1.5, Number.NaN, '3'].map((attempts): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
      `attempts ${typeof attempts} ${attempts}`,
      (jobs) => jobs.enqueue('q', 'a', undefined, { attempts: attempts as number }),
      /^attempts/,
    ]),
    ['timeoutMs -1', (jobs) => jobs.enqueue('q', 'a', 1, { timeoutMs: -1 }), /^timeoutMs/],
    ['keepMs NaN', (jobs) => jobs.enqueue('q', 'a', 1, { keepMs: Number.NaN }), /^keepMs/],
    ['maxStalls 0.5', (jobs) => jobs.enqueue('q', 'a', 1, { maxStalls: 0.5 }), /^maxStalls/],
    ['priority NaN', (jobs) => jobs.enqueue('q', 'a', 1, { priority: Number.NaN }), /^priority/],
    ['an unknown option', (jobs) => jobs.enqueue('q', 'a', 1, { delay: 5 } as never), /unknown option 'delay'/],
    ['options that are no object', (jobs) => jobs.enqueue('q', 'a', 1, 5 as never), /options must be an object/],
    ['null for options', (jobs) => jobs.enqueue('q', 'a', 1, null as never), /options must be an object/],
    ...[() => 5, { type: 'linear', delayMs: 1 }, { type: 'fixed' }, { type: 'fixed', delayMs: -1 }, 1000, null].map(
      (backoff): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
        `backoff ${typeof backoff} ${JSON.stringify(backoff)}`,
        (jobs) => jobs.enqueue('q', 'a', undefined, { backoff: backoff as never }),
        /^backoff/,
      ],
    ),
    ...['', 'my-own-id', 'JOB0KHTOWnGLu', 'job0KHTOWnGLuC', 'JOBzzzzzzzzzzz', 5, null].map(
      (id): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
        `id ${JSON.stringify(id)}`,
        (jobs) => jobs.enqueue('q', 'a', undefined, { id: id as string }),
        /^not a job id/,
      ],
    ),
    ...[1n, circular, () => 1, Symbol('a'), Number.NaN, Number.NEGATIVE_INFINITY, Buffer.from('a')].map(
      (data): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
        `data ${typeof data} ${Object.prototype.toString.call(data)}`,
        (jobs) => jobs.enqueue('q', 'a', data),
        /^data cannot be serialised/,
      ],
    ),
    ...['', undefined, null, 5, {}].map((name): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
      `name ${JSON.stringify(name)}`,
      (jobs) => jobs.enqueue('q', name as string),
      /name must be a string/,
    ]),
    ...['', '{q}', 'a}', 'a\nb', ' a', 'a ', 'é'.repeat(101), '\ud800', undefined, 5].map(
      (queue): [string, (jobs: Jobs) => Promise<unknown>, RegExp] => [
        `queue ${JSON.stringify(queue)}`,
        (jobs) => jobs.enqueue(queue as string, 'a'),
        /^queue name/,
      ],
    ),
    ['an item that is no object', (jobs) => jobs.enqueueMany('q', ['a'] as never), /^item 0: item must be an object/],
    ['an unknown part of an item', (jobs) => jobs.enqueueMany('q', [{ name: 'a', opt: {} } as never]), /'opt'/],
    [
      'a bad option of an item',
      (jobs) => jobs.enqueueMany('q', [{ name: 'a', opts: { delayMs: -1 } }]),
      /^item 0: delay/,
    ],
    ['a bad queue for many', (jobs) => jobs.enqueueMany('{', [{ name: 'a' }]), /^queue name/],
    ['claim without options', (jobs) => jobs.claim('q', undefined as never), /^claim options/],
    ['claim leaseMs 0', (jobs) => jobs.claim('q', { leaseMs: 0 }), /^leaseMs/],
    ['claim count 0', (jobs) => jobs.claim('q', { leaseMs: 1, count: 0 }), /^count/],
    ['claim count 501', (jobs) => jobs.claim('q', { leaseMs: 1, count: 501 }), /^count/],
    ['complete under a foreign id', (jobs) => jobs.complete('q', 'x', '1'), /^not a job id/],
    ['complete without a token', (jobs) => jobs.complete('q', ID, undefined as never), /^token/],
    ['complete with a number for a token', (jobs) => jobs.complete('q', ID, 1 as never), /^token/],
    ['complete keepMs -1', (jobs) => jobs.complete('q', ID, '1', { keepMs: -1 }), /^keepMs/],
    ['complete with a circular result', (jobs) => jobs.complete('q', ID, '1', { result: circular }), /^result cannot/],
    ['complete, option unknown', (jobs) => jobs.complete('q', ID, '1', { keep: 1 } as never), /unknown option 'keep'/],
    ['retry without maxAttempts', (jobs) => jobs.retry('q', ID, '1', {} as never), /^maxAttempts/],
    ['retry delayMs NaN', (jobs) => jobs.retry('q', ID, '1', { maxAttempts: 1, delayMs: Number.NaN }), /^delayMs/],
    ['release delayMs -1', (jobs) => jobs.release('q', ID, '1', { delayMs: -1 }), /^delayMs/],
    ['extend leaseMs 0', (jobs) => jobs.extend('q', ID, '1', { leaseMs: 0 }), /^leaseMs/],
    ['promote limit 1001', (jobs) => jobs.promote('q', { limit: 1001 }), /^limit/],
    ['reap limit 0', (jobs) => jobs.reap('q', { limit: 0 }), /^limit/],
    ['reap maxStalls -1', (jobs) => jobs.reap('q', { maxStalls: -1 }), /^maxStalls/],
    ['reprocess under a foreign id', (jobs) => jobs.reprocess('q', '1'), /^not a job id/],
    ['reprocess fresh "no"', (jobs) => jobs.reprocess('q', ID, { fresh: 'no' as never }), /fresh/],
    ['remove under a foreign id', (jobs) => jobs.remove('q', '1'), /^not a job id/],
    ['cancel under a foreign id', (jobs) => jobs.cancel('q', '1'), /^not a job id/],
    ['get under a foreign id', (jobs) => jobs.get('q', 'pending'), /^not a job id/],
    ['reschedule without a time', (jobs) => jobs.reschedule('q', ID, {}), /delayMs or runAt/],
    ['reschedule with another option', (jobs) => jobs.reschedule('q', ID, { priority: 1 } as never), /'priority'/],
    ['trim without keepCount', (jobs) => jobs.trim('q', {} as never), /^keepCount/],
    ['list of done jobs', (jobs) => jobs.list('q', 'done' as never), /"done" cannot be listed/],
    ['list of no name', (jobs) => jobs.list('q', Object.create(null) as never), /state object cannot be listed/],
    ['list of an inherited name', (jobs) => jobs.list('q', 'toString' as never), /cannot be listed/],
    ['list limit 1001', (jobs) => jobs.list('q', 'pending', { limit: 1001 }), /^limit/],
    ['list offset -1', (jobs) => jobs.list('q', 'pending', { offset: -1 }), /^offset/],
    ['obliterate force "yes"', (jobs) => jobs.obliterate('q', { force: 'yes' as never }), /force/],
    [
      'enqueueAndWait options null',
      (jobs) => jobs.enqueueAndWait('q', 'a', 1, null as never),
      /options must be an object/,
    ],
    ['enqueueAndWait options 5', (jobs) => jobs.enqueueAndWait('q', 'a', 1, 5 as never), /options must be an object/],
    ['pause of a bad queue', (jobs) => jobs.pause('{'), /^queue name/],
    ['resume of a bad queue', (jobs) => jobs.resume('{'), /^queue name/],
    ['isPaused of a bad queue', (jobs) => jobs.isPaused('{'), /^queue name/],
    ['counts of a bad queue', (jobs) => jobs.counts('{'), /^queue name/],
    ['promote of a bad queue', (jobs) => jobs.promote('{'), /^queue name/],
    ['reap of a bad queue', (jobs) => jobs.reap('{'), /^queue name/],
  ];

  it.each(REFUSED)('is nothing when arguments make no sense: %s', async (_what, call, names) => {
    const promise = call(echo.jobs); // rejects, does not throw
    const error = await failure(promise);
    expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG', retryable: false });
    expect(error.message).toMatch(names);
    expect(await overheard.said()).toEqual([]);
  });
});
