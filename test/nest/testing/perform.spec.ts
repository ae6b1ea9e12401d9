import { describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  Scope,
  UseGuards,
  UseInterceptors,
  ValidationPipe,
} from '@nestjs/common';
import { map, of } from 'rxjs';
import * as z from 'zod';
import {
  type Codec,
  Discard,
  defineQueue,
  InjectJob,
  InvalidData,
  Job,
  JobData,
  jobOf,
  jsonCodec,
  OnJob,
  Processor,
  Snooze,
} from '../../../lib/index.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { failure } from '../apps.js';
import { useKits } from './kits.js';

@Processor('mail', { timeoutMs: 50 })
class Mail {
  @OnJob('echo')
  echo({ data }: Job): unknown {
    return data;
  }

  @OnJob('look')
  look({ queue, name, id, attempt, attempts, opts }: Job): unknown {
    return { queue, name, id, attempt, attempts, opts };
  }

  @OnJob('stream')
  stream() {
    return of(1, 2, 3);
  }

  @OnJob('nothing')
  nothing(): void {}

  @OnJob('discard')
  discard(): void {
    throw new Discard('not for us');
  }

  @OnJob('snooze')
  async snooze(): Promise<void> {
    throw new Snooze(1000);
  }

  @OnJob('sleep')
  async sleep({ signal }: Job): Promise<void> {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }

  @OnJob('report')
  async report(job: Job): Promise<string> {
    await job.progress('half');
    job.progress(1n);
    return 'never';
  }

  @OnJob('bigint')
  bigint(): unknown {
    return { a: 1n };
  }
}

@Processor('mail')
class Digests {
  @OnJob('digest')
  digest(): string {
    return 'digest';
  }
}

describe('kit.performJob()', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();
  const boot = () => kits.boot({ providers: [Mail, Digests] });

  it('runs the handler of a class, without a trace on the server', async () => {
    const { kit, jobs } = await boot();
    expect(await kit.performJob(Mail, 'echo', { a: 1 })).toEqual({ a: 1 });
    expect(await kit.performJob(Digests, 'digest')).toBe('digest');
    expect(await jobs.counts('mail')).toMatchObject({ pending: 0, active: 0, metrics: { enqueued: 0, completed: 0 } });
  });

  it('takes data in and result out through the codec, so that what JSON does shows', async () => {
    const { kit } = await boot();
    const data = { at: new Date(0), nothing: undefined, list: [undefined], not: Number.NaN };
    expect(await kit.performJob(Mail, 'echo', data)).toStrictEqual({
      at: '1970-01-01T00:00:00.000Z',
      list: [null],
      not: null,
    });
    expect(await kit.performJob(Mail, 'nothing')).toBeUndefined();
  });

  it('goes through a codec of the app', async () => {
    const reversed = (text: string) => [...text].reverse().join('');
    const codec: Codec = {
      encode: (...job) => Buffer.from(reversed(String(jsonCodec.encode(...job)))),
      decode: (payload) => jsonCodec.decode(Buffer.from(reversed(payload.toString()))),
      encodeResult: (result) => jsonCodec.encodeResult(result),
    };
    const { kit } = await kits.boot({ providers: [Mail] }, { codec });
    expect(await kit.performJob(Mail, 'echo', { a: 'ä' })).toEqual({ a: 'ä' });
  });

  it('rejects when the codec answers no bytes, for the job or for its result', async () => {
    const codec: Codec = {
      ...jsonCodec,
      encode: (name, data, opts) => (data === 3 ? (Promise.resolve('') as never) : jsonCodec.encode(name, data, opts)),
    };
    const { kit } = await kits.boot({ providers: [Mail] }, { codec });
    const message = "the codec's encode must answer a string or a Buffer, got a promise";
    expect((await failure(kit.performJob(Mail, 'echo', 3))).message).toBe(message);
    expect((await failure(kit.performJob(Mail, 'stream'))).message).toBe(message); // it answers 3
  });

  it('tells the handler the attempt and the options it is given', async () => {
    const { kit } = await boot();
    const look = await kit.performJob(Mail, 'look', null, { attempt: 3, opts: { attempts: 5 } });
    expect(look).toEqual({
      ...{ queue: 'mail', name: 'look', id: expect.stringMatching(/^JOB/), attempt: 3, attempts: 3 },
      opts: { attempts: 5 },
    });
  });

  it('resolves with the last value of an Observable', async () => {
    const { kit } = await boot();
    expect(await kit.performJob(Mail, 'stream')).toBe(3);
  });

  it('rejects with what the handler threw, Discard and Snooze as they are', async () => {
    const { kit } = await boot();
    expect(await failure(kit.performJob(Mail, 'discard'))).toEqual(new Discard('not for us'));
    const snooze = await failure(kit.performJob(Mail, 'snooze'));
    expect(snooze).toBeInstanceOf(Snooze);
    expect(snooze).toMatchObject({ ms: 1000 });
  });

  it("ends at the queue's time limit, or the job's own", async () => {
    const { kit } = await boot();
    expect((await failure(kit.performJob(Mail, 'sleep'))).message).toBe('the handler took longer than 50 ms');
    const own = failure(kit.performJob(Mail, 'sleep', null, { opts: { timeoutMs: 20 } }));
    expect((await own).message).toBe('the handler took longer than 20 ms');
  });

  it('rejects when the result cannot be serialised', async () => {
    const { kit } = await boot();
    expect((await failure(kit.performJob(Mail, 'bigint'))).message).toContain('result cannot be serialised');
  });

  it('lets the handler report progress, of which nobody is told, and refuses what cannot be', async () => {
    const { kit } = await boot();
    expect((await failure(kit.performJob(Mail, 'report'))).message).toContain('progress cannot be serialised');
  });

  it('refuses names that nobody handles, and lists those that are', async () => {
    const { kit } = await boot();
    const refused = async (...args: Parameters<typeof kit.performJob>) =>
      (await failure(kit.performJob(...args))).message;
    expect(await refused(Digests, 'echo')).toBe(
      "performJob: Digests handles no job named 'echo'. Handled are 'digest'",
    );
    expect(await refused('mail', 'welcome')).toBe(
      "performJob: queue 'mail' handles no job named 'welcome'. Handled are " +
        "'echo', 'look', 'stream', 'nothing', 'discard', 'snooze', 'sleep', 'report', 'bigint', 'digest'",
    );
    expect(await refused('male', 'echo')).toBe(
      "performJob: no processor of this app serves queue 'male'. Served are 'mail'",
    );
    class Other {}
    expect(await refused(Other, 'echo')).toBe(
      "performJob: Other is no @Processor: give a processor's class, or a queue",
    );
    expect(await refused(Mail, 'echo', 1, { attempt: 0 })).toBe('attempt must be a whole number from 1, got 0');
    expect(await refused(Mail, 'echo', 1, { tries: 1 } as object)).toContain(
      "performJob options: unknown option 'tries'",
    );
  });

  it('runs any name through a handler without one, unless another class has it', async () => {
    @Processor('mail')
    class Rest {
      @OnJob()
      rest({ name }: Job): string {
        return `rest ${name}`;
      }
    }
    const { kit } = await kits.boot({ providers: [Digests, Rest] });
    expect(await kit.performJob(Rest, 'whatever')).toBe('rest whatever');
    const error = await failure(kit.performJob(Rest, 'digest'));
    expect(error.message).toBe("performJob: Rest handles no job named 'digest'. Handled are every other name");
  });

  it('runs what a test has put in the place of a processor', async () => {
    @Processor('mail')
    class Fake {
      @OnJob('digest')
      digest(): string {
        return 'fake';
      }
    }
    const { Test } = await import('@nestjs/testing');
    const { EchoMqModule } = await import('../../../lib/index.js');
    const { EchoMqTestingModule, TestKit } = await import('../../../lib/testing.js');
    const module = await Test.createTestingModule({
      imports: [EchoMqModule.forRoot({ connection: server.url }), EchoMqTestingModule.forRoot()],
      providers: [Digests],
    })
      .overrideProvider(Digests)
      .useClass(Fake)
      .compile();
    kits.keep(module);
    await module.init();
    expect(await module.get(TestKit).performJob(Digests, 'digest')).toBe('fake');
  });
});

describe('a performed job goes through what a claimed one goes through:', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  it('schemas, by the queue or by the class', async () => {
    const Mail = defineQueue('mail', { welcome: z.object({ to: z.string(), at: z.coerce.date() }) });
    @Processor(Mail)
    class Welcomes {
      @OnJob(Mail, 'welcome')
      welcome({ data }: Job<{ to: string; at: Date }>): string {
        return `${data.to} ${data.at instanceof Date}`;
      }
    }
    const { kit } = await kits.boot({ providers: [Welcomes] });
    const data = { to: 'ada', at: new Date(0) };
    expect(await kit.performJob(Welcomes, 'welcome', data)).toBe('ada true');
    expect(await kit.performJob(Mail, 'welcome', data)).toBe('ada true');
    expect(await failure(kit.performJob(Welcomes, 'welcome', { to: 1 }))).toBeInstanceOf(InvalidData);
    // @ts-expect-error data that does not fit
    expect(await failure(kit.performJob(Mail, 'welcome', { to: 1 }))).toBeInstanceOf(InvalidData);
    // @ts-expect-error a name that the queue does not declare
    expect((await failure(kit.performJob(Mail, 'digest', {}))).message).toContain("handles no job named 'digest'");
  });

  it('guards, interceptors and pipes', async () => {
    class NoSpam implements CanActivate {
      canActivate(context: ExecutionContext): boolean {
        return jobOf(context).name !== 'spam';
      }
    }
    class Shouting {
      intercept(_: ExecutionContext, next: { handle(): import('rxjs').Observable<string> }) {
        return next.handle().pipe(map((text) => text.toUpperCase()));
      }
    }
    @UseGuards(NoSpam)
    @Processor('mail')
    class Guarded {
      @OnJob('spam')
      @OnJob('welcome')
      @UseInterceptors(Shouting)
      welcome(@JobData('to', new ValidationPipe({ expectedType: String })) to: string): string {
        return `dear ${to}`;
      }
    }
    const { kit } = await kits.boot({ providers: [Guarded] });
    expect(await kit.performJob(Guarded, 'welcome', { to: 'ada' })).toBe('DEAR ADA');
    expect((await failure(kit.performJob(Guarded, 'spam', { to: 'ada' }))).message).toContain('NoSpam');
  });

  it('request scope, with a context of its own', async () => {
    let made = 0;
    @Injectable({ scope: Scope.REQUEST })
    class PerJob {
      readonly number = ++made;
      constructor(@InjectJob() readonly job: Job) {}
    }
    @Processor('mail')
    class Scoped {
      constructor(private readonly perJob: PerJob) {}

      @OnJob('welcome')
      welcome(job: Job): unknown {
        return { same: job.id === this.perJob.job.id, number: this.perJob.number };
      }
    }
    const { kit } = await kits.boot({ providers: [PerJob, Scoped] });
    expect(await kit.performJob(Scoped, 'welcome')).toEqual({ same: true, number: 1 });
    expect(await kit.performJob(Scoped, 'welcome')).toEqual({ same: true, number: 2 });
  });
});
