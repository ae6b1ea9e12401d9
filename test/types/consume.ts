import { expectTypeOf } from 'expect-type';
import { type Consumer, defineQueue, type EchoMq, type Job, type JobOf } from 'nestjs-echomq';
import { z } from 'zod';

declare const echo: EchoMq;
const Mail = defineQueue('mail', {
  welcome: z.object({ to: z.string() }),
  digest: z.object({ day: z.coerce.date<string>() }),
});

// The handler gets a union of jobs that their names tell apart, with data as the schemas put it out.
expectTypeOf(
  echo.consume(Mail, { concurrency: 10 }, (job) => {
    expectTypeOf(job.name).toEqualTypeOf<'welcome' | 'digest'>();
    if (job.name === 'welcome') return job.data.to;
    expectTypeOf(job.data).toEqualTypeOf<{ day: Date }>();
    return job.data.day.getTime();
  }),
).toEqualTypeOf<Consumer>();
echo.consume(Mail, {}, (job: JobOf<typeof Mail>) => job.id);
echo.consume(Mail, {}, (job: Job) => job.data);
echo.consume(Mail, {}, () => undefined);

// @ts-expect-error it gets digests as well
echo.consume(Mail, {}, (job: JobOf<typeof Mail, 'welcome'>) => job.data.to);
// @ts-expect-error that is not what the queue's jobs have
echo.consume(Mail, {}, (job: Job<{ too: string }>) => job.data.too);
// @ts-expect-error options are asked for, if only {}
echo.consume(Mail, (job) => job.id);
// @ts-expect-error there is no such option
echo.consume(Mail, { concurency: 10 }, () => undefined);
// @ts-expect-error a job is not known to be a welcome before its name is looked at
echo.consume(Mail, {}, (job) => job.data.to);

// A handler may close its own consumer; its type is known all the same.
const own = echo.consume(Mail, {}, async () => {
  await own.close();
});
expectTypeOf(own).toEqualTypeOf<Consumer>();

// By the bare name the handler says what it expects, as ever.
echo.consume('mail', {}, (job: Job<{ to: string }>) => job.data.to);
echo.consume('mail', {}, (job) => expectTypeOf(job.name).toBeString());
// @ts-expect-error a handler is a function
echo.consume('mail', {}, 'handler');
