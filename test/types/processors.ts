import { Discard, defineQueue, type Job, JobData, type JobOf, JobSignal, OnJob, Processor } from 'nestjs-echomq';
import { z } from 'zod';

const Mail = defineQueue('mail', {
  welcome: z.object({ to: z.string() }),
  digest: z.object({ day: z.coerce.date<string>() }),
});

@Processor(Mail, { concurrency: 10, instance: 'reports' })
export class Fits {
  @OnJob(Mail, 'welcome')
  job(job: JobOf<typeof Mail, 'welcome'>): string {
    return job.data.to;
  }

  @OnJob(Mail, 'digest')
  spelt(job: Job<{ day: Date }>): number {
    return job.data.day.getTime();
  }

  @OnJob(Mail, 'welcome')
  @OnJob(Mail, 'digest')
  both(job: JobOf<typeof Mail, 'welcome' | 'digest'>): string {
    return job.name;
  }

  @OnJob(Mail, 'welcome')
  async data(@JobData() welcome: { to: string }, @JobSignal() signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new Discard(welcome.to);
  }

  @OnJob(Mail, 'welcome')
  anyJob(job: Job): unknown {
    return job.data;
  }

  @OnJob(Mail, 'welcome')
  nothing(): void {}

  @OnJob('welcome')
  unchecked(job: Job<{ whatever: string }>): string {
    return job.data.whatever;
  }

  @OnJob()
  rest(job: Job): string {
    return job.name;
  }
}

@Processor('mail')
export class Refused {
  // @ts-expect-error the queue has no such job
  @OnJob(Mail, 'welcom')
  name(): void {}

  // @ts-expect-error a welcome has no day
  @OnJob(Mail, 'welcome')
  otherJob(job: JobOf<typeof Mail, 'digest'>): unknown {
    return job.data.day;
  }

  // @ts-expect-error the handler gets what the schema puts out, a Date
  @OnJob(Mail, 'digest')
  input(job: Job<{ day: string }>): unknown {
    return job.data.day;
  }

  // @ts-expect-error nor is that its data
  @OnJob(Mail, 'welcome')
  otherData(@JobData() data: { too: string }): unknown {
    return data.too;
  }

  // @ts-expect-error one of its two names is another job's
  @OnJob(Mail, 'digest')
  @OnJob(Mail, 'welcome')
  oneOfTwo(job: JobOf<typeof Mail, 'welcome'>): unknown {
    return job.data.to;
  }

  // @ts-expect-error a queue alone says nothing
  @OnJob(Mail)
  noName(): void {}

  // @ts-expect-error nor does a name that may not be there
  @OnJob(process.env.JOB)
  noNameMaybe(): void {}

  // @ts-expect-error a property is no handler
  @OnJob(Mail, 'welcome')
  property = 1;
}

// @ts-expect-error a processor has a queue
@Processor()
export class NoQueue {}

// @ts-expect-error which is a name or a definition
@Processor({ name: 'mail' })
export class NoDefinition {}

// @ts-expect-error there is no such option
@Processor(Mail, { concurency: 10 })
export class NoOption {}

@Processor('mail', { lane: ({ name, data }) => (name === 'welcome' ? ['mail', data.to] : undefined) })
export class Laned {
  @OnJob('welcome')
  welcome(): void {}
}
// @ts-expect-error a lane is no number
Processor('mail', { lane: () => 7 });
