import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { batched, EchoMq, Snooze } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { Gates } from '../gates.js';
import { hungry, latch, numbers, useStage } from './stage.js';

describe('the async context of whoever enqueues', () => {
  const stage = useStage();
  const requests = new AsyncLocalStorage<string>();

  it('is not that of the handler, nor of a listener, when an idle consumer of the same process takes the job', async () => {
    const echo = await stage.connect();
    const seen: string[] = [];
    const note = (what: string) => seen.push(`${what}: ${requests.getStore()}`);
    const consumer = echo.consume('q', {}, async () => {
      note('at once');
      await echo.jobs.counts('q');
      note('later');
    });
    consumer.on('completed', () => note('completed'));
    for (let round = 1; round <= 3; round++) {
      await hungry(stage.control, 'q');
      seen.length = 0;
      await requests.run(`request ${round}`, () => echo.jobs.enqueue('q', 'a'));
      await until(() => seen.length === 3, { what: 'the completion' });
      expect(seen).toEqual(['at once: undefined', 'later: undefined', 'completed: undefined']);
    }
  });

  it('is not that of a listener when the enqueue sends what a handler has settled meanwhile', async () => {
    const echo = await stage.connect();
    const seen: unknown[] = [];
    const gates = new Gates();
    const consumer = echo.consume('q', { concurrency: 2 }, gates.handler);
    consumer.on('completed', () => seen.push(requests.getStore()));
    await hungry(stage.control, 'q');
    await echo.jobs.enqueue('q', 'a');
    const first = await gates.run(1);
    const second = requests.run('request', () => echo.jobs.enqueue('q', 'b'));
    first.end(); // behind the enqueue, in the same turn: sent with it
    await second;
    (await gates.run(2)).end();
    await until(() => seen.length === 2, { what: 'both completions' });
    expect(seen).toEqual([undefined, undefined]);
  });

  it('is not that of the handlers of a burst, first runs, failures, retries and snoozes alike', async () => {
    const echo = await stage.connect();
    const seen = new Set<unknown>();
    const ended: string[] = [];
    const consumer = echo.consume('q', { concurrency: 3, backoff: { type: 'fixed', delayMs: 1 } }, (job) => {
      seen.add(requests.getStore());
      if (job.attempts === 1 && job.name.endsWith('3')) throw new Snooze(1);
      if (job.attempts === 1 && job.name.endsWith('5')) throw new Error('once');
    });
    consumer.on('failed', () => seen.add(requests.getStore()));
    consumer.on('completed', (job) => {
      seen.add(requests.getStore());
      ended.push(job.name);
    });
    await hungry(stage.control, 'q');
    await Promise.all(
      numbers(50).map((n) => requests.run(`request ${n}`, () => echo.jobs.enqueue('q', `job ${n}`, undefined))),
    );
    await until(() => ended.length === 50, { what: 'all' });
    expect([...seen]).toEqual([undefined]);
  });

  it('is not that of anything that hears of answers, when the connection was first made in it', async () => {
    const seen: string[] = [];
    const note = (what: string) => seen.push(`${what}: ${requests.getStore()}`);
    const echo = EchoMq.create({
      connection: stage.server.url,
      onError: () => note('error'),
      onReconnected: () => note('reconnected'),
    });
    try {
      await requests.run('request', () => echo.jobs.enqueue('q', 'a'));
      const consumer = requests.run('start', () =>
        echo.consume('q', { concurrency: 2 }, (job) => note(`handler of ${job.name}`)),
      );
      consumer.on('completed', () => note('completed'));
      await until(() => seen.length === 2, { what: 'the first job' });
      await hungry(stage.control, 'q');
      await requests.run('another request', () => echo.jobs.enqueue('q', 'b'));
      await until(() => seen.length === 4, { what: 'the second job' });
      await hungry(stage.control, 'q');
      await stage.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await until(() => seen.length === 6, { what: 'the loss and its end' });
      expect(seen).toEqual([
        'handler of a: undefined',
        'completed: undefined',
        'handler of b: undefined',
        'completed: undefined',
        'error: undefined',
        'reconnected: undefined',
      ]);
    } finally {
      await echo.close();
    }
  });

  it('is not seen by the handlers of another queue of the process, when their timers are due together', async () => {
    const echo = await stage.connect();
    const seen: unknown[] = [];
    const gate = latch();
    echo.consume('limited', { timeoutMs: 20, attempts: 1 }, (job) => {
      job.signal.addEventListener('abort', () => seen.push(requests.getStore()));
      return gate.opened;
    });
    echo.consume('q', {}, (job) => requests.run(`job ${job.name}`, () => echo.jobs.enqueue('limited', 'a')));
    await hungry(stage.control, 'q');
    await hungry(stage.control, 'limited');
    await requests.run('request', () => echo.jobs.enqueue('q', 'a'));
    await until(() => seen.length === 1, { what: 'the time limit' });
    gate.open();
    expect(seen).toEqual([undefined]);
  });
});

describe('a store that somebody enters', () => {
  const stage = useStage();
  const tenants = new AsyncLocalStorage<string>();

  it('in a handler is not seen by the jobs that start next, nor later, nor by listeners', async () => {
    const echo = await stage.connect();
    const seen: string[] = [];
    const enter = (what: string) => {
      seen.push(`${what}: ${tenants.getStore()}`);
      tenants.enterWith(what);
    };
    const consumer = echo.consume('q', { concurrency: 4, attempts: 1 }, async (job) => {
      enter(job.name);
      await echo.jobs.counts('q');
      expect(tenants.getStore()).toBe(job.name); // it holds in the handler that has entered it
      if (job.name === 'c') throw new Error('on purpose');
    });
    consumer.on('completed', () => enter('completed'));
    consumer.on('completed', () => enter('completed, a second listener'));
    consumer.on('failed', () => enter('failed'));
    const events = echo.bus.listen('q', ({ event }) => enter(`event ${event}`));
    await events.ready;
    for (let round = 1; round <= 2; round++) {
      await hungry(stage.control, 'q');
      seen.length = 0;
      await echo.jobs.enqueueMany('q', [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
      await until(() => seen.filter((line) => /^event (completed|dead)/.test(line)).length === 3, { what: 'the ends' });
      await until(() => seen.some((line) => line.startsWith('failed')), { what: 'the failure' });
      expect(seen.filter((line) => !line.endsWith(': undefined'))).toEqual([]);
      expect(seen).toEqual(expect.arrayContaining(['a: undefined', 'completed, a second listener: undefined']));
    }
  });

  it('in a handler of batches, or where a signal fires, is not seen by others either', async () => {
    const echo = await stage.connect();
    const seen: string[] = [];
    const enter = (what: string) => {
      seen.push(`${what}: ${tenants.getStore()}`);
      tenants.enterWith(what);
    };
    echo.consume(
      'q',
      { concurrency: 4 },
      batched({ size: 2, waitMs: 1 }, (jobs) => {
        enter(`batch of ${jobs.length}`);
      }),
    );
    echo.consume('limited', { concurrency: 2, timeoutMs: 20, attempts: 1 }, (job) => {
      job.signal.addEventListener('abort', () => enter(job.name));
      return new Promise(() => undefined);
    });
    await hungry(stage.control, 'q');
    await hungry(stage.control, 'limited');
    await echo.jobs.enqueueMany('q', [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    await echo.jobs.enqueueMany('limited', [{ name: 'x' }, { name: 'y' }]);
    await until(() => seen.length === 4, { what: 'all' });
    expect(seen.sort()).toEqual(['batch of 1: undefined', 'batch of 2: undefined', 'x: undefined', 'y: undefined']);
  });
});
