import { expectTypeOf } from 'expect-type';
import {
  type DataOf,
  defineQueue,
  dtoSchema,
  type InputOf,
  type Job,
  type JobOf,
  type JobsOf,
  type Queue,
  type StandardSchema,
} from 'nestjs-echomq';
import * as v from 'valibot';
import { z } from 'zod';

// By types alone: what goes in comes out.
const Mail = defineQueue<{ welcome: { to: string }; digest: { day: string }; ping: undefined }>('mail');
expectTypeOf(Mail.name).toBeString();
expectTypeOf<keyof JobsOf<typeof Mail>>().toEqualTypeOf<'welcome' | 'digest' | 'ping'>();
expectTypeOf<DataOf<typeof Mail, 'welcome'>>().toEqualTypeOf<{ to: string }>();
expectTypeOf<InputOf<typeof Mail, 'welcome'>>().toEqualTypeOf<{ to: string }>();
expectTypeOf<JobOf<typeof Mail, 'welcome'>>().toEqualTypeOf<Job<{ to: string }, 'welcome'>>();
expectTypeOf<JobOf<typeof Mail, 'welcome'>>().toExtend<Job<{ to: string }>>();
// @ts-expect-error the queue has no such job
export type Unknown = DataOf<typeof Mail, 'welcom'>;

// Without a name, the union of all jobs, told apart by their names.
export function read(job: JobOf<typeof Mail>): string {
  switch (job.name) {
    case 'welcome':
      return job.data.to;
    case 'digest':
      // @ts-expect-error that is what welcome has
      job.data.to;
      return job.data.day;
    case 'ping':
      expectTypeOf(job.data).toBeUndefined();
      return '';
  }
}

// By schemas of any library: input and output differ where they transform.
const Orders = defineQueue('orders', {
  paid: z.object({ at: z.coerce.date<string | Date>(), currency: z.string().default('EUR') }),
  sent: v.object({ weight: v.pipe(v.string(), v.transform(Number)) }),
});
expectTypeOf<InputOf<typeof Orders, 'paid'>>().toEqualTypeOf<{ at: string | Date; currency?: string | undefined }>();
expectTypeOf<DataOf<typeof Orders, 'paid'>>().toEqualTypeOf<{ at: Date; currency: string }>();
expectTypeOf<InputOf<typeof Orders, 'sent'>>().toEqualTypeOf<{ weight: string }>();
expectTypeOf<DataOf<typeof Orders, 'sent'>>().toEqualTypeOf<{ weight: number }>();
expectTypeOf<JobOf<typeof Orders, 'sent'>>().toEqualTypeOf<Job<{ weight: number }, 'sent'>>();

// By a class: the data that goes in has no methods.
class Welcome {
  to!: string;
  copies?: number;
  greeting(): string {
    return `Welcome, ${this.to}`;
  }
}
const Letters = defineQueue('letters', { welcome: dtoSchema(Welcome, { whitelist: true }) });
expectTypeOf<InputOf<typeof Letters, 'welcome'>>().toEqualTypeOf<{ to: string; copies?: number }>();
expectTypeOf<DataOf<typeof Letters, 'welcome'>>().toEqualTypeOf<Welcome>();
// @ts-expect-error how to answer HTTP is no matter of a job's
dtoSchema(Welcome, { errorHttpStatusCode: 422 });

// A map written as an interface does as well.
interface Reports {
  daily: { day: string };
}
const Daily = defineQueue<Reports>('daily');
expectTypeOf<JobOf<typeof Daily>['data']>().toEqualTypeOf<{ day: string }>();

// Every queue is a Queue; nothing else is.
for (const queue of [Mail, Orders, Letters, Daily]) expectTypeOf(queue).toExtend<Queue>();
expectTypeOf<string>().not.toExtend<Queue>();
expectTypeOf<{ name: string }>().not.toExtend<Queue>();

// Without types it takes any job.
expectTypeOf<DataOf<ReturnType<typeof anything>, 'whatever'>>().toBeUnknown();
function anything() {
  return defineQueue('anything');
}

// @ts-expect-error a schema is asked for, not a value
defineQueue('mail', { welcome: { to: 'Ada' } });
// @ts-expect-error a queue has a name
defineQueue<{ welcome: string }>();
// @ts-expect-error its name is a text
defineQueue<{ welcome: string }>(1);
// @ts-expect-error schemas are what they are: types beside them would say it twice
defineQueue<{ welcome: string }>('mail', { welcome: z.string() });

expectTypeOf(z.string()).toExtend<StandardSchema<string, string>>();
expectTypeOf(v.string()).toExtend<StandardSchema<string, string>>();

// A definition may choose lanes: its function knows the jobs as they are enqueued.
defineQueue<{ welcome: { to: string }; ping: undefined }>('mail', {
  lane: (job) => {
    expectTypeOf(job.name).toEqualTypeOf<'welcome' | 'ping'>();
    return job.name === 'welcome' ? ['mail', job.data.to] : undefined;
  },
});
defineQueue('orders', { paid: z.object({ at: z.coerce.date<string>() }) }, { lane: ({ data }) => data.at });
// @ts-expect-error the data has no such property
defineQueue<{ welcome: { to: string } }>('mail', { lane: ({ data }) => data.tenant });
// @ts-expect-error a lane is a name, or a group and a name
defineQueue<{ welcome: { to: string } }>('mail', { lane: () => 7 });
// @ts-expect-error a definition says nothing but lanes
defineQueue<{ welcome: { to: string } }>('mail', { lane: () => 'a', weight: 2 });
