import { describe, expect, it } from '@jest/globals';
import { type Codec, Discard, type Job, jsonCodec } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { numbers, useStage } from '../jobs/stage.js';
import { listenTo } from './listened.js';

describe('the events of a queue', () => {
  const stage = useStage();

  it('tell the whole life of a job, in another process than its own', async () => {
    const [worker, other] = [await stage.connect(), await stage.connect()];
    const heard = await listenTo(other, 'q');
    worker.consume('q', { attempts: 2, backoff: () => 0 }, async (job) => {
      await job.progress({ done: job.attempt });
      if (job.attempt === 1) throw new Error('boom');
      return { answer: 42 };
    });
    const { id } = await worker.jobs.enqueue('q', 'job');
    await heard.first('completed');
    const common = { queue: 'q', id };
    expect(heard.events).toEqual([
      { ...common, event: 'landed', attempts: 0, state: 'pending' },
      { ...common, event: 'active', attempts: 1 },
      { ...common, event: 'progress', attempts: 1, value: { done: 1 } },
      { ...common, event: 'retried', attempts: 1, error: expect.stringMatching(/^Error: boom\n/) },
      { ...common, event: 'active', attempts: 2 },
      { ...common, event: 'progress', attempts: 2, value: { done: 2 } },
      { ...common, event: 'completed', attempts: 2, result: { answer: 42 } },
    ]);
  });

  it('landed: says where the job stands', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    const [now, later] = await echo.jobs.enqueueMany('q', [
      { name: 'now' },
      { name: 'later', opts: { delayMs: 60_000 } },
    ]);
    const flow = await echo.flows.add({ queue: 'q', name: 'up', children: [{ queue: 'q', name: 'down' }] });
    await echo.jobs.schedule('q', 'k', { everyMs: 3_600_000 }, 'tick');
    const run = await echo.schedules.runNow('q', 'k');
    await heard.count('landed', 5);
    expect(new Map(heard.of('landed').map(({ id, state }) => [id, state]))).toEqual(
      new Map([
        [now!.id, 'pending'],
        [later!.id, 'scheduled'],
        [flow.id, 'awaiting_children'],
        [flow.children[0]!.id, 'pending'],
        [run.id!, 'pending'],
      ]),
    );
    await echo.schedules.remove('q', 'k');
  });

  it('dead: by its own failures, and with every attempt before it told as retried', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    echo.consume('q', { attempts: 3, backoff: () => 0 }, ({ name, attempt }) => {
      if (name === 'hopeless') throw new Discard('no use');
      throw new Error(`attempt ${attempt}`);
    });
    const [fails, hopeless] = await echo.jobs.enqueueMany('q', [{ name: 'fails' }, { name: 'hopeless' }]);
    await heard.count('dead', 2);
    const said = heard.of('retried', 'dead').map(({ id, event, attempts, error }) => ({
      id,
      event,
      attempts,
      error: error.split('\n', 1)[0],
    }));
    expect(said.filter(({ id }) => id === fails!.id)).toEqual([
      { id: fails!.id, event: 'retried', attempts: 1, error: 'Error: attempt 1' },
      { id: fails!.id, event: 'retried', attempts: 2, error: 'Error: attempt 2' },
      { id: fails!.id, event: 'dead', attempts: 3, error: 'Error: attempt 3' },
    ]);
    expect(said.filter(({ id }) => id === hopeless!.id)).toEqual([
      { id: hopeless!.id, event: 'dead', attempts: 1, error: 'no use' },
    ]);
  });

  it('stalled: for every counted lapse, and dead behind the last', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    const { id } = await echo.jobs.enqueue('q', 'job');
    for (let lapses = 1; lapses <= 2; lapses++) {
      expect(await echo.jobs.claim('q', { leaseMs: 1 })).toHaveLength(1);
      const { requeued, died } = await until(
        async () => {
          const reaped = await echo.jobs.reap('q', { maxStalls: 1 });
          return reaped.requeued + reaped.died > 0 ? reaped : undefined;
        },
        { what: 'the lease to lapse' },
      );
      expect([requeued, died]).toEqual(lapses === 1 ? [1, 0] : [0, 1]);
    }
    await heard.first('dead');
    expect(heard.of('stalled', 'dead')).toEqual([
      { queue: 'q', event: 'stalled', id, attempts: 1, stalls: 1 },
      { queue: 'q', event: 'stalled', id, attempts: 2, stalls: 2 },
      { queue: 'q', event: 'dead', id, attempts: 2, error: 'lease lapsed 2 times' },
    ]);
  });

  it('dead: of its child, in its own queue and in another one', async () => {
    const echo = await stage.connect();
    const [near, far] = [await listenTo(echo, 'q'), await listenTo(echo, 'up')];
    echo.consume('q', { attempts: 1 }, () => {
      throw new Error('boom');
    });
    echo.consume('up', {}, () => undefined);
    const child = { queue: 'q', name: 'down' };
    const here = await echo.flows.add({ queue: 'q', name: 'up', children: [child] });
    const there = await echo.flows.add({ queue: 'up', name: 'up', children: [child] });
    await near.count('dead', 3);
    await far.count('dead', 1);
    expect(near.of('dead').find(({ id }) => id === here.id)).toMatchObject({
      attempts: 0,
      error: expect.stringMatching(`^child q\\|${here.children[0]!.id}: Error: boom`),
    });
    expect(far.of('dead')).toMatchObject([
      { queue: 'up', id: there.id, error: expect.stringMatching(`^child q\\|${there.children[0]!.id}: Error: boom`) },
    ]);
  });

  it('cancelled: before it ran, or asked to stop; what the handler then does is told as well', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    echo.consume(
      'q',
      {},
      (job) => new Promise((_, reject) => job.signal.addEventListener('abort', () => reject(job.signal.reason))),
    );
    const later = await echo.jobs.enqueue('q', 'later', undefined, { delayMs: 60_000 });
    expect(await echo.jobs.cancel('q', later.id)).toBe('removed');
    const running = await echo.jobs.enqueue('q', 'running');
    await heard.first('active');
    expect(await echo.jobs.cancel('q', running.id)).toBe('stopping');
    await heard.first('dead');
    expect(heard.of('cancelled', 'dead').map(({ event, id, attempts }) => [event, id, attempts])).toEqual([
      ['cancelled', later.id, 0],
      ['cancelled', running.id, 1],
      ['dead', running.id, 1],
    ]);
  });

  it('come in the order of the steps, those of a step in its order, however many', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    echo.consume('q', { concurrency: 50 }, (job: Job<number>) => job.data);
    const landed = await echo.jobs.enqueueMany(
      'q',
      numbers(1_000).map((n) => ({ name: 'job', data: n })),
    );
    await heard.count('completed', 1_000);
    expect(heard.of('landed').map(({ id }) => id)).toEqual(landed.map(({ id }) => id));
    expect(heard.of('active').map(({ id }) => id)).toEqual(landed.map(({ id }) => id));
    const results = new Map(heard.of('completed').map(({ id, result }) => [id, result]));
    expect(landed.map(({ id }) => results.get(id))).toEqual(numbers(1_000));
    for (const { id } of landed) {
      expect(heard.events.filter((event) => event.id === id).map(({ event }) => event)).toEqual([
        'landed',
        'active',
        'completed',
      ]);
    }
  });

  it('carry any text, whatever its bytes, and leave out what is longer than 4,096 of them', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    const texts = ['', 'a\nlanded x 1 3 abc', 'ä€😀'.repeat(100), '\u0000\r\n ', 'ä'.repeat(2_047), 'ä'.repeat(2_048)];
    echo.consume('q', { concurrency: 10 }, (job: Job<string>) => job.data);
    await echo.jobs.enqueueMany(
      'q',
      texts.map((data) => ({ name: 'job', data })),
    );
    await heard.count('completed', texts.length);
    // As JSON the last but one has 4,096 bytes, the last 4,098.
    expect(heard.of('completed').map(({ result }) => result)).toEqual([...texts.slice(0, 5), undefined]);
  });

  it('carry bytes that are no text, and the bytes where the codec cannot read a result', async () => {
    const bytes = Buffer.from([0xff, 0x00, 0x0a, 0x20, 0xc3]);
    const unread: Codec = { ...jsonCodec, encodeResult: () => bytes, decodeResult: undefined };
    const refusing: Codec = {
      ...unread,
      decodeResult: () => {
        throw new Error('unreadable');
      },
    };
    for (const codec of [unread, refusing]) {
      const echo = await stage.connect({ codec });
      const heard = await listenTo(echo, 'q');
      const consumer = echo.consume('q', {}, () => 'anything');
      await echo.jobs.enqueue('q', 'job');
      expect(await heard.first('completed')).toMatchObject({ result: bytes });
      await consumer.close();
    }
  });

  it('say nothing of a result that is not there', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    echo.consume('q', {}, () => undefined);
    await echo.jobs.enqueue('q', 'first');
    expect(await heard.first('completed')).toHaveProperty('result', undefined);
  });
});
