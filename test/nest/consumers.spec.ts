import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Consumers, EchoStateError, type Job, Jobs, OnJob, Processor } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { useApps } from './apps.js';

@Processor('sums', { attempts: 2, backoff: { type: 'fixed', delayMs: 0 } })
class Sums {
  @OnJob('add')
  add({ data }: Job<number[]>): number {
    return data.reduce((sum, one) => sum + one, 0);
  }

  @OnJob('fail')
  fail(): never {
    throw new Error('no sum');
  }
}

@Injectable()
class Listener {
  readonly heard: string[] = [];

  constructor(readonly consumers: Consumers) {
    consumers
      .on('sums', 'completed', (job, result) => this.heard.push(`${job.name} gave ${result}`))
      .on('sums', 'failed', (job, error, outcome) =>
        this.heard.push(`${job.name} ${outcome}: ${(error as Error).message}`),
      );
  }
}

describe('Consumers', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('lets a constructor listen before the first job runs', async () => {
    const producer = await apps.boot({}, { consume: false });
    await producer.get(Jobs).enqueueMany('sums', [{ name: 'add', data: [1, 2] }, { name: 'fail' }]);
    const app = await apps.boot({ providers: [Sums, Listener] });
    const { heard } = app.get(Listener);
    await until(() => heard.length === 3, { what: 'three events' });
    expect([...heard].sort()).toEqual(['add gave 3', 'fail dead: no sum', 'fail pending: no sum']);
  });

  it('hears nothing in a process that only enqueues', async () => {
    const app = await apps.boot({ providers: [Sums, Listener] }, { consume: false });
    await app.get(Jobs).enqueue('sums', 'add', [1]);
    expect(app.get(Consumers).queues).toEqual([]);
    expect(() => app.get(Consumers).of('sums')).toThrow(EchoStateError);
  });

  it("gives a queue's consumer once the app has started, to pause it and to listen", async () => {
    let early: unknown;
    @Injectable()
    class TooEarly {
      constructor(consumers: Consumers) {
        try {
          consumers.of('sums');
        } catch (error) {
          early = error;
        }
      }
    }
    const app = await apps.boot({ providers: [Sums, TooEarly] });
    expect(early).toBeInstanceOf(EchoStateError);
    const consumers = app.get(Consumers);
    expect(consumers.queues).toEqual(['sums']);
    const results: unknown[] = [];
    consumers.on('sums', 'completed', (_, result) => results.push(result));
    consumers.of('sums').pause();
    await app.get(Jobs).enqueue('sums', 'add', [1, 1]);
    expect(await app.get(Jobs).counts('sums')).toMatchObject({ pending: 1 });
    consumers.of('sums').resume();
    await until(() => results.length === 1, { what: 'the result' });
    expect(results).toEqual([2]);
    expect(() => consumers.of('other')).toThrow("no @Processor serves queue 'other'. Served are: sums");
    expect(() => consumers.on('other', 'failed', () => {})).toThrow(EchoStateError);
  });
});
