import { describe, expect, it } from '@jest/globals';
import { Injectable, Scope, type Type, UseFilters, UseGuards, UseInterceptors, UsePipes } from '@nestjs/common';
import { of } from 'rxjs';
import { z } from 'zod';
import {
  Consumers,
  Discard,
  defineQueue,
  EchoConfigError,
  EchoRegistrationError,
  type Job,
  JobData,
  Jobs,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, useApps } from './apps.js';
import { useKits } from './testing/kits.js';

/** Longer than any test: a batch that is to be called by its size, or at the close. */
const NEVER_MS = 3_600_000;

let batches: string[][] = [];
const note = (jobs: readonly Job[]) => void batches.push(jobs.map(({ name, data }) => `${name} ${data}`));

@Processor('rows', { concurrency: 3, attempts: 1, keepMs: 60_000 })
class Rows {
  private readonly greeting = 'did';

  @OnJob('row', { batch: { size: 3, waitMs: NEVER_MS } })
  rows(jobs: Job<string>[]): Promise<string>[] {
    note(jobs);
    return jobs.map(async ({ data }) => {
      if (data === 'bad') throw new Error('not this one');
      return `${this.greeting} ${data}`;
    });
  }

  @OnJob('single')
  single(job: Job<string>): string {
    note([job]);
    return 'alone';
  }

  @OnJob('stream', { batch: { size: 2, waitMs: 5 } })
  stream(jobs: Job[]): unknown {
    return of(
      [],
      jobs.map(({ data }) => of(0, data)),
    );
  }
}

describe('a method that gets jobs together', () => {
  const server = useServer();
  const apps = useApps(server);
  const kits = useKits(server);
  guardLeaks();

  const boot = async (...providers: Type[]) => {
    batches = [];
    const app = await apps.boot({ providers });
    return { app, jobs: app.get(Jobs) };
  };
  const rowsOf = (...rows: string[]) => rows.map((data) => ({ name: 'row', data }));

  it('is called with an array, on its instance; each job has its own result, or its own failure', async () => {
    const { jobs } = await boot(Rows);
    const landed = await jobs.enqueueMany('rows', rowsOf('a', 'bad', 'c'));
    const ends = await Promise.allSettled(landed.map(({ id }) => jobs.wait('rows', id)));
    expect(ends).toMatchObject([
      { status: 'fulfilled', value: 'did a' },
      { status: 'rejected', reason: { code: 'ECHO_JOB_DEAD', message: expect.stringContaining('not this one') } },
      { status: 'fulfilled', value: 'did c' },
    ]);
    expect(batches).toEqual([['row a', 'row bad', 'row c']]);
  });

  it('stands beside methods of the same class that get them one by one', async () => {
    const { jobs } = await boot(Rows);
    await jobs.enqueueMany('rows', [...rowsOf('a', 'b'), { name: 'single', data: 1 }, ...rowsOf('c')]);
    await until(async () => (await jobs.counts('rows')).metrics.completed === 4, { what: 'all' });
    expect(batches).toEqual([['single 1'], ['row a', 'row b', 'row c']]);
  });

  it('may answer an Observable, and Observables in its array: the last value counts', async () => {
    const { jobs } = await boot(Rows);
    const results = await Promise.all([1, 2].map((data) => jobs.enqueueAndWait('rows', 'stream', data)));
    expect(results).toEqual([1, 2]);
  });

  it('gets what has gathered when the app closes', async () => {
    const { app, jobs } = await boot(Rows);
    await jobs.enqueueMany('rows', rowsOf('a', 'b'));
    await until(() => app.get(Consumers).of('rows').active === 2, { what: 'two that gather' });
    await app.close();
    expect(batches).toEqual([['row a', 'row b']]);
    const next = await apps.boot({}, { consume: false });
    expect(await next.get(Jobs).counts('rows')).toMatchObject({ active: 0, metrics: { completed: 2 } });
  });

  it('may have a schedule too', async () => {
    @Processor('ticks', { concurrency: 2 })
    class Ticks {
      @OnJob('tick', { everyMs: 50, data: 'tock', key: 'clock', batch: { size: 2, waitMs: NEVER_MS } })
      ticks(jobs: Job<string>[]): void {
        note(jobs);
        expect(new Set(jobs.map(({ schedule }) => schedule))).toEqual(new Set(['clock']));
      }
    }
    const { jobs } = await boot(Ticks);
    await until(async () => (await jobs.counts('ticks')).metrics.completed >= 2, { what: 'two ticks' });
    expect(batches[0]).toEqual(['tick tock', 'tick tock']);
  });

  it('gets only jobs whose data fits, as its schema puts it out; the others are buried before they join', async () => {
    const Typed = defineQueue('typed', { row: z.object({ n: z.coerce.number<string>() }) });

    @Processor(Typed, { concurrency: 2 })
    class TypedRows {
      @OnJob(Typed, 'row', { batch: { size: 2, waitMs: NEVER_MS } })
      rows(jobs: Job<{ n: number }>[]): void {
        batches.push(jobs.map(({ data }) => `${typeof data.n} ${data.n}`));
      }
    }
    const { jobs } = await boot(TypedRows);
    await jobs.enqueueMany(
      'typed',
      [{ n: 'one' }, { n: '1' }, { n: '2' }].map((data) => ({ name: 'row', data })),
    );
    await until(async () => (await jobs.counts('typed')).metrics.completed === 2, { what: 'those that fit' });
    expect(batches).toEqual([['number 1', 'number 2']]);
    expect(await jobs.counts('typed')).toMatchObject({ dead: 1 });
  });

  it('under several names gathers each by itself', async () => {
    @Processor('both', { concurrency: 4 })
    class Both {
      @OnJob('a', { batch: { size: 2, waitMs: NEVER_MS } })
      @OnJob('b', { batch: { size: 2, waitMs: NEVER_MS } })
      run(jobs: Job[]): void {
        note(jobs);
      }
    }
    const { jobs } = await boot(Both);
    await jobs.enqueueMany('both', [
      { name: 'a', data: 1 },
      { name: 'b', data: 2 },
      { name: 'b', data: 3 },
      { name: 'a', data: 4 },
    ]);
    await until(() => batches.length === 2, { what: 'two batches' });
    expect(batches).toEqual([
      ['b 2', 'b 3'],
      ['a 1', 'a 4'],
    ]);
  });

  it('gets one job at a time, without a wait, from a test that runs jobs by hand', async () => {
    batches = [];
    const { kit, jobs } = await kits.boot({ providers: [Rows] });
    expect(await kit.performJob(Rows, 'row', 'a')).toBe('did a');
    expect((await failure(kit.performJob(Rows, 'row', 'bad'))).message).toBe('not this one');
    expect(await kit.performJob(Rows, 'stream', 7)).toBe(7);
    await jobs.enqueueMany('rows', rowsOf('b', 'bad', 'c'));
    expect(await kit.drain()).toMatchObject({ completed: 2, dead: 1 });
    expect(batches).toEqual([['row a'], ['row bad'], ['row b'], ['row bad'], ['row c']]);
  });

  it('may bury its jobs', async () => {
    @Processor('q', { concurrency: 2 })
    class Burying {
      @OnJob('x', { batch: { size: 2, waitMs: NEVER_MS } })
      run(): void {
        throw new Discard('none of it');
      }
    }
    const { jobs } = await boot(Burying);
    await jobs.enqueueMany('q', [{ name: 'x' }, { name: 'x' }]);
    await until(async () => (await jobs.counts('q')).dead === 2, { what: 'two deaths' });
  });

  describe('fails the boot', () => {
    const BATCH = { batch: { size: 5, waitMs: 5 } };
    const refused = async (...providers: Type[]) => {
      const error = await failure(apps.boot({ providers }));
      expect(error).toBeInstanceOf(EchoRegistrationError);
      return error.message;
    };

    it('with fewer slots than it is large, whoever says how many', async () => {
      @Processor('q')
      class Small {
        @OnJob('x', BATCH)
        run(): void {}
      }
      const error = await failure(apps.boot({ providers: [Small] }));
      expect(error).toBeInstanceOf(EchoConfigError);
      expect(error.message).toBe(
        "option 'concurrency' of queue 'q' is 1, but Small.run in RootModule takes batches of 5, and each job takes up a slot " +
          'while it gathers: give it 5 or more',
      );
      const queues = { q: { concurrency: 4 } };
      expect((await failure(apps.boot({ providers: [Small] }, { queues }))).message).toContain("of queue 'q' is 4");
      await apps.boot({ providers: [Small] }, { defaults: { concurrency: 5 } });
    });

    it.each<[name: string, decorator: MethodDecorator & ClassDecorator]>([
      [
        'Guard',
        UseGuards(
          class Guard {
            canActivate = () => true;
          },
        ),
      ],
      [
        'Interceptor',
        UseInterceptors(
          new (class Interceptor {
            intercept = (_: unknown, next: { handle(): never }) => next.handle();
          })(),
        ),
      ],
      [
        'Filter',
        UseFilters(
          new (class Filter {
            catch() {}
          })(),
        ),
      ],
      [
        'Pipe',
        UsePipes(
          new (class Pipe {
            transform = (value: unknown) => value;
          })(),
        ),
      ],
    ])('when a %s stands on it, or on its class', async (name, decorator) => {
      @Processor('q', { concurrency: 5 })
      class OnMethod {
        @decorator
        @OnJob('x', BATCH)
        run(_jobs: Job[]): void {}
      }
      @Processor('q', { concurrency: 5 })
      @decorator
      class OnClass {
        @OnJob('x', BATCH)
        run(_jobs: Job[]): void {}
      }
      for (const type of [OnMethod, OnClass]) {
        expect(await refused(type)).toContain(
          `${type.name}.run in RootModule gets jobs together, and ${name} on it or on its class acts on one job`,
        );
      }
    });

    it('when its parameter is decorated', async () => {
      @Processor('q', { concurrency: 5 })
      class Decorated {
        @OnJob('x', BATCH)
        run(@JobData() _data: Job[]): void {}
      }
      expect(await refused(Decorated)).toContain('Decorated.run in RootModule gets jobs together: its parameter is');
    });

    it('when its class is request-scoped, by itself or through what it injects', async () => {
      @Injectable({ scope: Scope.REQUEST })
      class Unit {}

      @Injectable({ scope: Scope.REQUEST })
      @Processor('q', { concurrency: 5 })
      class Scoped {
        @OnJob('x', BATCH)
        run(_jobs: Job[]): void {}
      }
      @Processor('q', { concurrency: 5 })
      class Injecting {
        constructor(readonly unit: Unit) {}

        @OnJob('x', BATCH)
        run(_jobs: Job[]): void {}
      }
      for (const type of [Scoped, Injecting]) {
        expect(await refused(Unit, type)).toContain(
          `${type.name}.run in RootModule gets jobs together, but its class is request-scoped`,
        );
      }
    });
  });

  it.each<[what: string, options: object, message: RegExp]>([
    ['has no size', { batch: { waitMs: 5 } }, /option 'batch\.size' must be a whole number from 1 to 10000/],
    ['has no wait', { batch: { size: 5 } }, /option 'batch\.waitMs' must be a whole number from 0/],
    ['has an option that is none', { batch: { size: 5, waitMs: 5, wait: 5 } }, /batch: unknown option 'wait'/],
    ['is none', { batch: 5 }, /batch must be an object, got 5/],
    ['is undefined', { batch: undefined }, /batch must be an object, got undefined/],
    [
      'has half a schedule beside it',
      { batch: { size: 5, waitMs: 5 }, tz: 'UTC' },
      /are \{ cron, tz \} or \{ everyMs \}/,
    ],
    ['has a misspelt schedule', { batch: { size: 5, waitMs: 5 }, everyMS: 5 }, /@OnJob on Some\.run: /],
  ])('is refused where it is written when the batch %s', (_what, options, message) => {
    const declare = () => {
      class Some {
        run(): void {}
      }
      const descriptor = Object.getOwnPropertyDescriptor(Some.prototype, 'run')!;
      OnJob('job', options as never)(Some.prototype, 'run', descriptor as never);
    };
    expect(declare).toThrow(EchoRegistrationError);
    expect(declare).toThrow(message);
  });

  it('is refused where it is written when it gets jobs one by one under another name', () => {
    const declare = () => {
      class Some {
        @OnJob('single')
        @OnJob('row', { batch: { size: 5, waitMs: 5 } })
        run(_jobs: Job[]): void {}
      }
      return Some;
    };
    expect(declare).toThrow(
      '@OnJob on Some.run: it gets jobs together under one name and one by one under another: make them two methods',
    );
  });
});
