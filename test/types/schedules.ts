import { expectTypeOf } from 'expect-type';
import {
  type DeclaredSchedule,
  defineQueue,
  type Job,
  type JobOf,
  type JobSchedule,
  type Jobs,
  OnJob,
  Processor,
  type Schedules,
} from 'nestjs-echomq';
import { z } from 'zod';

declare const jobs: Jobs;
declare const schedules: Schedules;
const Mail = defineQueue('mail', {
  welcome: z.object({ to: z.string() }),
  digest: z.object({ day: z.coerce.date<string>() }),
  ping: z.undefined(),
});
const NOON = { cron: '0 12 * * *', tz: 'Europe/Berlin' };

// What fits.
expectTypeOf(jobs.schedule(Mail, 'k', NOON, 'welcome', { to: 'Ada' })).toEqualTypeOf<Promise<DeclaredSchedule>>();
jobs.schedule(Mail, 'k', { everyMs: 1000 }, 'digest', { day: '2026-01-01' }, { catchUp: 'one', overlap: 'skip' });
jobs.schedule(Mail, 'k', NOON, 'ping');
jobs.schedule('anything', 'k', NOON, 'whatever', { any: 'thing' }, { catchUp: { withinMs: 1, max: 1 }, attempts: 3 });
schedules.put(Mail, 'k', NOON, 'welcome', { to: 'Ada' });

// @ts-expect-error the queue has no such job
jobs.schedule(Mail, 'k', NOON, 'welcom', { to: 'Ada' });
// @ts-expect-error its data is missing
jobs.schedule(Mail, 'k', NOON, 'welcome');
// @ts-expect-error a digest has a day
schedules.put(Mail, 'k', NOON, 'digest', { to: 'Ada' });
// @ts-expect-error a schedule has times
jobs.schedule(Mail, 'k', { tz: 'UTC' }, 'ping');
// @ts-expect-error a schedule says when, not a delay
jobs.schedule(Mail, 'k', NOON, 'ping', undefined, { delayMs: 5 });
// @ts-expect-error that is no rule
jobs.schedule(Mail, 'k', NOON, 'ping', undefined, { overlap: 'queue' });

@Processor(Mail)
export class Fits {
  @OnJob(Mail, 'welcome', { ...NOON, data: { to: 'all' }, attempts: 3 })
  welcome(job: JobOf<typeof Mail, 'welcome'>): string {
    return `${job.data.to} ${job.slot?.toISOString()}`;
  }

  @OnJob(Mail, 'digest', { everyMs: 1000, data: { day: '2026-01-01' } })
  digest(job: Job<{ day: Date }>): number {
    return job.data.day.getTime();
  }

  @OnJob(Mail, 'ping', { everyMs: 1000 })
  ping(): void {}

  @OnJob('untyped', { cron: '@daily', data: { any: 'thing' }, catchUp: 'one', key: 'mine' })
  untyped(_job: Job<{ any: string }>): void {}

  @OnJob('late', process.env.CRON === undefined ? undefined : { cron: process.env.CRON })
  late(): void {}
}

@Processor(Mail)
export class Refused {
  // @ts-expect-error its data is missing
  @OnJob(Mail, 'welcome', NOON)
  missing(): void {}

  // @ts-expect-error a welcome has no day
  @OnJob(Mail, 'welcome', { ...NOON, data: { day: '2026-01-01' } })
  wrong(): void {}

  // @ts-expect-error the input of a digest's day is a text
  @OnJob(Mail, 'digest', { ...NOON, data: { day: new Date() } })
  output(): void {}

  // @ts-expect-error a schedule has times
  @OnJob('job', { tz: 'UTC' })
  never(): void {}

  // @ts-expect-error that is no option
  @OnJob('job', { everyMs: 1000, delayMs: 5 })
  option(): void {}
}

expectTypeOf<JobSchedule<{ to: string }>>().toExtend<{ data: { to: string } }>();
