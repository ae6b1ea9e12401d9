import { describe, expect, it } from '@jest/globals';
import * as v from 'valibot';
import { z } from 'zod';
import {
  type DeadJob,
  Discard,
  defineQueue,
  EchoArgumentError,
  EchoDataError,
  InvalidData,
  type Job,
  type StandardSchema,
} from '../../lib/core.js';
import { until } from '../support/until.js';
import { failure, latch, numbers, useStage } from './jobs/stage.js';

const SECRET = 'hunter2';

const Mail = defineQueue('mail', {
  welcome: z.object({ to: z.string(), copies: z.number().default(1), at: z.coerce.date<string | Date>().optional() }),
  digest: v.object({ items: v.array(v.object({ price: v.pipe(v.string(), v.transform(Number)) })) }),
});

/** A schema of our own making. */
function schema<Output>(validate: StandardSchema<unknown, Output>['~standard']['validate']) {
  return { '~standard': { version: 1, vendor: 'test', validate } } as const satisfies StandardSchema<unknown, Output>;
}

describe('data of a queue with schemas, when it is enqueued,', () => {
  const stage = useStage();

  it('is sent as it was given, without what the schema makes of it', async () => {
    const { jobs } = await stage.connect();
    const one = await jobs.enqueue(Mail, 'welcome', { to: 'Ada' }, { priority: 1 });
    const [two] = await jobs.enqueueMany(Mail, [{ name: 'digest', data: { items: [{ price: '12' }] } }]);
    expect(String((await jobs.get(Mail, one.id))?.payload)).toBe('{"name":"welcome","data":{"to":"Ada"}}');
    expect((await jobs.get(Mail, two!.id))?.data).toEqual({ items: [{ price: '12' }] });
  });

  it('is refused when it does not fit, by any library: where and what, and nothing is sent', async () => {
    const { jobs } = await stage.connect();
    const wrong: unknown = { to: 1, copies: 'two' };
    const error = await failure<EchoDataError>(jobs.enqueue(Mail, 'welcome', wrong as { to: string }));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error).toBeInstanceOf(EchoArgumentError);
    expect(error).toMatchObject({ name: 'EchoDataError', code: 'EMQARG', retryable: false });
    expect(error.message).toBe(
      "the data of 'welcome' for queue 'mail' does not fit its schema: 2 issues at to, copies",
    );
    expect(error.issues).toEqual([
      { path: ['to'], message: expect.stringContaining('expected string') },
      { path: ['copies'], message: expect.stringContaining('expected number') },
    ]);
    const items: unknown = [{ price: '1' }, { price: 2 }];
    const other = await failure<EchoDataError>(jobs.enqueue(Mail, 'digest', { items: items as [] }));
    expect(other.message).toMatch(/: 1 issue at items\[1]\.price$/);
    expect(other.issues).toEqual([{ path: ['items', 1, 'price'], message: expect.stringContaining('string') }]);
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('is refused under a name that the queue does not declare', async () => {
    const { jobs } = await stage.connect();
    for (const name of ['welcom', 'toString', '__proto__', 'constructor']) {
      const error = await failure(jobs.enqueue(Mail, name as 'welcome', { to: 'Ada' }));
      expect(error).toBeInstanceOf(EchoArgumentError);
      expect(error.message).toBe(`queue 'mail' declares no job "${name}". Declared are welcome, digest`);
    }
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('of many, names the item that does not fit, and none is sent', async () => {
    const { jobs } = await stage.connect();
    const many = numbers(600).map((n) => ({ name: 'welcome' as const, data: { to: n === 501 ? n : 'Ada' } }));
    const error = await failure<EchoDataError>(jobs.enqueueMany(Mail, many as never));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error.message).toMatch(/^item 501: the data of 'welcome' .* 1 issue at to$/);
    expect(error.issues).toMatchObject([{ path: ['to'] }]);
    const unknown = await failure(jobs.enqueueMany(Mail, [{ name: 'welcom' as 'welcome', data: { to: 'Ada' } }]));
    expect(unknown.message).toMatch(/^item 0: queue 'mail' declares no job "welcom"/);
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('may be left out where the schema takes undefined', async () => {
    const { jobs } = await stage.connect();
    const Pings = defineQueue('pings', { ping: z.undefined(), note: z.string().optional() });
    await jobs.enqueue(Pings, 'ping');
    await jobs.enqueueMany(Pings, [{ name: 'note' }, { name: 'note', data: 'a text' }]);
    expect(await jobs.counts(Pings)).toMatchObject({ pending: 3 });
  });

  it('by the bare name of the queue is not looked at', async () => {
    const { jobs } = await stage.connect();
    await jobs.enqueue('mail', 'welcom', { to: 1 });
    expect(await jobs.counts('mail')).toMatchObject({ pending: 1 });
  });

  it('waits for a schema that is asynchronous, with the bytes of the call', async () => {
    const { jobs } = await stage.connect();
    const looked = latch<boolean>();
    const Users = defineQueue('users', {
      merge: schema<unknown>(async (value) =>
        (await looked.opened) ? { value } : { issues: [{ message: 'no such user', path: [{ key: 'id' }] }] },
      ),
    });
    const data = { id: 1 };
    const enqueued = jobs.enqueue(Users, 'merge', data);
    data.id = 2;
    const many = jobs.enqueueMany(Users, [{ name: 'merge', data: { id: 3 } }]);
    await jobs.enqueue('users', 'other');
    expect(await jobs.counts(Users)).toMatchObject({ pending: 1 });
    looked.open(true);
    expect((await jobs.get(Users, (await enqueued).id))?.data).toEqual({ id: 1 });
    expect((await jobs.get(Users, (await many)[0]!.id))?.data).toEqual({ id: 3 });
  });

  it('is refused by a schema that is asynchronous, too', async () => {
    const { jobs } = await stage.connect();
    const Users = defineQueue('users', {
      merge: schema<unknown>(async (value) =>
        (value as { id: number }).id < 3 ? { value } : { issues: [{ message: 'no', path: [{ key: 'id' }] }] },
      ),
    });
    expect(await failure(jobs.enqueue(Users, 'merge', { id: 3 }))).toMatchObject({
      name: 'EchoDataError',
      issues: [{ path: ['id'], message: 'no' }],
    });
    const many = numbers(5).map((id) => ({ name: 'merge' as const, data: { id } }));
    expect((await failure(jobs.enqueueMany(Users, many))).message).toMatch(/^item [34]: .* 1 issue at id$/);
    // An item that is refused at once, while others are being looked at that will be refused later.
    const mixed = [...many, { name: 'unknown' as 'merge', data: { id: 0 } }];
    expect((await failure(jobs.enqueueMany(Users, mixed))).message).toMatch(/^item 5: .* declares no job/);
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it.each([0, 30])(
    'is sent before close() ends, where its schema was still at work, by %i round trips',
    async (trips) => {
      const echo = await stage.connect();
      const looked = latch();
      const Users = defineQueue('users', { merge: schema<unknown>((value) => looked.opened.then(() => ({ value }))) });
      const enqueued = echo.jobs.enqueue(Users, 'merge', 1);
      const closed = echo.close();
      for (const _ of numbers(trips)) await stage.control.ping(); // it gets as far as it can
      looked.open();
      expect(await enqueued).toMatchObject({ status: 'landed' });
      await closed;
      expect(await stage.control.zcard('emq:{users}:pending')).toBe(1);
    },
  );

  it.each([
    [
      'throws',
      () => {
        throw new Error(`cannot see ${SECRET}`);
      },
    ],
    ['rejects', () => Promise.reject(new Error(`cannot see ${SECRET}`))],
  ])('meets a schema that %s: that is told apart from data that does not fit', async (_, validate) => {
    const { jobs } = await stage.connect();
    const Broken = defineQueue('broken', { job: schema<unknown>(validate) });
    for (const call of [jobs.enqueue(Broken, 'job'), jobs.enqueueMany(Broken, [{ name: 'job' }])]) {
      const error = await failure(call);
      expect(error).toBeInstanceOf(EchoArgumentError);
      expect(error).not.toBeInstanceOf(EchoDataError);
      expect(error.message).toContain("the schema of 'job' for queue 'broken' threw");
      expect(error.message).not.toContain(SECRET);
    }
    expect((await failure(jobs.enqueue(Broken, 'job'))).cause).toMatchObject({ message: `cannot see ${SECRET}` });
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });
});

describe('data of a queue with schemas, when it is consumed,', () => {
  const stage = useStage();

  it('comes to the handler as its schema puts it out', async () => {
    const echo = await stage.connect();
    const ran: unknown[] = [];
    echo.consume(Mail, {}, (job) => void ran.push([job.name, job.data]));
    await echo.jobs.enqueue(Mail, 'welcome', { to: 'Ada', at: new Date(5) });
    await echo.jobs.enqueue(Mail, 'digest', { items: [{ price: '12' }] });
    await until(() => ran.length === 2, { what: 'both jobs' });
    expect(ran).toEqual([
      ['welcome', { to: 'Ada', copies: 1, at: new Date(5) }],
      ['digest', { items: [{ price: 12 }] }],
    ]);
  });

  it('is validated anew from its bytes at every attempt', async () => {
    const echo = await stage.connect();
    const Counted = defineQueue('counted', { job: z.number().transform((n) => n + 1) });
    const ran: number[] = [];
    echo.consume(Counted, { backoff: { type: 'fixed', delayMs: 0 } }, ({ data }) => {
      if (ran.push(data) < 3) throw new Error('again');
    });
    await echo.jobs.enqueue(Counted, 'job', 1);
    await until(() => ran.length === 3, { what: 'three attempts' });
    expect(ran).toEqual([2, 2, 2]);
  });

  it('that does not fit buries its job at once, and the handler is not called', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    const failed: [Job, unknown, string][] = [];
    const dead: DeadJob[] = [];
    echo
      .consume(Mail, { attempts: 5 }, ({ id }) => void ran.push(id))
      .on('failed', (...told) => failed.push(told))
      .on('dead', (job) => dead.push(job));
    const { id } = await echo.jobs.enqueue('mail', 'welcome', { to: [SECRET], copies: SECRET });
    await until(() => dead.length === 1, { what: 'its death' });
    expect(ran).toEqual([]);
    const [[job, error, outcome]] = failed as [[Job, InvalidData, string]];
    expect({ id: job.id, outcome }).toEqual({ id, outcome: 'dead' });
    expect(error).toBeInstanceOf(InvalidData);
    expect(error).toBeInstanceOf(Discard);
    expect(error.message).toBe('invalid data: 2 issues at to, copies');
    expect(error.issues).toEqual([
      { path: ['to'], message: expect.any(String) },
      { path: ['copies'], message: expect.any(String) },
    ]);
    expect(dead[0]).toMatchObject({ id, reason: error.message });
    const view = await echo.jobs.get(Mail, id);
    expect(view).toMatchObject({ state: 'dead', attempts: 1, lastError: error.message });
    expect(view?.data).toEqual({ to: [SECRET], copies: SECRET });
  });

  it('leaves none of its values in what the row keeps, whatever the schema says', async () => {
    const echo = await stage.connect();
    const Told = defineQueue('told', {
      job: schema<unknown>((value) => ({ issues: [{ message: `${JSON.stringify(value)} is wrong` }] })),
    });
    let error: unknown;
    echo.consume(Told, {}, () => undefined).on('failed', (_, thrown) => (error = thrown));
    const { id } = await echo.jobs.enqueue('told', 'job', { password: SECRET });
    await until(() => error, { what: 'the failure' });
    expect((error as InvalidData).issues[0]!.message).toContain(SECRET);
    const { payload: _, ...row } = await stage.control.hgetall(`emq:{told}:job:${id}`);
    expect(row.last_error).toBe('invalid data: 1 issue at its top');
    expect(JSON.stringify(row)).not.toContain(SECRET);
  });

  it('is named in bounds: by five places, with keys that came from outside quoted and cut', async () => {
    const echo = await stage.connect();
    const Wide = defineQueue('wide', { job: z.record(z.string(), z.number()) });
    const Deep = defineQueue('deep', {
      job: schema<unknown>(() => ({ issues: [{ message: 'no', path: numbers(5000).map((n) => `k${n}`) }] })),
    });
    for (const queue of [Wide, Deep]) echo.consume(queue, {}, () => undefined);
    const odd = Object.fromEntries(
      ['a b', 'x\ny', 'é"', `${'long'.repeat(500)}`, '7', 'f', 'g'].map((key) => [key, '']),
    );
    const wide = await echo.jobs.enqueue('wide', 'job', odd);
    const deep = await echo.jobs.enqueue('deep', 'job');
    await until(async () => (await echo.jobs.counts('wide')).dead + (await echo.jobs.counts('deep')).dead === 2, {
      what: 'both to be dead',
    });
    const text = (await echo.jobs.get('wide', wide.id))!.lastError!;
    expect(text).toMatch(
      /^invalid data: 7 issues at \[7], \["a b"], \["x\\ny"], \["é\\""], \["longlong.* and elsewhere$/,
    );
    expect(text.split(', ')).toHaveLength(5);
    expect(text.length).toBeLessThan(300);
    expect((await echo.jobs.get('deep', deep.id))!.lastError).toMatch(
      /^invalid data: 1 issue at k0\.k1\..{90,95}\.\.\.$/,
    );
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no dictionary');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no dictionary'))],
    ['answers nonsense', () => undefined as never],
  ])('meets a schema that %s: a failed attempt like any other', async (_, validate) => {
    const echo = await stage.connect();
    let calls = 0;
    const Broken = defineQueue('broken', {
      job: schema<unknown>((value) => {
        calls += 1;
        return calls < 3 ? validate() : { value };
      }),
    });
    const ran: unknown[] = [];
    const outcomes: string[] = [];
    echo
      .consume(Broken, { backoff: { type: 'fixed', delayMs: 0 } }, ({ data }) => void ran.push(data))
      .on('failed', (_job, _error, outcome) => outcomes.push(outcome));
    await echo.jobs.enqueue('broken', 'job', 'data');
    await until(() => ran.length === 1, { what: 'the third attempt' });
    expect(ran).toEqual(['data']);
    expect(outcomes).toEqual(['pending', 'pending']);
  });

  it('under a name that the queue does not declare goes through to the handler as it is', async () => {
    const echo = await stage.connect();
    const ran: [string, unknown][] = [];
    echo.consume(Mail, {}, ({ name, data }) => void ran.push([name, data]));
    await echo.jobs.enqueueMany('mail', [
      { name: 'other', data: { to: 1 } },
      { name: 'toString', data: 2 },
    ]);
    await until(() => ran.length === 2, { what: 'both jobs' });
    expect(ran).toEqual([
      ['other', { to: 1 }],
      ['toString', 2],
    ]);
  });

  it('is not handed to a handler whose time ran out while an asynchronous schema was at work', async () => {
    const echo = await stage.connect();
    const looked = latch();
    const Slow = defineQueue('slow', {
      job: schema<unknown>((value) => looked.opened.then(() => ({ value }))),
      next: z.undefined(),
    });
    const ran: string[] = [];
    const failed: unknown[] = [];
    echo
      .consume(Slow, { timeoutMs: 20, attempts: 1 }, ({ name }) => void ran.push(name))
      .on('failed', (_, error) => failed.push(error));
    await echo.jobs.enqueue('slow', 'job');
    await until(() => failed.length === 1, { what: 'its time to run out' });
    looked.open();
    await echo.jobs.enqueue(Slow, 'next');
    await until(() => ran.length > 0, { what: 'the next job' });
    expect(ran).toEqual(['next']);
    expect(await echo.jobs.counts(Slow)).toMatchObject({ dead: 1 });
  });

  it('is waited for by a handler that knows which job it runs', async () => {
    const echo = await stage.connect();
    const Slow = defineQueue('slow', { job: schema<unknown>(async (value) => ({ value })) });
    // close() inside a handler waits for all others, so that it ends only if the handler is known behind the await, too.
    const consumer = echo.consume(Slow, {}, async () => {
      await consumer.close();
      return 'closed';
    });
    let result: unknown;
    consumer.on('completed', (_, value) => (result = value));
    await echo.jobs.enqueue(Slow, 'job');
    await until(() => result === 'closed', { what: 'the handler to close its consumer' });
  });

  it('is taken from whatever promise a schema answers with', async () => {
    const echo = await stage.connect();
    const Foreign = defineQueue('foreign', {
      // biome-ignore lint/suspicious/noThenProperty: a thenable is what this is about
      job: schema<unknown>((value) => ({ then: (take: (r: unknown) => void) => take({ value: [value] }) }) as never),
    });
    const ran: unknown[] = [];
    echo.consume(Foreign, {}, ({ data }) => void ran.push(data));
    await echo.jobs.enqueue(Foreign, 'job', 1);
    await until(() => ran.length === 1, { what: 'the job' });
    expect(ran).toEqual([[1]]);
  });
});
