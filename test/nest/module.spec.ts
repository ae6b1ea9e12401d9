import { describe, expect, it } from '@jest/globals';
import { Injectable, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  Consumers,
  EchoConfigError,
  EchoMq,
  EchoMqModule,
  type EchoMqModuleAsyncOptions,
  type EchoMqModuleOptions,
  type EchoMqOptionsFactory,
  Flows,
  getJobsToken,
  InjectConsumers,
  InjectEchoMq,
  InjectFlows,
  InjectJobs,
  Job,
  Jobs,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, moduleOf, useApps } from './apps.js';

@Processor('mail')
class MailProcessor {
  readonly seen: unknown[] = [];

  @OnJob('welcome')
  welcome(job: Job<{ to: string }>): void {
    this.seen.push(job.data.to);
  }
}

const NOWHERE = { host: '127.0.0.1', port: 1 };

describe('EchoMqModule', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('gives every module Jobs, and runs the jobs of its processors: no queue need be registered (C166)', async () => {
    @Injectable()
    class Signup {
      constructor(private readonly jobs: Jobs) {}
      greet = (to: string) => this.jobs.enqueue('mail', 'welcome', { to });
    }
    const feature = moduleOf({ providers: [Signup, MailProcessor] });
    const app = await apps.boot({ imports: [feature] });
    expect((await app.get(Signup).greet('ada')).status).toBe('landed');
    await until(() => app.get(MailProcessor).seen.length === 1, { what: 'the job to run' });
    expect(app.get(MailProcessor).seen).toEqual(['ada']);
  });

  it('provides Jobs, Flows, EchoMq and Consumers by class and by a token that both builds of the package share', async () => {
    @Injectable()
    class ByToken {
      constructor(
        @InjectJobs() readonly jobs: Jobs,
        @InjectFlows() readonly flows: Flows,
        @InjectEchoMq() readonly echo: EchoMq,
        @InjectConsumers() readonly consumers: Consumers,
      ) {}
    }
    const app = await apps.boot({ providers: [ByToken] });
    const { jobs, flows, echo, consumers } = app.get(ByToken);
    expect(flows).toBe(app.get(Flows));
    expect(jobs).toBe(app.get(Jobs));
    expect(echo).toBe(app.get(EchoMq));
    expect(consumers).toBe(app.get(Consumers));
    expect(getJobsToken()).toBe(Symbol.for('nestjs-echomq:jobs'));
    expect(app.get(getJobsToken())).toBe(jobs);
  });

  it('works in a testing module, where a processor can be overridden', async () => {
    const seen: unknown[] = [];
    @Processor('mail')
    class Fake {
      @OnJob('welcome')
      welcome(job: Job): void {
        seen.push(job.data);
      }
    }
    const module = await Test.createTestingModule({
      imports: [EchoMqModule.forRoot(apps.options())],
      providers: [MailProcessor],
    })
      .setLogger(apps.logger)
      .overrideProvider(MailProcessor)
      .useClass(Fake)
      .compile();
    apps.keep(module);
    await module.init();
    await module.get(Jobs).enqueue('mail', 'welcome', 1);
    await until(() => seen.length === 1, { what: 'the fake to run' });
  });

  it('only enqueues with consume: false', async () => {
    const app = await apps.boot({ providers: [MailProcessor] }, { consume: false });
    await app.get(Jobs).enqueue('mail', 'welcome', { to: 'ada' });
    expect(app.get(Consumers).queues).toEqual([]);
    expect(await app.get(Jobs).counts('mail')).toMatchObject({ pending: 1, active: 0 });
    expect(app.get(MailProcessor).seen).toEqual([]);
  });

  it('serves a queue once when its module is imported twice, and by two forRoot of the same options', async () => {
    const options = apps.options();
    const feature = () => ({ module: Feature, providers: [MailProcessor] });
    class Feature {}
    const twice = [1, 2].map(() =>
      moduleOf({ imports: [EchoMqModule.forRoot(options), { ...feature() }], providers: [] }),
    );
    const app = await apps.boot({ imports: twice }, null);
    const sockets = (await server.client().client('LIST')) as string;
    const jobs = app.get(Jobs);
    await jobs.enqueueMany(
      'mail',
      Array.from({ length: 20 }, (_, i) => ({ name: 'welcome', data: { to: i } })),
    );
    await until(async () => (await jobs.counts('mail')).metrics.completed === 20, { what: '20 jobs' });
    const processors = [...new Set(twice.flatMap(() => app.get(MailProcessor, { strict: false, each: true })))];
    expect(processors.reduce((sum, { seen }) => sum + seen.length, 0)).toBe(20);
    // One engine: a connection for commands, one for wake-ups; the others are the test's own.
    const db = ` db=${new URL(server.url).pathname.slice(1) || 0} `; // a shared server has other workers' connections
    expect(sockets.split('\n').filter((line) => line.includes(db)).length - 2).toBeLessThanOrEqual(2);
  });

  it('refuses a second forRoot with other options', async () => {
    const second = moduleOf({ imports: [EchoMqModule.forRoot(apps.options({ prefix: 'other' }))] });
    const error = await failure(apps.boot({ imports: [second] }));
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toContain('imported twice with different options');
  });

  describe('forRootAsync', () => {
    class Config {
      readonly url = server.url;
    }
    const configured = moduleOf({ providers: [Config], exports: [Config] }, 'ConfigModule');
    @Injectable()
    class Factory implements EchoMqOptionsFactory {
      constructor(private readonly config: Config) {}
      async createEchoMqOptions(): Promise<EchoMqModuleOptions> {
        return { connection: this.config.url, queues: { mail: { concurrency: 7 } } };
      }
    }
    const made = moduleOf({ imports: [configured], providers: [Factory], exports: [Factory] }, 'FactoryModule');
    const useFactory = ({ url }: Config): EchoMqModuleOptions => ({
      connection: url,
      queues: { mail: { concurrency: 7 } },
    });

    it.each([
      ['useFactory', { imports: [configured], inject: [Config], useFactory }],
      ['useClass', { imports: [configured], useClass: Factory }],
      ['useExisting', { imports: [made], useExisting: Factory }],
    ])('takes its options from %s', async (_, how) => {
      const app = await apps.boot({ imports: [EchoMqModule.forRootAsync(how)], providers: [MailProcessor] }, null);
      await app.get(Jobs).enqueue('mail', 'welcome', { to: 'ada' });
      await until(() => app.get(MailProcessor).seen.length === 1, { what: 'the job to run' });
      expect(app.get(Consumers).of('mail').settings.concurrency).toBe(7);
    });

    const refused = (how: Parameters<typeof EchoMqModule.forRootAsync>[0]) =>
      failure(apps.boot({ imports: [EchoMqModule.forRootAsync(how)], providers: [MailProcessor] }, null));

    it('fails the boot when the factory rejects, and keeps its error as the cause (C162)', async () => {
      const cause = new Error('vault is sealed');
      const error = await refused({ useFactory: () => Promise.reject(cause) });
      expect(error).toBeInstanceOf(EchoConfigError);
      expect(error.message).toBe('EchoMqModule.forRootAsync: useFactory failed: vault is sealed');
      expect(error.cause).toBe(cause);
      const named = await refused({ name: 'reports', useFactory: () => Promise.reject(cause) });
      expect(named.message).toBe("EchoMqModule.forRootAsync ('reports'): useFactory failed: vault is sealed");
    });

    it('fails the boot when the factory answers nothing: no server is guessed (C162)', async () => {
      const nothing = () => undefined as unknown as EchoMqModuleOptions;
      expect((await refused({ useFactory: nothing })).message).toContain('useFactory answered undefined, not options');
      const empty = () => ({}) as EchoMqModuleOptions;
      expect((await refused({ useFactory: empty })).message).toContain("option 'connection' is missing");
    });

    it('names the class whose options cannot be had', async () => {
      class Broken implements EchoMqOptionsFactory {
        createEchoMqOptions(): EchoMqModuleOptions {
          throw new Error('no config');
        }
      }
      expect((await refused({ useClass: Broken })).message).toContain('Broken.createEchoMqOptions() failed: no config');
    });

    it('fails the boot with a name in the answer, and takes one that stands beside the factory as well', async () => {
      const answer = (): EchoMqModuleOptions => ({ connection: NOWHERE, name: 'audit' });
      const error = await refused({ useFactory: answer });
      expect(error).toBeInstanceOf(EchoConfigError);
      expect(error.message).toBe(
        'EchoMqModule.forRootAsync: useFactory answered name "audit", too late for a name: ' +
          "give it beside the factory, as in forRootAsync({ name: 'audit', useFactory })",
      );
      const other = await refused({ name: 'reports', useFactory: answer });
      expect(other.message).toContain(`EchoMqModule.forRootAsync ('reports'): useFactory answered name "audit"`);
      const named = EchoMqModule.forRootAsync({
        name: 'audit',
        useFactory: (): EchoMqModuleOptions => ({ connection: server.url, name: 'audit' }),
      });
      const app = await apps.boot({ imports: [named] }, null);
      expect(app.get(getJobsToken('audit'))).toBeInstanceOf(Jobs);
    });

    it('names the class that makes no options', async () => {
      class Unrelated {}
      const message = 'Unrelated has no method createEchoMqOptions(), which answers the options';
      const useClass = Unrelated as unknown as Type<EchoMqOptionsFactory>;
      const error = await refused({ useClass });
      expect(error).toBeInstanceOf(EchoConfigError);
      expect(error.message).toBe(`EchoMqModule.forRootAsync: ${message}`);
      const there = moduleOf({ providers: [Unrelated], exports: [Unrelated] }, 'UnrelatedModule');
      expect((await refused({ imports: [there], useExisting: Unrelated })).message).toContain(message);
    });

    it('takes a class whose method is a property', async () => {
      class Arrow implements EchoMqOptionsFactory {
        createEchoMqOptions = () => ({ connection: server.url });
      }
      const app = await apps.boot({ imports: [EchoMqModule.forRootAsync({ useClass: Arrow })] }, null);
      expect(app.get(Jobs)).toBeInstanceOf(Jobs);
    });

    it('wants to know how, and only once', () => {
      expect(() => EchoMqModule.forRootAsync({})).toThrow('exactly one of useFactory, useClass and useExisting');
      expect(() => EchoMqModule.forRootAsync({ useFactory, useClass: Factory })).toThrow(EchoConfigError);
    });

    it.each<[unknown, string]>([
      [undefined, "forRootAsync() needs options: { useFactory: () => ({ connection: 'redis://...' }) } at least"],
      [null, 'forRootAsync() needs options'],
      [
        { useFactory, isGlobal: true },
        "forRootAsync options: unknown option 'isGlobal'. Known are useFactory, inject,",
      ],
      [{ useFactory, nmae: 'audit' }, "forRootAsync options: unknown option 'nmae'"],
      [{ useFactory, name: '' }, `option 'name' must be a string that is not empty, got ""`],
      [{ useFactory: 5 }, "option 'useFactory' must be a function that answers the options, got 5"],
      [{ useClass: 'Factory' }, `option 'useClass' must be a class with a method createEchoMqOptions(), got "Factory"`],
      [{ useExisting: {} }, "option 'useExisting' must be the token of a provider with a method createEchoMqOptions()"],
      [{ useFactory, inject: Config }, "option 'inject' must be an array of tokens, got function"],
      [{ useFactory, imports: configured }, "option 'imports' must be an array of modules, got "],
    ])('is refused as it is called with %p', (options, message) => {
      const call = () => EchoMqModule.forRootAsync(options as EchoMqModuleAsyncOptions);
      expect(call).toThrow(EchoConfigError);
      expect(call).toThrow(message);
    });
  });

  it.each<[string, unknown, string]>([
    ['without options', undefined, 'needs options'],
    ['without a connection', {}, "option 'connection' is missing"],
    ['with an unknown option', { connection: NOWHERE, conection: 1 }, "unknown option 'conection'"],
    [
      'telling what is known, with its own',
      { connection: NOWHERE, conection: 1 },
      'onReconnected, name, consume, autoStart, defaults, pruneSchedules, queues',
    ],
    ['with a clock', { connection: NOWHERE, clock: {} }, "unknown option 'clock'"],
    ['with a consume that is no boolean', { connection: NOWHERE, consume: 'no' }, "option 'consume'"],
    ['with queues that are no object', { connection: NOWHERE, queues: [] }, "option 'queues'"],
    ['with a bad prefix', { connection: NOWHERE, prefix: 'a b' }, "option 'prefix'"],
  ])('fails the boot %s', async (_, options, message) => {
    const wrong = EchoMqModule.forRoot(options as EchoMqModuleOptions);
    const error = await failure(apps.boot({ imports: [wrong] }, null));
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toContain(message);
  });
});
