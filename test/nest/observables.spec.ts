import { describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { concat, defer, EMPTY, from, map, Observable, of, Subject, throwError } from 'rxjs';
import { Consumers, Discard, Job, JobAborted, JobRef, Jobs, OnJob, Processor, Snooze } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { useApps } from './apps.js';

/** Of another copy of rxjs: no instance of ours, and yet an Observable. */
const foreign = {
  lift: () => foreign,
  subscribe(subscriber: { next(value: unknown): void; complete(): void }) {
    subscriber.next('foreign');
    subscriber.complete();
    return { unsubscribe() {} };
  },
};

const enhanced: NestInterceptor = { intercept: (_: ExecutionContext, next: CallHandler) => next.handle() };

/** Handlers by name, plain ones and, in another queue, such as have a guard or an interceptor. */
const handlers: Record<string, (job: Job) => unknown> = {
  values: () => of(1, 2, 3),
  later: () => defer(async () => 'later'),
  list: () => of([1, 2]),
  empty: () => EMPTY,
  foreign: () => foreign,
  promised: async () => from(['promised']),
};

const ending = { attempts: 1, keepMs: 60_000, drainMs: 0 };

let running: (job: Job) => unknown = () => undefined;

@Processor('plain', ending)
class Plain {
  @OnJob()
  run(job: Job): unknown {
    return (handlers[job.name] ?? running)(job);
  }
}

@Processor('guarded', ending)
@UseGuards({ canActivate: () => true })
class Guarded extends Plain {
  @OnJob()
  override run(@JobRef() job: Job): unknown {
    return super.run(job);
  }
}

@Processor('intercepted', ending)
@UseInterceptors(enhanced)
class Intercepted extends Guarded {
  @OnJob()
  override run(@JobRef() job: Job): unknown {
    return super.run(job);
  }
}

describe.each(['plain', 'guarded', 'intercepted'])('an Observable that a handler returns (%s)', (queue) => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const boot = async () => {
    const app = await apps.boot({ providers: [Plain, Guarded, Intercepted] });
    return { app, jobs: app.get(Jobs), consumer: app.get(Consumers).of(queue) };
  };
  const ended = async (jobs: Jobs, id: string) =>
    until(
      async () => {
        const job = await jobs.get(queue, id);
        return job && ['done', 'dead', 'scheduled'].includes(job.state) ? job : undefined;
      },
      { what: 'the job to end' },
    );

  it.each([
    ['values', 3],
    ['later', 'later'],
    ['list', [1, 2]],
    ['empty', null],
    ['foreign', 'foreign'],
    ['promised', 'promised'],
  ])('is subscribed, and its last value is the result: %s', async (name, value) => {
    const { jobs } = await boot();
    const { id } = await jobs.enqueue(queue, name);
    const job = await ended(jobs, id);
    expect([job.state, JSON.parse(String(job.result))]).toEqual(['done', value]);
  });

  it('is done when it completes, not before', async () => {
    const { jobs } = await boot();
    const subject = new Subject<string>();
    running = () => subject;
    const { id } = await jobs.enqueue(queue, 'x');
    await until(() => subject.observed, { what: 'the subscription' });
    subject.next('first');
    subject.next('last');
    expect((await jobs.get(queue, id))?.state).toBe('active');
    subject.complete();
    expect(String((await ended(jobs, id)).result)).toBe('"last"');
  });

  it('ends as what it errors with says: a failure, a burial, a snooze', async () => {
    const { jobs } = await boot();
    running = () =>
      concat(
        of(1),
        throwError(() => new Error('no luck')),
      );
    expect((await ended(jobs, (await jobs.enqueue(queue, 'x')).id)).lastError).toContain('Error: no luck');
    running = () => throwError(() => new Discard('not for us'));
    expect((await ended(jobs, (await jobs.enqueue(queue, 'x')).id)).lastError).toBe('not for us');
    running = () => throwError(() => new Snooze(60_000));
    expect((await ended(jobs, (await jobs.enqueue(queue, 'x')).id)).uncharged).toBe(1);
  });

  it('is unsubscribed when the job is cancelled, and its attempt ends with why', async () => {
    const { jobs, consumer } = await boot();
    let subscriptions = 0;
    running = () =>
      new Observable(() => {
        subscriptions += 1;
        return () => {
          subscriptions -= 1;
        };
      });
    const failures: unknown[] = [];
    consumer.on('failed', (_job, error) => failures.push(error));
    const { id } = await jobs.enqueue(queue, 'x');
    await until(() => subscriptions === 1, { what: 'the subscription' });
    await jobs.cancel(queue, id);
    await until(() => failures.length === 1, { what: 'the end' });
    expect(subscriptions).toBe(0);
    expect(failures[0]).toBeInstanceOf(JobAborted);
    expect((failures[0] as JobAborted).why).toBe('cancelled');
  });

  it('is not subscribed at all when its job was given up before it was returned', async () => {
    const { jobs, consumer } = await boot();
    let subscribed = false;
    running = async (job) => {
      await jobs.cancel(queue, job.id);
      await until(() => job.signal.aborted, { what: 'the cancel' });
      return new Observable(() => {
        subscribed = true;
      });
    };
    const failures: unknown[] = [];
    consumer.on('failed', (_job, error) => failures.push(error));
    await jobs.enqueue(queue, 'x');
    await until(() => failures.length === 1, { what: 'the end' });
    expect([subscribed, (failures[0] as JobAborted).why]).toEqual([false, 'cancelled']);
  });

  it('is unsubscribed at the time limit', async () => {
    const { jobs } = await boot();
    let subscribed = true;
    running = () =>
      new Observable(() => () => {
        subscribed = false;
      });
    const { id } = await jobs.enqueue(queue, 'x', undefined, { timeoutMs: 20 });
    const job = await ended(jobs, id);
    expect(job.lastError).toContain('the handler took longer than 20 ms');
    expect(subscribed).toBe(false);
  });

  it('is what a signal is made for; other handlers get none unasked', async () => {
    const { jobs } = await boot();
    const made = (job: Job) => (job as unknown as { controller: unknown }).controller !== undefined;
    const seen: Job[] = [];
    running = (job) => {
      seen.push(job);
      return job.data === 'observable' ? of(1).pipe(map(() => made(job))) : { like: 'an object' };
    };
    const [observable, plain] = [await jobs.enqueue(queue, 'x', 'observable'), await jobs.enqueue(queue, 'x', 'plain')];
    expect(String((await ended(jobs, observable.id)).result)).toBe('true');
    await ended(jobs, plain.id);
    expect(seen.map(made)).toEqual([true, false]);
  });

  it('is dropped at shutdown when the drain is over', async () => {
    const { app, jobs } = await boot();
    let subscribed = false;
    running = () =>
      new Observable(() => {
        subscribed = true;
        return () => {
          subscribed = false;
        };
      });
    await jobs.enqueue(queue, 'x');
    await until(() => subscribed, { what: 'the subscription' });
    await app.close();
    expect(subscribed).toBe(false);
  });
});
