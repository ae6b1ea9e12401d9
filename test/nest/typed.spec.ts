import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import {
  defineQueue,
  EchoConfigError,
  EchoMqModule,
  EchoRegistrationError,
  getJobsToken,
  type Job,
  type JobOf,
  Jobs,
  OnJob,
  Processor,
  type ProcessorOptions,
} from '../../lib/index.js';
import { processorMetadata } from '../../lib/nest/processor.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, moduleOf, useApps } from './apps.js';

const Mail = defineQueue<{ welcome: { to: string }; digest: { day: string } }>('mail');
const Checked = defineQueue('mail', { welcome: z.object({ to: z.string() }), digest: z.object({ day: z.string() }) });

let ran: string[] = [];

describe('a processor of a defined queue', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const bootFailure = async (...types: (new () => unknown)[]) => {
    const error = await failure(
      apps.boot({ imports: types.map((type, i) => moduleOf({ providers: [type] }, `M${i}`)) }),
    );
    expect(error).toBeInstanceOf(EchoRegistrationError);
    return error.message;
  };

  it('serves the queue of its name, beside one that was given the bare name', async () => {
    @Processor(Mail, { concurrency: 2 })
    class Welcomes {
      @OnJob(Mail, 'welcome')
      welcome({ data }: JobOf<typeof Mail, 'welcome'>): void {
        ran.push(`welcome ${data.to}`);
      }
    }
    @Processor('mail')
    class Digests {
      @OnJob('digest')
      digest({ data }: JobOf<typeof Mail, 'digest'>): void {
        ran.push(`digest ${data.day}`);
      }

      @OnJob()
      rest({ name }: Job): void {
        ran.push(`rest ${name}`);
      }
    }
    ran = [];
    const app = await apps.boot({ providers: [Welcomes, Digests] });
    const jobs = app.get(Jobs);
    await jobs.enqueue(Mail, 'welcome', { to: 'Ada' });
    await jobs.enqueueMany(Mail, [{ name: 'digest', data: { day: 'Monday' } }]);
    await jobs.enqueue('mail', 'other');
    await until(() => ran.length === 3, { what: 'all three' });
    expect(ran.sort()).toEqual(['digest Monday', 'rest other', 'welcome Ada']);
    expect(apps.log.log).toContain("Serving queue 'mail', 2 at a time: welcome, digest, every other name");
  });

  it('may inherit handlers of the queue from a class that is no processor itself', async () => {
    abstract class Base {
      @OnJob(Mail, 'welcome')
      welcome({ data }: JobOf<typeof Mail, 'welcome'>): void {
        ran.push(data.to);
      }
    }
    @Processor(Mail)
    class Inherits extends Base {}
    ran = [];
    const app = await apps.boot({ providers: [Inherits] });
    await app.get(Jobs).enqueue(Mail, 'welcome', { to: 'Ada' });
    await until(() => ran.length === 1, { what: 'the job' });
    expect(ran).toEqual(['Ada']);
  });

  it('need not handle all that the queue declares: another process may', async () => {
    @Processor(Checked)
    class Welcomes {
      @OnJob(Checked, 'welcome')
      welcome(): void {}
    }
    await apps.boot({ providers: [Welcomes] });
    expect(apps.log.warn).toEqual([]);
  });

  it('fails the boot with a handler of another queue, naming both', async () => {
    const Sms = defineQueue<{ code: string }>('sms');
    @Processor('mail')
    class Mixed {
      @OnJob('welcome')
      welcome(): void {}

      @OnJob(Sms, 'code')
      code(): void {}
    }
    expect(await bootFailure(Mixed)).toBe(
      "Mixed.code in M0 is @OnJob of queue 'sms', but its class is @Processor of queue 'mail': " +
        "move it to a processor of 'sms', or name a job of 'mail'",
    );
  });

  it('fails the boot when the queue has two definitions, naming both places', async () => {
    @Processor(Mail)
    class One {
      @OnJob(Mail, 'welcome')
      welcome(): void {}
    }
    @Processor(Checked)
    class Other {
      @OnJob('digest')
      digest(): void {}
    }
    @Processor('mail')
    class Handler {
      @OnJob(Checked, 'digest')
      digest(): void {}
    }
    expect(await bootFailure(One, Other)).toBe(
      "queue 'mail' is defined twice: One in M0 and Other in M1 have different definitions. " +
        'Call defineQueue() once for it and import what it answers',
    );
    expect(await bootFailure(One, Handler)).toMatch(/One in M0 and Handler\.digest in M1 have different definitions/);
  });

  it('fails the boot also in a process that only enqueues', async () => {
    @Processor(Mail)
    class Mixed {
      @OnJob(Checked, 'welcome')
      welcome(): void {}
    }
    const error = await failure(apps.boot({ providers: [Mixed] }, { consume: false }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
  });

  it('may be of an instance for which the name means another queue', async () => {
    @Processor(Mail)
    class Here {
      @OnJob(Mail, 'welcome')
      welcome({ data }: JobOf<typeof Mail, 'welcome'>): void {
        ran.push(`here ${data.to}`);
      }
    }
    @Processor(Checked, { instance: 'reports', concurrency: 3 })
    class Reports {
      @OnJob(Checked, 'welcome')
      welcome({ data }: JobOf<typeof Checked, 'welcome'>): void {
        ran.push(`there ${data.to}`);
      }
    }
    expect(processorMetadata(Reports)).toEqual({
      queue: 'mail',
      definition: Checked,
      instanceName: 'reports',
      options: { concurrency: 3 },
    });
    ran = [];
    const reports = EchoMqModule.forRoot({ ...apps.options(), prefix: 'second', name: 'reports' });
    const app = await apps.boot({ imports: [reports], providers: [Here, Reports] });
    await app.get(Jobs).enqueue(Mail, 'welcome', { to: 'Ada' });
    await app.get<Jobs>(getJobsToken('reports')).enqueue(Checked, 'welcome', { to: 'Bob' });
    await until(() => ran.length === 2, { what: 'both' });
    expect(ran.sort()).toEqual(['here Ada', 'there Bob']);
    expect(apps.log.log).toContain("Serving queue 'mail', 3 at a time: welcome");
  });
});

describe('decorators refuse as they are read', () => {
  const decorate = (decorator: MethodDecorator) => () => {
    class Some {
      run(): void {}
    }
    decorator(Some.prototype, 'run', Object.getOwnPropertyDescriptor(Some.prototype, 'run')!);
  };

  it.each<[string, unknown, unknown, RegExp]>([
    [
      'a bare name for the queue',
      'mail',
      'welcome',
      /first of two arguments is a queue made by defineQueue\(\), got "mail"/,
    ],
    ['an import that is not there yet', undefined, 'welcome', /got undefined; do the file .* import each other/],
    ['a name that the schemas lack', Checked, 'welcom', /Some\.run: queue 'mail' declares no job "welcom"/],
    ['a name that every object has', Checked, 'toString', /declares no job "toString"/],
    ['no name', Mail, undefined, /declares no job undefined; do the file .* import each other/],
    ['an empty one', Mail, '', /a name is a string that is not empty/],
  ])('@OnJob with %s', (_, queue, name, message) => {
    const call = decorate((OnJob as (queue: unknown, name: unknown) => MethodDecorator)(queue, name));
    expect(call).toThrow(EchoRegistrationError);
    expect(call).toThrow(message);
  });

  it('@OnJob with a queue alone', () => {
    expect(decorate(OnJob(Mail as never))).toThrow(/a name is a string that is not empty/);
  });

  it('@OnJob with a name that is not there yet, rather than take every job', () => {
    const call = decorate(OnJob(undefined as never));
    expect(call).toThrow(EchoRegistrationError);
    expect(call).toThrow(
      '@OnJob on Some.run got undefined for its name: do the file that defines it and this one import each other? ' +
        'For every other name write @OnJob()',
    );
    expect(decorate(OnJob())).not.toThrow();
  });

  it('@Processor with an import that is not there yet', () => {
    expect(() => Processor(undefined as never)(class Some {})).toThrow(
      /@Processor on Some got undefined for its queue: do the file that defines it and this one import each other\?/,
    );
  });

  it.each(['', 1, null])('@Processor with %p for an instance', (instance) => {
    const call = () => Processor('mail', { instance } as ProcessorOptions)(class Some {});
    expect(call).toThrow(EchoRegistrationError);
    expect(call).toThrow(/@Processor on Some: 'instance' is the name of an EchoMqModule\.forRoot/);
  });
});

describe('a processor of something that is no queue', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it.each([
    [{ name: 'mail' }, "string, got object. The queue's name comes first: @Processor('mail', options)"],
    [1, 'string, got number'],
    [null, 'string, got object'],
  ])('fails the boot: %p', async (queue, message) => {
    @Processor(queue as never)
    class Some {
      @OnJob()
      run(): void {}
    }
    const error = await failure(apps.boot({ providers: [Some] }));
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toBe(`@Processor on Some in RootModule: queue name must be a ${message}`);
  });

  it('fails the boot with options that are none', async () => {
    @Processor('mail', null as never)
    class Some {
      @OnJob()
      run(): void {}
    }
    expect((await failure(apps.boot({ providers: [Some] }))).message).toMatch(/Some must be an object, got null/);
  });
});
