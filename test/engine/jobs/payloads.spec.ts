import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Codec, type Job, jsonCodec } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Gates, Ledger } from '../gates.js';
import { failure, numbers, useStage } from './stage.js';

const MEGABYTE = 1024 * 1024;

describe('payloads', () => {
  const stage = useStage();

  it.each<[string, unknown]>([
    ['NUL bytes', 'a\0b\0'],
    ['control characters and quotes', '\r\n\t"\\\u0001\u007f'],
    ['half a surrogate pair', 'x\ud83d'],
    ['the other half', '\ude00x'],
    ['emoji and combining marks', '👩‍👩‍👧 é e\u0301 \u202e'],
    ['line separators', '\u2028\u2029'],
    ['something that looks like an envelope', { name: 'x', data: 1, opts: { attempts: 1 } }],
    ['a key called __proto__', JSON.parse('{"__proto__":{"a":1},"constructor":2}')],
    ['large and small numbers', [Number.MAX_VALUE, 5e-324, 2 ** 53, -1.5, 1e21]],
    ['deep nesting', numbers(500).reduce<unknown>((inner) => [inner], 'core')],
    ['null', null],
    ['false', false],
    ['an empty string', ''],
    ['five megabytes', 'x'.repeat(5 * MEGABYTE)],
    ['nothing at all', undefined],
  ])('reach the handler exactly: %s (C148)', async (_what, data) => {
    const echo = await stage.connect();
    const seen: Job[] = [];
    echo.consume('q', {}, (job) => void seen.push(job));
    await echo.jobs.enqueue('q', 'na\0me \ud800 "q"', data);
    await until(() => seen.length === 1, { what: 'the job' });
    expect(seen[0]!.data).toEqual(data);
    expect(seen[0]!.name).toBe('na\0me \ud800 "q"');
    if (typeof data === 'object' && data !== null)
      expect(Object.keys(seen[0]!.data as object)).toEqual(Object.keys(data));
  });

  it('of many megabytes are claimed in several calls, and all of them run at once where slots are free', async () => {
    const echo = await stage.connect();
    const data = 'x'.repeat(MEGABYTE);
    await echo.jobs.enqueueMany(
      'q',
      numbers(20).map(() => ({ name: 'a', data })),
    );
    const gates = new Gates();
    echo.consume('q', { concurrency: 20 }, gates.handler);
    await gates.run(20);
    for (const run of gates.runs) run.end();
  });

  it('of many megabytes come out of lanes in several calls as well', async () => {
    const echo = await stage.connect();
    const data = 'x'.repeat(MEGABYTE);
    await echo.jobs.enqueueMany(
      'q',
      numbers(20).map((n) => ({ name: 'a', data, opts: { lane: `tenant-${n % 2}` } })),
    );
    expect(await echo.jobs.claim('q', { leaseMs: 60_000, count: 20 })).toHaveLength(7);
    const ledger = new Ledger();
    echo.consume('q', { concurrency: 13 }, ledger.handler);
    await ledger.ran(13);
  });

  it.each<[string, unknown]>([
    ['a Buffer', Buffer.from('abc')],
    ['bytes', new Uint8Array(3)],
    ['a Buffer inside', { file: { content: Buffer.from('abc') } }],
    ['bytes inside', { file: [new Uint8Array(3)] }],
  ])('are refused where JSON would make something else of them: %s (C148)', async (_what, data) => {
    const { jobs } = await stage.connect();
    expect(await failure(jobs.enqueue('q', 'a', data))).toMatchObject({
      name: 'EchoArgumentError',
      code: 'EMQARG',
      message: expect.stringMatching(/Buffer|Uint8Array/),
    });
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('that only look like a Buffer are left alone', async () => {
    const { jobs } = await stage.connect();
    const data = { file: { type: 'Buffer', data: [1, 2] }, list: { 0: 1, 1: 2 }, text: '"type":"Buffer"' };
    await jobs.enqueue('q', 'a', data);
    expect((await jobs.claim('q', { leaseMs: 60_000 }))[0]!.data).toEqual(data);
  });

  it('over the limit are refused before a byte is sent, counted in bytes, not characters', async () => {
    const { jobs } = await stage.connect({ maxPayloadBytes: 1000 });
    const envelope = Buffer.byteLength('{"name":"a","data":""}');
    await jobs.enqueue('q', 'a', 'x'.repeat(1000 - envelope));
    await jobs.enqueue('q', 'a', 'é'.repeat((1000 - envelope) / 2));
    for (const data of ['x'.repeat(1001 - envelope), 'é'.repeat((1002 - envelope) / 2)]) {
      const error = await failure(jobs.enqueue('q', 'a', data));
      expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
      expect(error.message).toMatch(/maxPayloadBytes \(1000\)/);
    }
    expect(await failure(jobs.enqueueMany('q', [{ name: 'a' }, { name: 'b', data: 'x'.repeat(1000) }]))).toMatchObject({
      message: expect.stringMatching(/^item 1: .*maxPayloadBytes/),
    });
    expect((await jobs.counts('q')).pending).toBe(2);
  });

  it('and results over a megabyte survive', async () => {
    const echo = await stage.connect();
    echo.consume('q', { keepMs: 60_000 }, (job) => job.data);
    const data = '\ud800é"'.repeat(300_000);
    const { id } = await echo.jobs.enqueue('q', 'a', data);
    await until(async () => (await echo.jobs.get('q', id))?.state === 'done', { what: 'the end' });
    expect(JSON.parse((await echo.jobs.get('q', id))!.result!.toString())).toBe(data);
  });

  it('as results over the limit fail their attempts with an error that says so, and nobody else is disturbed', async () => {
    const echo = await stage.connect({ maxPayloadBytes: 1000 });
    const failures: string[] = [];
    const completed: string[] = [];
    const consumer = echo.consume('q', { concurrency: 5, attempts: 1, keepMs: 60_000 }, (job) => job.data);
    consumer.on('failed', (job, error, outcome) =>
      failures.push(`${job.name} ${outcome}: ${(error as Error).message}`),
    );
    consumer.on('completed', (job) => completed.push(job.name));
    const sizes = [10, 998, 10]; // with quotes, just within the limit
    const handed = numbers(3).map((n) => ({ name: `job ${n}`, data: 'x'.repeat(sizes[n]!) }));
    const { id } = await (await stage.connect()).jobs.enqueue('q', 'large', 'é'.repeat(500));
    await (await stage.connect()).jobs.enqueueMany('q', handed);
    await until(() => failures.length + completed.length === 4, { what: 'all' });
    expect(failures).toEqual(['large dead: the result is larger than maxPayloadBytes (1000)']);
    expect(completed.sort()).toEqual(['job 0', 'job 1', 'job 2']);
    expect(await echo.jobs.get('q', id)).toMatchObject({
      state: 'dead',
      attempts: 1,
      lastError: expect.stringContaining('maxPayloadBytes (1000)'),
    });
  });

  it('as results over the limit are refused to whoever completes by hand, before a byte is sent', async () => {
    const { jobs } = await stage.connect({ maxPayloadBytes: 1000 });
    await jobs.enqueue('q', 'a');
    const [job] = await jobs.claim('q', { leaseMs: 60_000 });
    const error = await failure(jobs.complete('q', job!.id, job!.token, { keepMs: 60_000, result: 'x'.repeat(999) }));
    expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
    expect(error.message).toMatch(/result .*maxPayloadBytes \(1000\)/);
    expect(await jobs.get('q', job!.id)).toMatchObject({ state: 'active' });
    expect(await jobs.complete('q', job!.id, job!.token, { keepMs: 60_000, result: 'x'.repeat(998) })).toBe('ok');
  });

  it('of any JSON come back as they were, through claim, get and list', async () => {
    const { jobs } = await stage.connect();
    const json = fc.jsonValue({ noUnicodeString: false, maxDepth: 5 } as never);
    const name = fc.string({ unit: 'binary', minLength: 1 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ name, data: json }), { minLength: 1, maxLength: 20 }), async (items) => {
        const landed = await jobs.enqueueMany('q', items);
        const claimed = await jobs.claim('q', { leaseMs: 60_000, count: 500 });
        // JSON has one zero.
        const expected = items.map((item) => ({ ...item, data: JSON.parse(JSON.stringify(item.data)) }));
        expect(claimed.map(({ name, data }) => ({ name, data }))).toEqual(expected);
        const listed = (await jobs.list('q', 'active')).jobs;
        expect(listed.map(({ id }) => id).sort()).toEqual(landed.map(({ id }) => id));
        const first = await jobs.get('q', landed[0]!.id);
        expect({ name: first!.name, data: first!.data }).toEqual(expected[0]);
        await Promise.all(claimed.map(({ id, token }) => jobs.complete('q', id, token)));
      }),
      { numRuns: 100 },
    );
  });
});

describe('payloads that are no envelope', () => {
  const stage = useStage();
  const raw: Codec = { ...jsonCodec, encode: (_name, data) => data as Buffer };

  it.each([
    ['bytes', Buffer.from([0, 255, 1, 254, 13, 10])],
    ['nothing', Buffer.alloc(0)],
    ['text', Buffer.from('hello')],
    ['JSON of another kind', Buffer.from('{"task":"x"}')],
    ['JSON with more than an envelope', Buffer.from('{"name":"x","data":1,"more":2}')],
    ['JSON with a name that is none', Buffer.from('{"name":5}')],
    ['broken JSON', Buffer.from('{"name":"x"')],
    ['a JSON array', Buffer.from('[1]')],
  ])('reach the handler as they are: %s', async (_what, bytes) => {
    const producer = await stage.connect({ codec: raw });
    const echo = await stage.connect();
    const seen: Job[] = [];
    const { id } = await producer.jobs.enqueue('q', 'ignored', bytes);
    expect(await echo.jobs.get('q', id)).toMatchObject({ name: '', data: bytes, payload: bytes, opts: undefined });
    echo.consume('q', {}, (job) => void seen.push(job));
    await until(() => seen.length === 1, { what: 'the job' });
    expect(seen[0]).toMatchObject({ name: '', opts: undefined });
    expect(Buffer.isBuffer(seen[0]!.data)).toBe(true);
    expect(bytes.equals(seen[0]!.data as Buffer)).toBe(true);
    expect(bytes.equals(seen[0]!.payload)).toBe(true);
  });
});

describe('a codec of your own', () => {
  const stage = useStage();
  const gzip: Codec = {
    encode: (name, data, opts) => gzipSync(jsonCodec.encode(name, data, opts)),
    decode: (payload) => jsonCodec.decode(gunzipSync(payload)),
    encodeResult: (result) => gzipSync(jsonCodec.encodeResult(result)),
  };

  it('stands between every job and the server, results too', async () => {
    const echo = await stage.connect({ codec: gzip });
    const seen: Job[] = [];
    echo.consume('q', {}, (job) => {
      seen.push(job);
      return { echoed: job.data };
    });
    const data = { text: 'x'.repeat(10_000) };
    const { id } = await echo.jobs.enqueue('q', 'a', data, { keepMs: 60_000, attempts: 7 });
    await until(async () => (await echo.jobs.get('q', id))?.state === 'done', { what: 'the end' });
    expect(seen[0]).toMatchObject({ name: 'a', data, opts: { attempts: 7, keepMs: 60_000 } });
    const row = (await echo.jobs.get('q', id))!;
    expect(row.payload.length).toBeLessThan(500);
    expect(row).toMatchObject({ name: 'a', data });
    expect(JSON.parse(gunzipSync(row.result!).toString())).toEqual({ echoed: data });
  });

  it('that cannot encode a job refuses it, and nothing is sent', async () => {
    const broken = new Error('no key');
    const codec: Codec = {
      ...gzip,
      encode: () => {
        throw broken;
      },
    };
    const { jobs } = await stage.connect({ codec });
    expect(await failure(jobs.enqueue('q', 'a'))).toMatchObject({ name: 'EchoArgumentError', cause: broken });
    expect(await failure(jobs.enqueueMany('q', [{ name: 'a' }]))).toMatchObject({ name: 'EchoArgumentError' });
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  const NO_BYTES: [what: string, answer: () => unknown][] = [
    ['a promise', () => Promise.resolve(Buffer.from('x'))],
    ['a promise', () => Promise.reject(new Error('of nobody'))],
    ['undefined', () => undefined],
    ['5', () => 5],
    ['object', () => new Uint8Array(2)],
  ];

  it('that answers no bytes for a job refuses that one alone: what goes out with it lands', async () => {
    for (const [what, answer] of NO_BYTES) {
      const codec: Codec = {
        ...jsonCodec,
        encode: (name, ...rest) => (name === 'bad' ? (answer() as string) : jsonCodec.encode(name, ...rest)),
      };
      const { jobs, flows } = await stage.connect({ codec });
      const bad = [
        jobs.enqueue('q', 'bad'),
        jobs.enqueueAndWait('q', 'bad', 1),
        jobs.enqueueMany('q', [{ name: 'good' }, { name: 'bad' }]),
        jobs.schedule('q', 'k', { everyMs: 1000 }, 'bad'),
        flows.add({ queue: 'q', name: 'root', children: [{ queue: 'q', name: 'bad' }] }),
      ];
      const good = numbers(2).map(() => jobs.enqueue('q', 'good'));
      for (const error of await Promise.all(bad.map((call) => failure(call)))) {
        expect(error).toMatchObject({ name: 'EchoArgumentError', code: 'EMQARG' });
        expect(error.message).toContain(`the codec's encode must answer a string or a Buffer, got ${what}`);
      }
      expect((await Promise.all(good)).map(({ status }) => status)).toEqual(['landed', 'landed']);
    }
    const { jobs } = await stage.connect();
    expect(await jobs.counts('q')).toMatchObject({ pending: 2 * NO_BYTES.length, awaitingChildren: 0 });
  });

  it('that answers no bytes for a result or a progress fails that attempt alone', async () => {
    for (const [what, answer] of NO_BYTES) {
      const codec: Codec = {
        ...jsonCodec,
        encodeResult: (value) => (value === 'bad' ? (answer() as string) : jsonCodec.encodeResult(value)),
      };
      const echo = await stage.connect({ codec });
      const why: string[] = [];
      const queue = `q ${answer}`.replace(/[{}]/g, '');
      const consumer = echo.consume(queue, { attempts: 1, concurrency: 4 }, (job) =>
        job.name === 'says' ? job.progress('bad') : job.name,
      );
      consumer.on('failed', (_job, error) => why.push((error as Error).message));
      const ended = ['bad', 'good', 'says', 'good'].map((name) => echo.jobs.enqueueAndWait(queue, name, undefined));
      const ends = (await Promise.allSettled(ended)).map((end) => end.status === 'fulfilled' && end.value);
      expect(ends).toEqual([false, 'good', false, 'good']);
      const message = `the codec's encodeResult must answer a string or a Buffer, got ${what}`;
      expect(why).toEqual([message, message]);

      await consumer.close();
      await echo.jobs.enqueue(queue, 'by hand');
      const [job] = await echo.jobs.claim(queue, { leaseMs: 60_000 });
      const [id, token] = [job!.id, job!.token];
      expect((await failure(echo.jobs.complete(queue, id, token, { result: 'bad' }))).message).toBe(message);
      expect((await failure(echo.jobs.progress(queue, id, token, 'bad'))).message).toBe(message);
      expect(await echo.jobs.complete(queue, id, token, { result: 'good' })).toBe('ok');
    }
  });

  it('that cannot decode a job fails its attempt, and the queue goes on', async () => {
    const producer = await stage.connect();
    const echo = await stage.connect({ codec: gzip });
    const ran: string[] = [];
    echo.consume('q', { attempts: 1 }, (job) => void ran.push(job.name));
    const { id } = await producer.jobs.enqueue('q', 'not zipped');
    await echo.jobs.enqueue('q', 'zipped');
    await until(() => ran.includes('zipped'), { what: 'the job that can be read' });
    await until(async () => (await producer.jobs.get('q', id))?.state === 'dead', { what: 'the death of the other' });
    expect((await producer.jobs.get('q', id))!.lastError).toMatch(/incorrect header check/);
    expect(ran).toEqual(['zipped']);
    const bytes = { name: '', data: Buffer.from('{"name":"not zipped"}') };
    expect(await echo.jobs.get('q', id)).toMatchObject(bytes);
    expect((await echo.jobs.list('q', 'dead')).jobs).toMatchObject([bytes]);
  });

  it('that cannot encode a result fails the attempt', async () => {
    const codec: Codec = {
      ...jsonCodec,
      encodeResult: () => {
        throw new Error('no key');
      },
    };
    const echo = await stage.connect({ codec });
    echo.consume('q', { attempts: 1 }, () => 5);
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'the death' });
    expect((await echo.jobs.get('q', id))!.lastError).toMatch(/no key/);
    await echo.jobs.enqueue('by hand', 'a');
    const [job] = await echo.jobs.claim('by hand', { leaseMs: 60_000 });
    expect(await failure(echo.jobs.complete('by hand', job!.id, job!.token))).toMatchObject({
      name: 'EchoArgumentError',
      message: expect.stringMatching(/^the codec cannot encode the result: Error: no key/),
    });
  });
});
