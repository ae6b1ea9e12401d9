import { describe, expect, it } from '@jest/globals';
import { Discard, type EchoMq, type Job, Snooze } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { latch, numbers, quiet, serverMs, useStage } from './stage.js';

const HELD = { type: 'fixed', delayMs: 60_000 } as const;
const AT_ONCE = { type: 'fixed', delayMs: 0 } as const;

type Failed = { job: Job; error: unknown; outcome: string };

/** Notes the `failed` events of a consumer. */
function failuresOf(consumer: ReturnType<EchoMq['consume']>): Failed[] {
  const seen: Failed[] = [];
  consumer.on('failed', (job, error, outcome) => seen.push({ job, error, outcome }));
  return seen;
}

describe('a handler that returns', () => {
  const stage = useStage();
  const thenable = {
    // biome-ignore lint/suspicious/noThenProperty: what query builders and older promise libraries return
    then: (resolve: (value: string) => void) => resolve('from a thenable'),
  };
  const later = {
    // biome-ignore lint/suspicious/noThenProperty: see above
    then: (resolve: (value: string) => void) => void setImmediate(() => resolve('later')),
  };

  it.each([
    ['a value', () => 5, '5'],
    ['nothing', () => undefined, 'null'],
    ['null', () => null, 'null'],
    ['an object', () => ({ a: [1, 'x'] }), '{"a":[1,"x"]}'],
    ['a promise', async () => 'done', '"done"'],
    ['a promise of nothing', async () => undefined, 'null'],
    ['a thenable', () => thenable, '"from a thenable"'],
    ['a thenable that takes its time', () => later, '"later"'],
    ['a promise of a thenable', async () => thenable, '"from a thenable"'],
    ['a date', () => new Date(0), '"1970-01-01T00:00:00.000Z"'],
  ])('%s completes the job', async (_what, handler, result) => {
    const echo = await stage.connect();
    echo.consume('q', { keepMs: 60_000 }, handler);
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(async () => (await echo.jobs.get('q', id))?.state === 'done', { what: 'the end' });
    expect((await echo.jobs.get('q', id))!.result!.toString()).toBe(result);
    expect((await echo.jobs.counts('q')).metrics.completed).toBe(1);
  });

  it('keeps the row with its result for keepMs, then the server drops it; without keepMs nothing is kept', async () => {
    const echo = await stage.connect();
    echo.consume('q', {}, (job) => job.data);
    const kept = await echo.jobs.enqueue('q', 'a', { sum: 3 }, { keepMs: 120 });
    const gone = await echo.jobs.enqueue('q', 'b');
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both' });
    expect(await echo.jobs.get('q', gone.id)).toBeUndefined();
    expect((await echo.jobs.get('q', kept.id))!.result!.toString()).toBe('{"sum":3}');
    await until(async () => (await echo.jobs.get('q', kept.id)) === undefined, { what: 'the row to expire' });
  });

  it('may have enqueued other jobs, on its own queue too', async () => {
    const echo = await stage.connect();
    const ran: number[] = [];
    echo.consume('q', { concurrency: 3 }, async (job: Job<number>) => {
      ran.push(job.data);
      if (job.data >= 50) return;
      await Promise.all([
        echo.jobs.enqueue('q', 'child', job.data * 2),
        echo.jobs.enqueue('other', 'child', job.data),
        job.data % 2 ? echo.jobs.enqueueMany('q', [{ name: 'child', data: job.data * 2 + 1 }]) : undefined,
      ]);
    });
    await echo.jobs.enqueue('q', 'root', 1);
    await until(async () => ran.length > 10 && idle(await echo.jobs.counts('q')), { what: 'the tree to be done' });
    const inner = ran.filter((n) => n < 50).length;
    expect((await echo.jobs.counts('other')).pending).toBe(inner);
    expect(new Set(ran).size).toBe(ran.length);
  });
});

describe('a handler that throws', () => {
  const stage = useStage();

  it('is tried three times by default, a second after the first failure', async () => {
    const echo = await stage.connect();
    const attempts: number[] = [];
    const consumer = echo.consume('q', {}, (job) => {
      attempts.push(job.attempt);
      throw new Error(`attempt ${job.attempt}`);
    });
    const failed = failuresOf(consumer);
    const before = await serverMs(stage.control);
    const { id } = await echo.jobs.enqueue('q', 'a');
    for (const n of [1, 2]) {
      await until(() => failed.length === n, { what: `failure ${n}` });
      const at = Number(await stage.control.zscore('emq:{q}:schedule', id));
      expect(at).toBeGreaterThanOrEqual(before + 1000 * n);
      expect(at).toBeLessThanOrEqual((await serverMs(stage.control)) + 1000 * n);
      await echo.jobs.reschedule('q', id, { delayMs: 0 });
    }
    await until(() => failed.length === 3, { what: 'the last failure' });
    expect(attempts).toEqual([1, 2, 3]);
    expect(failed.map(({ outcome }) => outcome)).toEqual(['scheduled', 'scheduled', 'dead']);
    expect(failed.map(({ error }) => (error as Error).message)).toEqual(['attempt 1', 'attempt 2', 'attempt 3']);
    const row = (await echo.jobs.get('q', id))!;
    expect(row).toMatchObject({ state: 'dead', attempts: 3 });
    expect(row.errors.map(({ attempt, text }) => [attempt, text.split('\n')[0]])).toEqual([
      [1, 'Error: attempt 1'],
      [2, 'Error: attempt 2'],
      [3, 'Error: attempt 3'],
    ]);
    expect((await echo.jobs.counts('q')).metrics).toMatchObject({ failed: 1, retried: 2, completed: 0 });
  });

  const hostile = new Error('hostile');
  Object.defineProperty(hostile, 'stack', {
    get() {
      throw new Error('no stack for you');
    },
  });
  const structured = Object.assign(new Error('structured'), { stack: [{ line: 1 }] as never });
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const thrown: [what: string, value: unknown, reads: RegExp][] = [
    ['undefined', undefined, /^threw undefined$/],
    ['null', null, /^threw null$/],
    ['an empty string', '', /^threw an empty string$/],
    ['a string', 'x', /^x$/],
    ['0', 0, /^threw 0$/],
    ['a bigint', 10n, /^threw 10$/],
    ['false', false, /^threw false$/],
    ['{}', {}, /^threw \{\}$/],
    ['an object that says something', { code: 5 }, /^threw \{"code":5\}$/],
    ['a circular object', circular, /^threw an object/],
    ['an object without a prototype', Object.create(null), /^threw \{\}$/],
    ['a symbol', Symbol('s'), /^threw Symbol\(s\)$/],
    ['a function', () => 1, /^threw /],
    ['an Error without a message', new Error(), /^Error/],
    ['an Error without a stack', Object.assign(new TypeError('bare'), { stack: undefined }), /^TypeError: bare$/],
    ['an Error whose stack is no string', structured, /^Error: structured$/],
    ['an Error whose stack throws', hostile, /hostile|object/],
    ['a revoked proxy', revoked.proxy, /./],
    ['half a surrogate pair', new Error('\ud800'), /^Error: /],
  ];

  it.each(thrown)(
    '%s has failed an attempt with a readable reason, and the queue goes on (C128)',
    async (_w, value, reads) => {
      const echo = await stage.connect();
      const consumer = echo.consume('q', { attempts: 1, concurrency: 2 }, (job) => {
        if (job.name === 'sync') throw value;
        if (job.name === 'async') return Promise.reject(value);
        return job.name;
      });
      const failed = failuresOf(consumer);
      const landed = await echo.jobs.enqueueMany('q', [{ name: 'sync' }, { name: 'async' }, { name: 'fine' }]);
      await until(async () => (await echo.jobs.counts('q')).dead === 2, { what: 'two deaths' });
      for (const { id } of landed.slice(0, 2)) {
        const row = (await echo.jobs.get('q', id))!;
        expect(row.lastError).toMatch(reads);
        expect(row.errors).toEqual([{ attempt: 1, text: row.lastError }]);
      }
      await until(() => failed.length === 2, { what: 'two events' });
      expect(failed.every(({ error }) => Object.is(error, value))).toBe(true);
      await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'the next job' });
    },
  );

  const badThenables: [string, () => unknown][] = [
    // biome-ignore-start lint/suspicious/noThenProperty: thenables are what is tested
    [
      'whose then cannot be read',
      () =>
        Object.defineProperty({}, 'then', {
          get: () => {
            throw new Error('unreadable');
          },
        }),
    ],
    [
      'whose then throws',
      () => ({
        then: () => {
          throw new Error('thrown by then');
        },
      }),
    ],
    ['that rejects', () => ({ then: (_: unknown, reject: (e: Error) => void) => reject(new Error('rejected')) })],
    [
      'that resolves and then rejects',
      () => ({
        then: (yes: (v: unknown) => void, no: (e: Error) => void) => {
          no(new Error('first word counts'));
          yes(1);
          no(new Error('late'));
        },
      }),
    ],
    // biome-ignore-end lint/suspicious/noThenProperty: see above
  ];

  it.each(badThenables)('a thenable %s is a failure, and the queue goes on', async (_what, make) => {
    const echo = await stage.connect();
    echo.consume('q', { attempts: 1 }, (job) => (job.name === 'bad' ? make() : undefined));
    await echo.jobs.enqueueMany('q', [{ name: 'bad' }, { name: 'fine' }]);
    await until(
      async () => {
        const { dead, metrics } = await echo.jobs.counts('q');
        return dead === 1 && metrics.completed === 1;
      },
      { what: 'a death and a completion' },
    );
  });

  it.each<[string, () => unknown]>([
    ['a circular object', () => circular],
    ['a BigInt', () => 1n],
    ['an object with a BigInt', () => ({ n: 1n })],
    ['a function', () => () => 1],
    ['a symbol', () => Symbol('s')],
    ['NaN', () => Number.NaN],
    ['Infinity', () => Number.POSITIVE_INFINITY],
    ['a Buffer', () => Buffer.from('a')],
  ])('or returns %s, which no result can be, fails its attempt and says why (C130)', async (_what, make) => {
    const echo = await stage.connect();
    const consumer = echo.consume('q', { attempts: 2, backoff: AT_ONCE }, async () => make());
    const failed = failuresOf(consumer);
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(() => failed.length === 2, { what: 'two failures' });
    expect(failed.map(({ outcome }) => outcome)).toEqual(['pending', 'dead']);
    expect(failed[0]!.error).toMatchObject({ name: 'EchoArgumentError' });
    expect((await echo.jobs.get('q', id))!.lastError).toMatch(/result cannot be serialised/);
  });

  it('200 times leaves a row of bounded size, with the newest reasons (C132)', async () => {
    const echo = await stage.connect();
    const stack = 'at somewhere\n'.repeat(4000);
    const consumer = echo.consume('q', { attempts: 200, backoff: AT_ONCE }, (job) => {
      throw Object.assign(new Error(), { stack: `failure ${job.attempt}\n${stack}` });
    });
    const failed = failuresOf(consumer);
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(() => failed.length === 200, { timeoutMs: 10_000, what: '200 failures' });
    const row = (await echo.jobs.get('q', id))!;
    expect(row.state).toBe('dead');
    expect(row.errors.map(({ attempt }) => attempt)).toEqual(numbers(10).map((n) => 191 + n));
    for (const { attempt, text } of row.errors) {
      expect(text.startsWith(`failure ${attempt}\n`)).toBe(true);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
    }
    expect(row.lastError).toBe(row.errors.at(-1)!.text);
    const bytes = Object.values(await stage.control.hgetallBuffer(`emq:{q}:job:${id}`)).map((value) => value.length);
    expect(bytes.reduce((sum, n) => sum + n)).toBeLessThan(11 * 4096 + 1000);
  });

  it('cuts a reason at a whole character', async () => {
    const echo = await stage.connect();
    const failed = failuresOf(
      echo.consume('q', { attempts: 1 }, () => {
        throw `${'x'.repeat(3)}${'é'.repeat(4000)}`;
      }),
    );
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(() => failed.length === 1, { what: 'the failure' });
    const text = (await echo.jobs.get('q', id))!.lastError!;
    expect(text).toMatch(/^xxxé+$/);
    expect(Buffer.byteLength(text)).toBe(4095);
  });
});

describe('Discard and Snooze', () => {
  const stage = useStage();

  it('Discard buries the job at once, whatever attempts are left', async () => {
    const echo = await stage.connect();
    const failed = failuresOf(
      echo.consume('q', { attempts: 10 }, async () => {
        throw new Discard('no such customer');
      }),
    );
    const { id } = await echo.jobs.enqueue('q', 'a', undefined, { attempts: 20 });
    await until(() => failed.length === 1, { what: 'the failure' });
    expect(failed[0]).toMatchObject({ outcome: 'dead', error: { name: 'Discard', message: 'no such customer' } });
    expect(await echo.jobs.get('q', id)).toMatchObject({ state: 'dead', attempts: 1, lastError: 'no such customer' });
  });

  it('Snooze puts the job back for its time, uncharged, and is no failure', async () => {
    const echo = await stage.connect();
    const seen: [attempts: number, attempt: number][] = [];
    const failed = failuresOf(
      echo.consume('q', {}, (job) => {
        seen.push([job.attempts, job.attempt]);
        if (seen.length === 1) throw new Snooze(60_000);
      }),
    );
    const before = await serverMs(stage.control);
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(async () => (await echo.jobs.get('q', id))?.state === 'scheduled', { what: 'the snooze' });
    const at = Number(await stage.control.zscore('emq:{q}:schedule', id));
    expect(at).toBeGreaterThanOrEqual(before + 60_000);
    expect(await echo.jobs.get('q', id)).toMatchObject({ attempts: 1, uncharged: 1, lastError: undefined });
    await echo.jobs.reschedule('q', id, { delayMs: 0 });
    await until(() => seen.length === 2, { what: 'the second run' });
    expect(seen).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(failed).toEqual([]);
  });

  it.each([Number.NaN, -1, 1.5, '5', undefined, Number.POSITIVE_INFINITY, 2 ** 53])(
    'Snooze whose time was spoiled to %p costs the jobs of the same turn nothing, and its own ends',
    async (spoiled) => {
      const echo = await stage.connect();
      const gate = latch();
      let waiting = 0;
      const ended = new Map<string, string>();
      const consumer = echo
        .consume('q', { concurrency: 5, attempts: 1 }, async (job) => {
          if (job.attempts > 1) return;
          if (++waiting === 5) gate.open();
          await gate.opened;
          if (job.name === 'spoiled') throw Object.assign(new Snooze(0), { ms: spoiled });
          throw new Snooze(0);
        })
        .on('error', () => undefined);
      consumer.on('completed', (job) => ended.set(job.name, 'completed'));
      consumer.on('failed', (job, _error, outcome) => ended.set(job.name, outcome));
      consumer.on('lease-lost', (job, why) => ended.set(job.name, why));
      await echo.jobs.enqueueMany(
        'q',
        ['a', 'b', 'spoiled', 'c', 'd'].map((name) => ({ name })),
      );
      await until(() => ended.size === 5, { what: 'all to end' });
      for (const name of ['a', 'b', 'c', 'd']) expect(ended.get(name)).toBe('completed');
      expect(ended.get('spoiled')).toBe('dead');
    },
  );

  it('20 snoozes leave the first failure the first: its backoff, its attempts (C126)', async () => {
    const echo = await stage.connect();
    const backoff: number[] = [];
    let runs = 0;
    const options = {
      attempts: 2,
      backoff: (failures: number) => {
        backoff.push(failures);
        return 0;
      },
    };
    const failed = failuresOf(
      echo.consume('q', options, () => {
        if (++runs <= 20) throw new Snooze(0);
        throw new Error('at last');
      }),
    );
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(() => failed.length === 2, { what: 'two failures' });
    expect(failed.map(({ outcome, job }) => [outcome, job.attempts, job.attempt])).toEqual([
      ['pending', 21, 1],
      ['dead', 22, 2],
    ]);
    expect(backoff).toEqual([1, 2]);
    expect(await echo.jobs.get('q', id)).toMatchObject({ attempts: 22, uncharged: 20 });
  });

  it.each([Number.NaN, -1, 1.5, '5', Number.POSITIVE_INFINITY])('Snooze(%p) fails the attempt', async (ms) => {
    const echo = await stage.connect();
    const failed = failuresOf(
      echo.consume('q', { attempts: 1 }, () => {
        throw new Snooze(ms as number);
      }),
    );
    await echo.jobs.enqueue('q', 'a');
    await until(() => failed.length === 1, { what: 'the failure' });
    expect(failed[0]!.error).toBeInstanceOf(RangeError);
  });
});

describe('a time limit', () => {
  const stage = useStage();

  it('frees the slot and fails the attempt; the late result counts for nothing', async () => {
    const echo = await stage.connect();
    const gate = latch<string>();
    const order: string[] = [];
    const consumer = echo.consume('q', { timeoutMs: 60, backoff: HELD, keepMs: 60_000 }, async (job) => {
      order.push(job.name);
      return job.name === 'slow' ? gate.opened : 'fast';
    });
    const failed = failuresOf(consumer);
    const completed: string[] = [];
    consumer.on('completed', (job) => completed.push(job.name));
    const [slow] = await echo.jobs.enqueueMany('q', [{ name: 'slow' }, { name: 'fast' }]);
    await until(() => failed.length === 1 && completed.length === 1, { what: 'the timeout, then the next job' });
    expect(order).toEqual(['slow', 'fast']);
    expect((failed[0]!.error as Error).message).toBe('the handler took longer than 60 ms');
    expect(failed[0]!.outcome).toBe('scheduled');
    expect(consumer.active).toBe(0);
    gate.open('late');
    await quiet(echo, 'q');
    const row = (await echo.jobs.get('q', slow!.id))!;
    expect(row).toMatchObject({ state: 'scheduled', attempts: 1 });
    expect(row.lastError).toMatch(/took longer than 60 ms/);
    expect(completed).toEqual(['fast']);
  });

  it('lets another attempt run while the first still does; one result stands', async () => {
    const echo = await stage.connect();
    const gates = [latch<string>(), latch<string>()];
    let runs = 0;
    const options = { timeoutMs: 50, attempts: 2, backoff: AT_ONCE, keepMs: 60_000 };
    const consumer = echo.consume('q', options, () => (runs++ === 0 ? gates[0]!.opened : 'second'));
    const completed: unknown[] = [];
    consumer.on('completed', (_job, result) => completed.push(result));
    const { id } = await echo.jobs.enqueue('q', 'a');
    await until(() => completed.length === 1, { what: 'the second attempt' });
    gates[0]!.open('first');
    await quiet(echo, 'q');
    expect(completed).toEqual(['second']);
    expect((await echo.jobs.get('q', id))!.result!.toString()).toBe('"second"');
  });

  it('is not reached by a handler that is quick enough', async () => {
    const echo = await stage.connect();
    const failed = failuresOf(echo.consume('q', { timeoutMs: 5000, concurrency: 5 }, async () => 'ok'));
    await echo.jobs.enqueueMany(
      'q',
      numbers(200).map(() => ({ name: 'a' })),
    );
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 200, { what: 'all' });
    expect(failed).toEqual([]);
  });
});

function idle(counts: { pending: number; active: number }): boolean {
  return counts.pending === 0 && counts.active === 0;
}
