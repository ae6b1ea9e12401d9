import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  Consumers,
  EchoConfigError,
  EchoMq,
  EchoMqModule,
  getJobsToken,
  InjectJobs,
  type Job,
  Jobs,
  OnJob,
  Processor,
} from '../../../lib/index.js';
import { EchoMqTestingModule, type EchoMqTestingModuleOptions, TestKit } from '../../../lib/testing.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { until } from '../../support/until.js';
import { failure, moduleOf } from '../apps.js';
import { useKits } from './kits.js';

const SILENT = { log() {}, error() {}, warn() {} };

@Injectable()
class Mailer {
  readonly sent: string[] = [];
  send(to: string): void {
    this.sent.push(to);
  }
}

@Processor('mail')
class Mail {
  constructor(private readonly mailer: Mailer) {}

  @OnJob('welcome')
  welcome({ data }: Job<{ to: string }>): string {
    this.mailer.send(data.to);
    return `sent to ${data.to}`;
  }
}

@Injectable()
class Signup {
  constructor(private readonly jobs: Jobs) {}

  async register(to: string): Promise<void> {
    await this.jobs.enqueue('mail', 'welcome', { to });
  }
}

describe('EchoMqTestingModule', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  const appModule = (options = {}) =>
    moduleOf(
      { imports: [EchoMqModule.forRoot({ connection: server.url, ...options })], providers: [Mail, Mailer, Signup] },
      'AppModule',
    );
  const keys = () => server.client().keys('*');

  it('puts an app in the hands of a test: nothing runs by itself, nothing is left', async () => {
    const sent: string[] = [];
    const module = await Test.createTestingModule({ imports: [appModule(), EchoMqTestingModule.forRoot()] })
      .overrideProvider(Mailer)
      .useValue({ send: (to: string) => sent.push(to) })
      .compile();
    kits.keep(module);
    await module.init();
    const kit = module.get(TestKit);
    await module.get(Signup).register('ada');
    await kit.assertEnqueued({ queue: 'mail', name: 'welcome', data: { to: 'ada' } });
    await kit.refuteEnqueued({ queue: 'mail', name: 'digest' });
    expect(await kit.performJob(Mail, 'welcome', { to: 'bob' })).toBe('sent to bob');
    expect(sent).toEqual(['bob']);
    expect(await kit.drain()).toMatchObject({ completed: 1 });
    expect(sent).toEqual(['bob', 'ada']);
    expect(await keys()).not.toEqual([]);
    await module.close();
    expect(await keys()).toEqual([]);
  });

  it('works in an HTTP app as well', async () => {
    const module = await Test.createTestingModule({ imports: [appModule(), EchoMqTestingModule.forRoot()] }).compile();
    const app = kits.keep(module.createNestApplication({ logger: false }));
    await app.init();
    await app.get(Signup).register('ada');
    expect(await app.get(TestKit).drain()).toMatchObject({ completed: 1 });
    await app.close();
    expect(await keys()).toEqual([]);
  });

  it('keeps two apps apart that run at the same time on one server', async () => {
    const [one, two] = [await kits.boot({}), await kits.boot({})];
    expect(one.kit.prefix).toMatch(/^test-[0-9A-Za-z]{8}$/);
    expect(two.kit.prefix).not.toBe(one.kit.prefix);
    await one.jobs.enqueue('mail', 'welcome');
    await two.kit.refuteEnqueued({ queue: 'mail' });
    await one.module.close();
    expect((await keys()).every((key) => key.includes(two.kit.prefix))).toBe(true);
  });

  it("touches no key but those of its own prefix, which stands before the app's", async () => {
    const others = [
      'emq:{mail}:pending',
      'test-x:{mail}:pending',
      'test-xx.app:{q}:job:1',
      '{test-xx.app}:nodes',
      'test-x',
    ];
    const client = server.client();
    for (const key of others) await client.set(key, 1);
    const { kit, jobs, module } = await kits.boot({}, { prefix: 'app' }, { prefix: 'test-x' });
    await jobs.enqueue('mail', 'welcome', null, { keepMs: 60_000 });
    await jobs.enqueue('a [queue] * ?', 'welcome', null, { delayMs: 60_000 });
    expect(kit.prefix).toBe('test-x');
    expect(await client.exists('test-x.app:{mail}:pending', 'test-x.app:{a [queue] * ?}:schedule')).toBe(2);
    await module.close();
    expect((await keys()).sort()).toEqual(others.sort());
  });

  it('removes more keys than a step of a scan brings, among those of others', async () => {
    const client = server.client();
    const strangers = Array.from({ length: 3000 }, (_, i) => [`stranger:${i}`, '1']).flat();
    await client.mset(...strangers);
    const { jobs, module } = await kits.boot({});
    await jobs.enqueueMany(
      'mail',
      Array.from({ length: 3000 }, () => ({ name: 'welcome' })),
    );
    await module.close();
    expect(await client.dbsize()).toBe(3000);
  });

  it('takes another server for the app', async () => {
    const nowhere = { host: '127.0.0.1', port: 1 };
    const module = await Test.createTestingModule({
      imports: [appModule({ connection: nowhere }), EchoMqTestingModule.forRoot({ connection: server.url })],
    }).compile();
    kits.keep(module);
    await module.init();
    await module.get(Signup).register('ada');
    expect(await module.get(TestKit).drain()).toMatchObject({ completed: 1 });
  });

  it('drains an app that only enqueues in production too', async () => {
    const { kit, jobs, module } = await kits.boot({ providers: [Mail, Mailer] }, { consume: false });
    await jobs.enqueue('mail', 'welcome', { to: 'ada' });
    expect(await kit.drain()).toMatchObject({ completed: 1 });
    expect(module.get(Mailer).sent).toEqual(['ada']);
  });

  it('lets a test start the consumers when it wants them', async () => {
    const { jobs, module } = await kits.boot({ providers: [Mail, Mailer] });
    await jobs.enqueue('mail', 'welcome', { to: 'ada' });
    module.get(Consumers).start();
    await until(() => module.get(Mailer).sent.length === 1, { what: 'the job to run' });
    await module.close();
    expect(await keys()).toEqual([]);
  });

  describe('with autoStart: true', () => {
    it('runs consumers as in production, and kit.idle() waits for them', async () => {
      const { kit, jobs, module } = await kits.boot(
        { providers: [Mail, Mailer] },
        { autoStart: false },
        { autoStart: true },
      );
      await jobs.enqueueMany(
        'mail',
        Array.from({ length: 200 }, (_, i) => ({ name: 'welcome', data: { to: `${i}` } })),
      );
      await kit.idle();
      expect(module.get(Mailer).sent).toHaveLength(200);
      await jobs.enqueue('mail', 'welcome', { to: 'late' }, { delayMs: 3_600_000 });
      await kit.idle();
      expect(module.get(Mailer).sent).toHaveLength(200);
      expect(await kit.advance(3_600_000)).toBe(1);
      await kit.idle({ queue: 'mail' });
      expect(module.get(Mailer).sent).toHaveLength(201);
      await module.close();
      expect(await keys()).toEqual([]);
    });

    it('waits also for jobs that come of jobs, in other queues', async () => {
      const ends: number[] = [];
      @Processor('ping')
      class Ping {
        constructor(private readonly jobs: Jobs) {}
        @OnJob()
        async ping({ data }: Job<number>): Promise<void> {
          if (data > 0) await this.jobs.enqueue('pong', 'x', data - 1);
          else ends.push(data);
        }
      }
      @Processor('pong')
      class Pong {
        constructor(private readonly jobs: Jobs) {}
        @OnJob()
        async pong({ data }: Job<number>): Promise<void> {
          await this.jobs.enqueue('ping', 'x', data);
        }
      }
      const { kit, jobs } = await kits.boot({ providers: [Ping, Pong] }, {}, { autoStart: true });
      await jobs.enqueue('ping', 'x', 100);
      await kit.idle();
      expect(ends).toEqual([0]);
    });

    it('says what is left when time is up', async () => {
      let open = () => {};
      @Processor('slow')
      class Slow {
        @OnJob()
        slow(): Promise<void> {
          return new Promise((resolve) => {
            open = resolve;
          });
        }
      }
      const { kit, jobs } = await kits.boot({ providers: [Slow] }, {}, { autoStart: true });
      await jobs.enqueueMany('slow', [{ name: 'x' }, { name: 'y' }]);
      await until(async () => (await jobs.counts('slow')).active === 1, { what: 'the first job to start' });
      const error = await failure(kit.idle({ timeoutMs: 300 }));
      expect(error.message).toBe("not idle after 300 ms: queue 'slow' has 1 pending, 1 active");
      open();
      await until(async () => (await jobs.counts('slow')).pending === 0, { what: 'the second job to start' });
      open();
      await kit.idle();
    });
  });

  describe('of an app with several EchoMqModules', () => {
    @Processor('mail', { instance: 'my reports' })
    class Reports {
      static ran = 0;
      @OnJob('welcome')
      welcome(): string {
        Reports.ran += 1;
        return 'report';
      }
    }
    @Injectable()
    class Both {
      constructor(
        @InjectJobs() readonly jobs: Jobs,
        @InjectJobs('my reports') readonly reports: Jobs,
      ) {}
    }
    const boot = () => {
      Reports.ran = 0;
      const named = EchoMqModule.forRoot({ name: 'my reports', connection: server.url });
      return kits.boot({ imports: [named], providers: [Mail, Mailer, Reports, Both] });
    };

    it('covers all of them, or the one that is named', async () => {
      const { kit, module } = await boot();
      const { jobs, reports } = module.get(Both);
      expect(reports).toBe(module.get(getJobsToken('my reports')));
      await jobs.enqueue('mail', 'welcome', { to: 'ada' });
      await reports.enqueue('mail', 'welcome', { to: 'bob' });
      await reports.enqueue('mail', 'welcome', { to: 'eve' }, { delayMs: 1000 });
      await kit.assertEnqueued({ queue: 'mail', count: 3 });
      await kit.assertEnqueued({ queue: 'mail', instance: 'my reports', data: { to: 'bob' }, count: 1 });
      await kit.refuteEnqueued({ queue: 'mail', instance: 'my reports', data: { to: 'ada' } });
      expect(await kit.drain({ instance: 'my reports' })).toMatchObject({ completed: 1 });
      expect(Reports.ran).toBe(1);
      expect(await kit.advance(1000)).toBe(1);
      expect(await kit.drain()).toMatchObject({ completed: 2 });
      expect(Reports.ran).toBe(2);
      expect(module.get(Mailer).sent).toEqual(['ada']);
      await module.close();
      expect(await keys()).toEqual([]);
    });

    it('finds a handler by its class, or by queue and instance', async () => {
      const { kit } = await boot();
      expect(await kit.performJob(Reports, 'welcome')).toBe('report');
      expect(await kit.performJob(Mail, 'welcome', { to: 'ada' })).toBe('sent to ada');
      expect(await kit.performJob('mail', 'welcome', { to: 'ada' })).toBe('sent to ada');
      expect(await kit.performJob('mail', 'welcome', null, { instance: 'my reports' })).toBe('report');
    });
  });

  it('refuses options that make no sense', () => {
    const refused = (options: object) => {
      try {
        EchoMqTestingModule.forRoot(options as EchoMqTestingModuleOptions);
      } catch (error) {
        expect(error).toBeInstanceOf(EchoConfigError);
        return (error as Error).message;
      }
      throw new Error('was taken');
    };
    expect(refused({ autostart: true })).toContain("EchoMqTestingModule options: unknown option 'autostart'");
    expect(refused({ autoStart: 1 })).toContain("option 'autoStart' must be true or false");
    const range = "EchoMqTestingModule: option 'prefix' must be 1 to 40 characters of A-Z a-z 0-9 _ . : -";
    expect(refused({ prefix: 'a b' })).toContain(range);
    expect(refused({ prefix: '' })).toContain(range);
    expect(refused({ prefix: 5 })).toContain(range);
    expect(refused({ prefix: 'emq' })).toContain('everything under it is removed');
    expect(refused({ prefix: 'x'.repeat(41) })).toContain(range);
  });

  const compiled = (imports: NonNullable<Parameters<typeof Test.createTestingModule>[0]['imports']>) =>
    Test.createTestingModule({ imports }).setLogger(SILENT).compile();

  it('wants an EchoMqModule in the app', async () => {
    const error = await failure(compiled([EchoMqTestingModule.forRoot()]));
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toContain('EchoMqTestingModule.forRoot() needs an EchoMqModule in the app');
  });

  it('is there once', async () => {
    const error = await failure(compiled([appModule(), EchoMqTestingModule.forRoot(), EchoMqTestingModule.forRoot()]));
    expect(error.message).toContain('EchoMqTestingModule.forRoot() is imported twice');
  });

  it('says that the app is not initialised, and leaves nothing open then either', async () => {
    const module = kits.keep(await compiled([appModule(), EchoMqTestingModule.forRoot()]));
    const kit = module.get(TestKit);
    for (const call of [
      () => kit.drain(),
      () => kit.assertEnqueued({ queue: 'mail' }),
      () => kit.performJob(Mail, 'welcome'),
      () => kit.advance(1),
      () => kit.idle(),
    ]) {
      expect((await failure(call())).message).toBe(
        'TestKit: the app is not initialised: await module.init(), or app.init(), before',
      );
    }
    await module.get(Jobs).enqueue('mail', 'welcome'); // connects by itself
    await module.close();
    expect(await keys()).toEqual([]);
  });

  it('closes without its server', async () => {
    const module = await compiled([
      appModule({ connection: { host: '127.0.0.1', port: 1 }, connectTimeoutMs: 200 }),
      EchoMqTestingModule.forRoot(),
    ]);
    const error = await failure(module.init());
    expect(error.message).toContain('gave up after 200 ms');
    // On Nest 10 and 11 it rejects with what init() rejected with.
    expect([undefined, error]).toContain(await module.close().catch((again: Error) => again));
  });

  it('says after the close that the app is closed, also where consumers have run', async () => {
    const { kit, module } = await kits.boot({ providers: [Mail, Mailer] });
    module.get(Consumers).start();
    await module.close();
    for (const call of [
      () => kit.enqueued('mail'),
      () => kit.assertEnqueued({ queue: 'mail' }),
      () => kit.performJob(Mail, 'welcome', { to: 'ada' }),
      () => kit.drain(),
      () => kit.advance(1),
      () => kit.idle(),
    ]) {
      expect((await failure(call())).message).toBe('TestKit: the app is closed');
    }
    expect(module.get(EchoMq)).toBeDefined();
  });
});
