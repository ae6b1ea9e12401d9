// biome-ignore-all lint/suspicious/noThenProperty: it is what the option is called, and no function

import { expectTypeOf } from 'expect-type';
import {
  type BatchOptions,
  type BulkWithCallback,
  batched,
  defineQueue,
  type EchoMq,
  type EnqueueResult,
  type Job,
  type JobBatch,
  type JobOf,
  type Jobs,
  OnJob,
  Processor,
} from 'nestjs-echomq';
import { z } from 'zod';

declare const echo: EchoMq;
declare const jobs: Jobs;
const Mail = defineQueue('mail', {
  welcome: z.object({ to: z.string() }),
  digest: z.object({ day: z.coerce.date<string>() }),
  ping: z.undefined(),
});
const Reports = defineQueue<{ summary: { of: string } }>('reports');
const BATCH = { size: 100, waitMs: 50 };

// A method takes an array of its jobs.
@Processor(Mail, { concurrency: 100 })
export class Fits {
  @OnJob(Mail, 'welcome', { batch: BATCH })
  typed(jobs: JobOf<typeof Mail, 'welcome'>[]): string[] {
    return jobs.map(({ data }) => data.to);
  }

  @OnJob(Mail, 'digest', { batch: BATCH })
  spelt(jobs: readonly Job<{ day: Date }>[]): void {
    for (const { data } of jobs) data.day.getTime();
  }

  @OnJob(Mail, 'digest', { batch: BATCH, everyMs: 1000, data: { day: '2026-01-01' }, catchUp: 'one' })
  scheduled(jobs: Job<{ day: Date }>[]): Promise<number>[] {
    return jobs.map(async ({ data }) => data.day.getTime());
  }

  @OnJob(Mail, 'welcome', { batch: BATCH })
  @OnJob(Mail, 'digest', { batch: BATCH })
  both(jobs: JobOf<typeof Mail, 'welcome' | 'digest'>[]): string[] {
    return jobs.map(({ name }) => name);
  }

  @OnJob('untyped', { batch: BATCH })
  untyped(jobs: Job<{ any: string }>[]): number {
    return jobs.length;
  }

  @OnJob('untyped', { batch: BATCH, cron: '@daily', tz: 'UTC', data: 1 })
  untypedScheduled(_jobs: Job[]): void {}

  @OnJob(Mail, 'ping', { batch: BATCH })
  nothing(): void {}
}

@Processor(Mail)
export class Refused {
  // @ts-expect-error it gets an array
  @OnJob(Mail, 'welcome', { batch: BATCH })
  one(job: JobOf<typeof Mail, 'welcome'>): string {
    return job.data.to;
  }

  // @ts-expect-error without a queue, too
  @OnJob('welcome', { batch: BATCH })
  oneUntyped(job: Job): string {
    return job.name;
  }

  // @ts-expect-error an array of other jobs
  @OnJob(Mail, 'welcome', { batch: BATCH })
  others(jobs: JobOf<typeof Mail, 'digest'>[]): number {
    return jobs.length;
  }

  // @ts-expect-error without a batch it gets a job
  @OnJob(Mail, 'welcome')
  many(jobs: JobOf<typeof Mail, 'welcome'>[]): number {
    return jobs.length;
  }

  // @ts-expect-error a batch has a wait
  @OnJob('welcome', { batch: { size: 5 } })
  noWait(_jobs: Job[]): void {}

  // @ts-expect-error the data of its schedule is missing
  @OnJob(Mail, 'welcome', { batch: BATCH, everyMs: 1000 })
  noData(): void {}

  // @ts-expect-error that is no option
  @OnJob('welcome', { batch: BATCH, wait: 5 })
  option(): void {}
}
expectTypeOf<{ batch: BatchOptions }>().toExtend<JobBatch>();

// Without Nest: what the handler gets follows from the queue.
echo.consume(
  Mail,
  { concurrency: 100 },
  batched(BATCH, (jobs) => {
    expectTypeOf(jobs).toEqualTypeOf<JobOf<typeof Mail>[]>();
    return jobs.map((job) => (job.name === 'welcome' ? job.data.to : job.name));
  }),
);
echo.consume(
  'rows',
  { concurrency: 100 },
  batched(BATCH, async (rows: Job<{ n: number }>[]) => rows.map(({ data }) => data.n)),
);
echo.consume(
  'rows',
  { concurrency: 100 },
  batched(BATCH, (rows) => rows.length),
);
// @ts-expect-error it gets an array
batched(BATCH, (job: Job) => job.name);
// @ts-expect-error a batch has a size
batched({ waitMs: 5 }, () => undefined);

// A bulk with a callback.
const items = [{ name: 'welcome', data: { to: 'Ada' } }] as const;
expectTypeOf(jobs.enqueueMany(Mail, items)).toEqualTypeOf<Promise<EnqueueResult[]>>();
expectTypeOf(jobs.enqueueMany(Mail, items, { then: { name: 'ping' } })).toEqualTypeOf<Promise<BulkWithCallback>>();
jobs.enqueueMany(Mail, items, { then: { name: 'digest', data: { day: '2026-01-01' }, opts: { attempts: 5 } } });
jobs.enqueueMany(Mail, items, { then: { queue: Reports, name: 'summary', data: { of: 'mail' } } });
jobs.enqueueMany(Mail, items, { then: { queue: 'anything', name: 'whatever', data: { any: 'thing' } } });
jobs.enqueueMany('rows', [{ name: 'row', data: 1 }], { then: { name: 'done', data: { any: 'thing' } } });
jobs.enqueueMany('rows', [{ name: 'row' }], { then: { queue: Reports, name: 'summary', data: { of: 'rows' } } });
// @ts-expect-error the queue has no such job
jobs.enqueueMany(Mail, items, { then: { name: 'summary' } });
// @ts-expect-error its data is missing
jobs.enqueueMany(Mail, items, { then: { name: 'welcome' } });
// @ts-expect-error that is what the other queue has
jobs.enqueueMany(Mail, items, { then: { queue: Reports, name: 'ping' } });
// @ts-expect-error a summary is of something
jobs.enqueueMany(Mail, items, { then: { queue: Reports, name: 'summary', data: { off: 'mail' } } });
// @ts-expect-error an item has data
jobs.enqueueMany(Mail, [{ name: 'welcome' }], { then: { name: 'ping' } });
