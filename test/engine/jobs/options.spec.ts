import { describe, expect, it } from '@jest/globals';
import { type ConsumerOptions, EchoMq, type EchoMqOptions, type EnqueueOptions } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { rareBeats } from '../fast-clock.js';
import { failure, latch, numbers, useStage } from './stage.js';

const HELD = { type: 'fixed', delayMs: 60_000 } as const;
const AT_ONCE = { type: 'fixed', delayMs: 0 } as const;

describe('options of a consumer', () => {
  const stage = useStage();

  it.each<[option: string, values: unknown[]]>([
    ['concurrency', [0, -1, 1.5, Number.NaN, '5', 10_001, null]],
    ['leaseMs', [0, 99, Number.NaN, Number.POSITIVE_INFINITY, '15000']],
    ['attempts', [0, -1, 2.5, 'three', null]],
    [
      'backoff',
      [
        5,
        'fixed',
        {},
        { type: 'fixed' },
        { type: 'fixed', delayMs: 1, maxMs: 2 },
        { type: 'fixed', delayMs: 1, jitter: 2 },
      ],
    ],
    ['timeoutMs', [-1, Number.NaN, '1']],
    ['keepMs', [-1, 0.5]],
    ['maxStalls', [-1, Number.NaN]],
    ['drainMs', [-1, Number.POSITIVE_INFINITY]],
    ['claimAhead', [1, 'yes', null]],
    ['record', [0, 1, -5, 2.5, Number.NaN, Number.NEGATIVE_INFINITY, '10', 'untrimmed', null]],
  ])('%s: nonsense is refused at once, by name', async (option, values) => {
    const echo = await stage.connect();
    for (const value of values) {
      const consume = () => echo.consume('q', { [option]: value } as ConsumerOptions, () => undefined);
      expect(consume).toThrow(
        expect.objectContaining({ name: 'EchoConfigError', code: 'ECHO_CONFIG', retryable: false }),
      );
      expect(consume).toThrow(new RegExp(`option 'consume\\('q'\\)\\.${option}'`));
    }
  });

  it('an unknown one, or none at all, is refused, and the known are listed', async () => {
    const echo = await stage.connect();
    const unknown = { concurency: 5 } as ConsumerOptions;
    expect(() => echo.consume('q', unknown, () => undefined)).toThrow(
      /unknown option 'concurency'. Known are concurrency,/,
    );
    expect(() => echo.consume('q', undefined as never, () => undefined)).toThrow(/must be an object/);
    expect(() => echo.consume('q', {}, undefined as never)).toThrow(/needs a handler function/);
    expect(() => echo.consume('{q}', {}, () => undefined)).toThrow(/queue name/);
  });

  it('left undefined are the defaults', async () => {
    const echo = await stage.connect();
    const consumer = echo.consume('q', { concurrency: undefined, backoff: undefined }, () => undefined);
    expect(consumer.settings).toEqual({
      concurrency: 1,
      leaseMs: 15_000,
      attempts: 3,
      backoff: { type: 'exponential', delayMs: 1000, maxMs: 3_600_000 },
      timeoutMs: 0,
      keepMs: 0,
      maxStalls: 2,
      drainMs: 10_000,
      claimAhead: true,
      record: false,
    });
    expect(consumer.queue).toBe('q');
  });

  it('a second consumer of a queue in one process is refused; after the first has closed it is welcome', async () => {
    const echo = await stage.connect({ clock: rareBeats() });
    const ran: string[] = [];
    const first = echo.consume('q', {}, () => void ran.push('first'));
    expect(() => echo.consume('q', {}, () => undefined)).toThrow(
      expect.objectContaining({ name: 'EchoConfigError', message: expect.stringMatching(/'q' has a consumer/) }),
    );
    await first.close();
    echo.consume('q', {}, () => void ran.push('second'));
    await echo.jobs.enqueue('q', 'a');
    await until(() => ran.length === 1, { what: 'the job' });
    expect(ran).toEqual(['second']);
  });

  it('after close nothing is consumed', async () => {
    const echo = await stage.connect();
    await echo.close();
    expect(() => echo.consume('q', {}, () => undefined)).toThrow(expect.objectContaining({ name: 'EchoStateError' }));
  });
});

describe("a job's own options are stronger than its consumer's", () => {
  const stage = useStage();

  const failing = async (consumer: ConsumerOptions, opts: EnqueueOptions) => {
    const echo = await stage.connect();
    let failures = 0;
    echo
      .consume('q', consumer, () => {
        throw new Error('again');
      })
      .on('failed', () => failures++);
    const { id } = await echo.jobs.enqueue('q', 'a', undefined, opts);
    return { echo, id, failures: () => failures };
  };

  it.each([
    [1, 4],
    [4, 1],
  ])('attempts: the consumer says %i, the job %i', async (ours, its) => {
    const { echo, id, failures } = await failing({ attempts: ours, backoff: AT_ONCE }, { attempts: its });
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'the death' });
    await until(() => failures() === its, { what: 'its failures' });
  });

  it('backoff', async () => {
    const { echo, id } = await failing({ backoff: AT_ONCE, attempts: 2 }, { backoff: HELD });
    await until(async () => (await echo.jobs.get('q', id))?.state === 'scheduled', { what: 'the wait' });
  });

  it('backoff, also none at all', async () => {
    const { echo, id } = await failing({ backoff: HELD, attempts: 2 }, { backoff: AT_ONCE });
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'the death' });
  });

  it('timeoutMs, also 0 for none', async () => {
    const echo = await stage.connect();
    const gate = latch();
    const failed: string[] = [];
    const consumer = echo.consume('q', { timeoutMs: 40, concurrency: 2, attempts: 1 }, () => gate.opened);
    consumer.on('failed', (job) => failed.push(job.name));
    const [patient] = await echo.jobs.enqueueMany('q', [
      { name: 'patient', opts: { timeoutMs: 0 } },
      { name: 'hasty', opts: { timeoutMs: 20 } },
      { name: 'plain' },
    ]);
    await until(() => failed.length === 2, { what: 'the others to time out' });
    expect(failed).toEqual(['hasty', 'plain']);
    expect(await echo.jobs.get('q', patient!.id)).toMatchObject({ state: 'active' });
    gate.open();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'the patient one' });
  });

  it('keepMs, also 0 for none', async () => {
    const echo = await stage.connect();
    echo.consume('q', { keepMs: 60_000 }, () => 5);
    const [kept, dropped] = await echo.jobs.enqueueMany('q', [{ name: 'a' }, { name: 'b', opts: { keepMs: 0 } }]);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both' });
    expect(await echo.jobs.get('q', kept!.id)).toMatchObject({ state: 'done' });
    expect(await echo.jobs.get('q', dropped!.id)).toBeUndefined();
  });

  it('maxStalls', async () => {
    const { jobs } = await stage.connect();
    const [strict, lax] = await jobs.enqueueMany('q', [
      { name: 'strict', opts: { maxStalls: 0 } },
      { name: 'lax', opts: { maxStalls: 3 } },
    ]);
    await jobs.claim('q', { leaseMs: 1, count: 2 });
    let lapses = 0;
    await until(
      async () => {
        const { died, requeued } = await jobs.reap('q', { maxStalls: 1 });
        lapses += died + requeued;
        return lapses === 2;
      },
      { what: 'both leases to lapse' },
    );
    expect((await jobs.get('q', strict!.id))!.state).toBe('dead');
    expect((await jobs.get('q', lax!.id))!.state).toBe('pending');
  });
});

describe('options of a connection', () => {
  const stage = useStage();

  it.each<[option: string, values: unknown[], names?: RegExp]>([
    [
      'connection',
      [undefined, 5, 'localhost', 'http://localhost', null, { cluster: [] }, { host: 'h', keyPrefix: 'x' }],
    ],
    ['prefix', ['', 'a b', '{a}', 'x'.repeat(65), 5]],
    ['wire', [5, '6', 7, 'toString']],
    ['connectTimeoutMs', [0, Number.NaN, '1']],
    ['requestTimeoutMs', [0, -1]],
    ['enqueueTimeoutMs', [0, Number.NaN]],
    ['enqueueBufferLimit', [-1, 1.5]],
    ['maxPayloadBytes', [0, '1']],
    ['codec', [{}, null, 5, { encode: () => '', decode: () => undefined }]],
    ['onError', [5, null, {}]],
  ])('%s: nonsense is refused before anything is opened, by name', async (option, values) => {
    for (const value of values) {
      const options = { connection: stage.server.url, [option]: value } as EchoMqOptions;
      if (value === undefined && option !== 'connection') continue;
      const error = await failure(EchoMq.connect(options));
      expect(error).toMatchObject({ name: 'EchoConfigError', code: 'ECHO_CONFIG', retryable: false });
      expect(error.message).toMatch(`option '${option}`);
    }
  });

  it('an unknown one is refused, and the known are listed', async () => {
    const options = { connection: stage.server.url, conection: 1 } as EchoMqOptions;
    const error = await failure(EchoMq.connect(options));
    expect(error.message).toMatch(/unknown option 'conection'. Known are connection,/);
  });
});

describe('one process', () => {
  const stage = useStage();
  const ours = async () =>
    ((await stage.control.client('LIST')) as string)
      .split('\n')
      .map((line) => /name=(echomq:\S*)/.exec(line)?.[1])
      .filter((name) => name !== undefined)
      .sort();

  it('holds one connection to enqueue, and two however many queues it consumes', async () => {
    const echo = await stage.connect();
    await echo.jobs.enqueue('q0', 'a');
    expect(await ours()).toEqual(['echomq:commands']);
    let ran = 0;
    for (const n of numbers(20)) echo.consume(`q${n}`, { concurrency: 5 }, () => void ran++);
    await Promise.all(numbers(200).map((n) => echo.jobs.enqueue(`q${n % 20}`, 'a')));
    await until(() => ran === 201, { what: 'all' });
    expect(await ours()).toEqual(['echomq:commands', 'echomq:subscriber']);
    await echo.close();
    await until(async () => (await ours()).length === 0, { what: 'the connections to close' });
  });

  it('with another prefix sees nothing of the jobs of this one', async () => {
    const [one, two] = [await stage.connect({ prefix: 'one' }), await stage.connect({ prefix: 'two.x:y' })];
    const ran: string[] = [];
    const { id } = await one.jobs.enqueue('q', 'kept', undefined, { delayMs: 60_000 });
    two.consume('q', {}, (job) => void ran.push(`two ${job.name}`));
    await two.jobs.enqueue('q', 'a');
    await until(() => ran.length === 1, { what: 'its own job' });
    await one.jobs.pause('q');
    expect(await two.jobs.isPaused('q')).toBe(false);
    expect(await two.jobs.get('q', id)).toBeUndefined();
    expect(await two.jobs.cancel('q', id)).toBe('gone');
    one.consume('q', {}, (job) => void ran.push(`one ${job.name}`));
    await one.jobs.reschedule('q', id, { delayMs: 0 });
    await one.jobs.resume('q');
    await until(() => ran.length === 2, { what: 'the other' });
    expect(ran).toEqual(['two a', 'one kept']);
    expect((await stage.control.keys('emq*')).length + (await stage.control.keys('{emq}*')).length).toBe(0);
    expect(await two.jobs.obliterate('q')).toBe(0);
    expect((await one.jobs.counts('q')).metrics.completed).toBe(1);
  });

  it('takes over the settings of a client without using or closing it', async () => {
    const client = stage.server.client();
    const echo = await stage.connect({ connection: client });
    let ran = 0;
    echo.consume('q', {}, () => void ran++);
    await echo.jobs.enqueue('q', 'a');
    await until(() => ran === 1, { what: 'the job' });
    await echo.close();
    expect(await client.ping()).toBe('PONG');
  });
});
