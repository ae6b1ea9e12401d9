import { describe, expect, it } from '@jest/globals';
import type { EchoMq } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { fastClock, unlessLate } from '../fast-clock.js';
import { numbers, quiet, useStage } from '../jobs/stage.js';
import { listenTo } from './listened.js';

const HEARD = 'emq:{q}:heard';

describe('what listening costs', () => {
  const stage = useStage();

  /** How often each command was carried out since the last reset, by clients and inside scripts. */
  const called = async (): Promise<Map<string, number>> => {
    const stats = await stage.control.info('commandstats');
    return new Map([...stats.matchAll(/^cmdstat_([a-z|]+):calls=(\d+)/gm)].map(([, name, n]) => [name!, Number(n)]));
  };

  /** A job's whole life, by hand: the same calls each time. */
  const live = async (echo: EchoMq): Promise<void> => {
    const { id } = await echo.jobs.enqueue('q', 'job', { some: 'data' });
    const [claimed] = await echo.jobs.claim('q', { leaseMs: 60_000 });
    expect(claimed!.id).toBe(id);
    await echo.jobs.complete('q', id, claimed!.token, { result: 1 });
  };

  /** What the server carries out for one such job; what it does for the first is left out: scripts are loaded, ids leased. */
  const costOfOne = async (echo: EchoMq): Promise<Map<string, number>> => {
    await live(echo);
    await stage.control.config('RESETSTAT');
    await live(echo);
    const cost = await called();
    for (const ours of ['config|resetstat', 'info']) cost.delete(ours);
    return cost;
  };

  it('is nothing while nobody listens: no command of a client, no message, no key', async () => {
    const echo = await stage.connect();
    await live(echo);
    const ear = await stage.overhear();
    expect((await costOfOne(echo)).get('publish')).toBeUndefined();
    const commands = (await ear.said()).map(([command]) => command!.toLowerCase());
    // The three steps, and the look at what the last of them may owe to other queues.
    const ofOne = ['evalsha', 'evalsha', 'evalsha', 'xrange'];
    expect(commands.filter((command) => !['config', 'info'].includes(command))).toEqual([...ofOne, ...ofOne]);
    expect((await stage.control.keys('emq:{q}:*')).sort()).toEqual([
      'emq:{q}:metrics:completed',
      'emq:{q}:metrics:enqueued',
    ]);
  });

  it('is nothing to a consumer that reports nothing: it does not listen to the events of its own queue', async () => {
    const echo = await stage.connect();
    let ran = 0;
    echo.consume('q', { concurrency: 10 }, () => {
      ran += 1;
    });
    await echo.jobs.enqueueMany(
      'q',
      numbers(100).map(() => ({ name: 'job' })),
    );
    await until(() => ran === 100, { what: 'all' });
    await quiet(echo, 'q');
    expect(await stage.control.pubsub('CHANNELS', 'emq:{q}:events')).toEqual([]);
    expect(await stage.control.exists(HEARD)).toBe(0);
  });

  it('is one message a step while somebody does, on one subscription however many listen', async () => {
    const echo = await stage.connect();
    const all = await Promise.all(numbers(5).map(() => listenTo(echo, 'q')));
    expect(await stage.control.pubsub('NUMSUB', 'emq:{q}:events')).toEqual(['emq:{q}:events', 1]);
    const cost = await costOfOne(echo);
    expect(cost.get('publish')).toBe(3);
    for (const heard of all) await heard.count('completed', 2);
  });

  it('is nothing again once nobody has listened for as long as the server believes it', async () => {
    const echo = await stage.connect();
    const [first, second] = [await listenTo(echo, 'q'), await listenTo(echo, 'q')];
    expect(await stage.control.pttl(HEARD)).toBeGreaterThan(20_000);
    expect(await stage.control.pttl(HEARD)).toBeLessThanOrEqual(30_000);
    first.close();
    first.close();
    await live(echo);
    await second.first('completed');
    expect(first.events).toEqual([]);
    second.close();
    await until(async () => (await stage.control.pubsub('CHANNELS', 'emq:{q}:events')).length === 0, {
      what: 'the subscription to end',
    });
    await stage.control.del(HEARD); // it expires
    expect((await costOfOne(echo)).get('publish')).toBeUndefined();
    expect(await stage.control.exists(HEARD)).toBe(0);
  });

  it('is one command for each queue and ten seconds while nothing happens', async () => {
    const onError = unlessLate((error) => stage.faults.push(error));
    const echo = await stage.connect({ clock: fastClock(20), requestTimeoutMs: 60_000, onError });
    for (const queue of ['q', 'r']) await echo.bus.listen(queue, () => undefined).ready;
    await stage.control.config('RESETSTAT');
    const said = async () => (await called()).get('set') ?? 0;
    for (const times of [2, 4]) {
      expect(await stage.control.del(HEARD, 'emq:{r}:heard')).toBe(2);
      await until(async () => (await stage.control.exists(HEARD, 'emq:{r}:heard')) === 2, {
        what: 'it to be said again',
      });
      expect(await said()).toBe(times);
      expect(await stage.control.pttl(HEARD)).toBeGreaterThan(25_000);
    }
  });
});
