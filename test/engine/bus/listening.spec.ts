import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { defineQueue, type QueueEvent } from '../../../lib/core.js';
import { describeWithProcess } from '../../support/availability.js';
import { until } from '../../support/until.js';
import { fastClock, unlessLate } from '../fast-clock.js';
import { latch, numbers, quiet, useStage } from '../jobs/stage.js';
import { listenTo } from './listened.js';

/** Somebody listens to the queue, and has said so: on two connections, each of which may be back first. */
async function heardAgain(control: Redis): Promise<void> {
  const both = async () =>
    (await control.exists('emq:{q}:heard')) === 1 && (await control.pubsub('NUMSUB', 'emq:{q}:events'))[1] === 1;
  await until(() => both().catch(() => false), { what: 'it to be listened to again' });
}

describe('who listens', () => {
  const stage = useStage();

  it('hears of his queues and of no other', async () => {
    const echo = await stage.connect();
    const Mail = defineQueue<{ welcome: undefined }>('mail');
    const heard: QueueEvent[] = [];
    await echo.bus.listen(Mail, (event) => heard.push(event)).ready;
    const other = await listenTo(echo, 'q');
    await echo.jobs.enqueue('q', 'job');
    await echo.jobs.enqueue(Mail, 'welcome');
    await until(() => heard.length > 0, { what: 'the event' });
    expect(heard.map(({ queue, event }) => [queue, event])).toEqual([['mail', 'landed']]);
    expect(other.events.map(({ queue }) => queue)).toEqual(['q']);
  });

  it('hears all from when he is ready, and nothing from when he has closed', async () => {
    const echo = await stage.connect();
    for (let round = 0; round < 20; round++) {
      const heard = await listenTo(echo, 'q');
      const { id } = await echo.jobs.enqueue('q', 'job');
      expect(await heard.first('landed')).toMatchObject({ id });
      heard.close();
      await echo.jobs.remove('q', id);
      await echo.jobs.enqueue('q', 'unheard');
      await quiet(echo, 'q', 2);
      expect(heard.events).toHaveLength(1);
    }
  });

  it('may close and listen again in one turn, and is ready only for what is asked for last', async () => {
    const echo = await stage.connect();
    const listeners = numbers(10).map(() => {
      const events: QueueEvent[] = [];
      const listening = echo.bus.listen('q', (event) => events.push(event));
      return { events, ...listening };
    });
    for (const { close } of listeners) close();
    await Promise.all(listeners.map(({ ready }) => ready));
    const heard = await listenTo(echo, 'q');
    await echo.jobs.enqueue('q', 'job');
    await heard.first('landed');
    expect(listeners.flatMap(({ events }) => events)).toEqual([]);
  });

  it('may close himself, or another, from within: neither is called any more', async () => {
    const echo = await stage.connect();
    const calls: string[] = [];
    const first = echo.bus.listen('q', () => {
      calls.push('first');
      first.close();
      second.close();
    });
    const second = echo.bus.listen('q', () => calls.push('second'));
    const third = await listenTo(echo, 'q');
    await first.ready;
    await echo.jobs.enqueueMany('q', [{ name: 'a' }, { name: 'b' }]);
    await third.count('landed', 2);
    expect(calls).toEqual(['first']);
  });

  it('throws, rejects or is slow without harm to anybody; onError is told', async () => {
    const told: Error[] = [];
    const echo = await stage.connect({ onError: (error) => told.push(error) });
    const gate = latch();
    let slow = 0;
    echo.bus.listen('q', ({ event }) => {
      throw new Error(`cannot bear ${event}`);
    });
    echo.bus.listen('q', async ({ event }) => {
      await null;
      throw new Error(`thought about ${event}`);
    });
    const asked: string[] = []; // query builders do nothing until they are
    echo.bus.listen('q', ({ event }) => {
      const then = (done: (value: unknown) => void) => done(asked.push(event));
      return { then };
    });
    echo.bus.listen('q', async () => {
      slow += 1;
      await gate.opened;
    });
    const heard = await listenTo(echo, 'q');
    echo.consume('q', {}, () => 'done');
    await echo.jobs.enqueue('q', 'job');
    await heard.first('completed');
    await until(() => told.length === 6, { what: 'all complaints' });
    expect(slow).toBe(3);
    expect(asked).toEqual(['landed', 'active', 'completed']);
    expect(told.map(({ message }) => message.split('\n', 1)[0]).sort()).toEqual(
      ['active', 'completed', 'landed'].flatMap((event) => [
        `a listener to the events of queue 'q' threw on '${event}': Error: cannot bear ${event}`,
        `a listener to the events of queue 'q' threw on '${event}': Error: thought about ${event}`,
      ]),
    );
    gate.open();
  });

  it('is called in the async context of the engine, not in that of whoever listened or enqueued', async () => {
    const echo = await stage.connect();
    const store = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    await store.run('listening', () => echo.bus.listen('q', () => seen.push(store.getStore())).ready);
    await store.run('enqueueing', () => echo.jobs.enqueue('q', 'job'));
    await until(() => seen.length > 0, { what: 'the event' });
    expect(seen).toEqual([undefined]);
  });

  it('is refused what is no queue and no function, and everything once the engine is closed', async () => {
    const echo = await stage.connect();
    expect(() => echo.bus.listen('a{b}', () => undefined)).toThrow(/brace/);
    expect(() => echo.bus.listen(undefined as never, () => undefined)).toThrow(/queue name/);
    expect(() => echo.bus.listen('q', 'listener' as never)).toThrow(/a listener must be a function/);
    await echo.close();
    expect(() => echo.bus.listen('q', () => undefined)).toThrow(expect.objectContaining({ code: 'ECHO_STATE' }));
  });

  it('need not have waited for the connection, and holds up no close', async () => {
    const { EchoMq } = await import('../../../lib/core.js');
    const echo = EchoMq.create({ connection: stage.server.url });
    const heard = await listenTo(echo, 'q');
    await echo.jobs.enqueue('q', 'job');
    await heard.first('landed');
    await echo.close();
    const away = EchoMq.create({ connection: 'redis://127.0.0.1:1', onBoot: 'wait', onError: () => undefined });
    const { ready } = away.bus.listen('q', () => undefined);
    await away.close();
    await ready;
  });
});

describeWithProcess('listening to a server that comes back', () => {
  const stage = useStage();

  it('goes on after a restart without its data', async () => {
    const echo = await stage.connect({ onError: () => undefined });
    const heard = await listenTo(echo, 'q');
    await echo.jobs.enqueue('q', 'before');
    await heard.count('landed', 1);
    await stage.server.process.kill();
    await stage.server.process.restart();
    await heardAgain(stage.control);
    const { id } = await until(() => echo.jobs.enqueue('q', 'after').catch(() => undefined), { what: 'the server' });
    await until(() => heard.of('landed').some((event) => event.id === id), { what: 'its event' });
  });
});

describe('listening', () => {
  const stage = useStage();

  it('goes on after its connection was killed, again and again', async () => {
    const echo = await stage.connect({ onError: () => undefined });
    const producer = await stage.connect();
    const heard = await listenTo(echo, 'q');
    for (let round = 1; round <= 5; round++) {
      const connected = Number(/total_connections_received:(\d+)/.exec(await stage.control.info('stats'))![1]);
      await stage.control.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await until(async () => (await stage.control.pubsub('NUMSUB', 'emq:{q}:events'))[1] === 1, {
        what: 'the new subscription',
      });
      expect(Number(/total_connections_received:(\d+)/.exec(await stage.control.info('stats'))![1])).toBeGreaterThan(
        connected,
      );
      const { id } = await producer.jobs.enqueue('q', `round ${round}`);
      await until(() => heard.of('landed').some((event) => event.id === id), { what: 'its event' });
    }
    expect(heard.of('landed')).toHaveLength(5);
  });

  it('goes on after all connections were killed and the server has forgotten that anybody listens', async () => {
    const echo = await stage.connect({ onError: () => undefined });
    const producer = await stage.connect({ onError: () => undefined });
    const heard = await listenTo(echo, 'q');
    await stage.control.del('emq:{q}:heard');
    await stage.control.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await stage.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await heardAgain(stage.control);
    await producer.jobs.enqueue('q', 'job');
    await heard.first('landed');
  });

  it('goes on after FLUSHALL, once it is said again', async () => {
    const onError = unlessLate((error) => stage.faults.push(error));
    const echo = await stage.connect({ clock: fastClock(20), requestTimeoutMs: 60_000, onError });
    const producer = await stage.connect();
    const heard = await listenTo(echo, 'q');
    await producer.jobs.enqueue('q', 'before');
    await heard.count('landed', 1);
    await stage.server.flush();
    await until(async () => (await stage.control.exists('emq:{q}:heard')) === 1, { what: 'it to be said again' });
    await producer.jobs.enqueue('q', 'after');
    await heard.count('landed', 2);
  });

  it('is said again until it is taken, and told', async () => {
    const told: Error[] = [];
    const echo = await stage.connect({
      onError: (error) => told.push(error),
      clock: fastClock(20),
      requestTimeoutMs: 60_000,
    });
    await stage.control.config('SET', 'maxmemory', '1');
    const { ready } = echo.bus.listen('q', () => undefined);
    try {
      await until(() => told.length > 0, { what: 'the complaint' });
      expect(told[0]).toMatchObject({ code: 'OOM', retryable: true });
    } finally {
      await stage.control.config('SET', 'maxmemory', '0');
    }
    await ready;
    expect(await stage.control.exists('emq:{q}:heard')).toBe(1);
  });

  it('does not stand in the way of a queue whose messages make no sense', async () => {
    const echo = await stage.connect();
    const heard = await listenTo(echo, 'q');
    for (const nonsense of ['', 'x', 'landed a 0', 'landed a 0 9 short', 'later a 0 0 ', 'landed a b c d', '\n\n']) {
      await stage.control.publish('emq:{q}:events', nonsense);
    }
    const { id } = await echo.jobs.enqueue('q', 'job');
    await heard.first('landed');
    expect(heard.events.map((event) => event.id)).toEqual([id]);
  });
});
