import v8 from 'node:v8';
import vm from 'node:vm';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { type ContextId, ContextIdFactory, type HostComponentInfo, NestFactory, REQUEST } from '@nestjs/core';
import { map } from 'rxjs';
import {
  EchoMqModule,
  InjectJob,
  InjectJobSignal,
  JOB,
  Job,
  JobData,
  JobRef,
  Jobs,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { moduleOf, useApps } from './apps.js';

/** Lets other jobs in between. */
const turn = () => new Promise((next) => setImmediate(next));

/** What is made anew for every job. */
@Injectable({ scope: Scope.REQUEST })
class PerJob {
  static made = 0;
  readonly number = ++PerJob.made;
  readonly notes: string[] = [];

  constructor(
    @InjectJob() readonly job: Job,
    @InjectJobSignal() readonly signal: AbortSignal,
    @Inject(REQUEST) readonly request: unknown,
  ) {}
}

describe('a request-scoped processor', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();
  afterEach(() => ContextIdFactory.apply(undefined as never));

  const names = (count: number, name = 'x') => Array.from({ length: count }, (_, data) => ({ name, data }));
  const failed = (jobs: Jobs, queue: string, id: string) =>
    until(async () => (await jobs.get(queue, id))?.lastError, { what: 'the failure' });

  it('is made for every job, with all below it, and knows its job, whatever else runs meanwhile (C156)', async () => {
    const seen = new Map<number, { processor: object; perJob: PerJob; right: boolean }>();
    @Processor('q', { concurrency: 25 })
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      constructor(
        private readonly perJob: PerJob,
        @Inject(JOB) private readonly job: Job<number>,
      ) {}

      @OnJob('x')
      async run(job: Job<number>): Promise<void> {
        await turn();
        const { perJob } = this;
        const right =
          [this.job, perJob.job, perJob.request].every((one) => one === job) && perJob.signal === job.signal;
        seen.set(job.data, { processor: this, perJob, right });
      }
    }
    const app = await apps.boot({ providers: [PerJob, Scoped] });
    await app.get(Jobs).enqueueMany('q', names(100));
    await until(() => seen.size === 100, { what: 'all jobs' });
    const all = [...seen.values()];
    expect(all.every(({ right }) => right)).toBe(true);
    expect(new Set(all.map(({ processor }) => processor)).size).toBe(100);
    expect(new Set(all.map(({ perJob }) => perJob)).size).toBe(100);
  });

  it('takes no job of an app that was closed (C156)', async () => {
    const ran: string[] = [];
    const scoped = (who: string) => {
      @Processor('q')
      @Injectable({ scope: Scope.REQUEST })
      class Scoped {
        constructor(readonly perJob: PerJob) {}
        @OnJob('x')
        run(): void {
          ran.push(`${who} ${this.perJob !== undefined}`);
        }
      }
      return Scoped;
    };
    const old = await apps.boot({ providers: [PerJob, scoped('old')] });
    await old.get(Jobs).enqueue('q', 'x');
    await until(() => ran.length === 1, { what: 'the first job' });
    await old.close();
    const app = await apps.boot({ providers: [PerJob, scoped('new')] });
    await app.get(Jobs).enqueueMany('q', names(20));
    await until(() => ran.length === 21, { what: 'the others' });
    expect(ran).toEqual(['old true', ...Array.from({ length: 20 }, () => 'new true')]);
  });

  it('is one through what it injects, from a module that did not import ours, and shares it within the job', async () => {
    @Injectable()
    class Deep {
      constructor(readonly perJob: PerJob) {}
    }
    const feature = moduleOf({ providers: [PerJob, Deep], exports: [PerJob, Deep] });
    let shared: boolean[] = [];
    @Processor('q')
    class Infected {
      constructor(
        readonly deep: Deep,
        readonly perJob: PerJob,
      ) {}

      @OnJob('x')
      run(job: Job): void {
        shared.push(this.deep.perJob === this.perJob && this.perJob.job === job);
      }
    }
    shared = [];
    const app = await apps.boot({ imports: [feature], providers: [Infected] });
    await app.get(Jobs).enqueueMany('q', names(3));
    await until(() => shared.length === 3, { what: 'the jobs' });
    expect(shared).toEqual([true, true, true]);
  });

  it('can be made by a factory under its class, and be one of two instances of its class', async () => {
    const ran: string[] = [];
    @Processor('q')
    class Made {
      constructor(
        readonly by: string,
        readonly job: Job,
      ) {}
      @OnJob('x')
      run(job: Job): void {
        ran.push(`${this.by} ${this.job === job}`);
      }
    }
    const making = (by: string) =>
      moduleOf({
        providers: [
          { provide: Made, scope: Scope.REQUEST, inject: [JOB], useFactory: (job: Job) => new Made(by, job) },
        ],
      });
    const app = await apps.boot({ imports: [making('first'), making('second')] });
    await app.get(Jobs).enqueueMany('q', names(5));
    await until(() => ran.length === 5, { what: 'the jobs' });
    expect(new Set(ran)).toEqual(new Set(['first true']));
  });

  it('is called through request-scoped enhancers of the same job, which share with it what is made for the job', async () => {
    const notes: string[][] = [];
    @Injectable({ scope: Scope.REQUEST })
    class Guard implements CanActivate {
      constructor(private readonly perJob: PerJob) {}
      canActivate(): boolean {
        return this.perJob.notes.push(`guard ${this.perJob.job.data}`) > 0;
      }
    }
    @Injectable()
    class Interceptor implements NestInterceptor {
      constructor(private readonly perJob: PerJob) {}
      intercept(_context: ExecutionContext, next: CallHandler) {
        this.perJob.notes.push(`interceptor ${this.perJob.job.data}`);
        return next.handle().pipe(map(() => notes.push(this.perJob.notes)));
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class Pipe implements PipeTransform {
      constructor(@InjectJob() private readonly job: Job) {}
      transform = (value: unknown) => `pipe ${value === this.job.data}`;
    }
    @Injectable({ scope: Scope.REQUEST })
    class Filter implements ExceptionFilter {
      constructor(private readonly perJob: PerJob) {}
      catch({ message }: Error): void {
        notes.push([...this.perJob.notes, `filter ${message}`]);
      }
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Fleeting implements CanActivate {
      constructor(private readonly perJob: PerJob) {}
      canActivate(): boolean {
        return this.perJob.notes.push(`transient ${this.perJob.job.data}`) > 0;
      }
    }
    @Processor('q', { concurrency: 10 })
    @UseGuards(Guard, Fleeting)
    @UseFilters(Filter)
    class Enhanced {
      constructor(private readonly perJob: PerJob) {}

      @OnJob('x')
      @UseInterceptors(Interceptor)
      async run(@JobData(Pipe) piped: string, @JobRef() { data }: Job): Promise<void> {
        await turn();
        this.perJob.notes.push(`${piped} handler ${data}`);
      }

      @OnJob('y')
      throws(): void {
        throw new Error('caught');
      }
    }
    const app = await apps.boot({ providers: [PerJob, Enhanced] });
    await app.get(Jobs).enqueueMany('q', names(30));
    await until(() => notes.length === 30, { what: 'the jobs' });
    const expected = names(30).map(({ data: n }) =>
      [`guard ${n}`, `transient ${n}`, `interceptor ${n}`, `pipe true handler ${n}`].join(),
    );
    expect(notes.map(String).sort()).toEqual(expected.sort());
    await app.get(Jobs).enqueue('q', 'y', 7);
    await until(() => notes.length === 31, { what: 'the one that throws' });
    expect(notes[30]).toEqual(['guard 7', 'transient 7', 'filter caught']);
  });

  it('is made for every job by a guard that is request-scoped, even where it injects nothing', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Guard implements CanActivate {
      constructor(@InjectJob() private readonly job: Job) {}
      canActivate = () => this.job instanceof Job;
    }
    const seen = new Set<object>();
    @Processor('q')
    class Plain {
      @OnJob('x')
      @UseGuards(Guard)
      run(): void {
        seen.add(this);
      }
    }
    const app = await apps.boot({ providers: [Plain] });
    await app.get(Jobs).enqueueMany('q', names(3));
    await until(() => seen.size === 3, { what: 'the jobs' });
  });

  it('fails the attempt of the job that it could not be made for, and of no other', async () => {
    let calls = 0;
    @Injectable({ scope: Scope.REQUEST })
    class Picky {
      constructor(@InjectJob() { data }: Job) {
        if (data === 'bad') throw new Error('not for bad ones');
      }
    }
    @Processor('q', { attempts: 1 })
    class Scoped {
      constructor(readonly picky: Picky) {}
      @OnJob('x')
      run(): void {
        calls += 1;
      }
    }
    const app = await apps.boot({ providers: [Picky, Scoped] });
    const jobs = app.get(Jobs);
    const { id } = await jobs.enqueue('q', 'x', 'bad');
    await jobs.enqueue('q', 'x', 'good');
    expect(await failed(jobs, 'q', id)).toContain('not for bad ones');
    await until(() => calls === 1, { what: 'the other job' });
  });

  describe('under a strategy for context ids', () => {
    type Resolver = { resolve: (info: HostComponentInfo) => ContextId; payload: unknown };

    it('is shared by the jobs of a tenant where it is durable, whose REQUEST is then the payload', async () => {
      const tenants = new Map<string, ContextId>();
      ContextIdFactory.apply({
        attach(contextId: ContextId, request: Job<{ tenant: string }>): Resolver {
          const { tenant } = request.data;
          const shared = tenants.get(tenant) ?? ContextIdFactory.create();
          tenants.set(tenant, shared);
          return { resolve: (info) => (info.isTreeDurable ? shared : contextId), payload: { tenant } };
        },
      });
      let made = 0;
      @Injectable({ scope: Scope.REQUEST, durable: true })
      class Tenant {
        constructor(@Inject(REQUEST) readonly payload: { tenant: string }) {
          made += 1;
        }
      }
      const ran: string[] = [];
      @Processor('q')
      class Durable {
        constructor(readonly tenant: Tenant) {}
        @OnJob('x')
        run({ data }: Job<{ tenant: string }>): void {
          ran.push(`${data.tenant} ${this.tenant.payload.tenant}`);
        }
      }
      const app = await apps.boot({ providers: [Tenant, Durable] });
      const jobs = ['a', 'b', 'a', 'b', 'a'].map((tenant) => ({ name: 'x', data: { tenant } }));
      await app.get(Jobs).enqueueMany('q', jobs);
      await until(() => ran.length === 5, { what: 'the jobs' });
      expect(ran.sort()).toEqual(['a a', 'a a', 'a a', 'b b', 'b b']);
      expect(made).toBe(2);
    });

    it('fails its job, with a reason that tells of the strategy, when that is written for requests only', async () => {
      ContextIdFactory.apply({
        attach(contextId: ContextId, request: { headers: Record<string, string> }) {
          const tenant = request.headers['x-tenant'];
          return () => (tenant ? contextId : contextId);
        },
      });
      @Processor('q', { attempts: 1 })
      class Scoped {
        constructor(readonly perJob: PerJob) {}
        @OnJob('x')
        run(): void {}
      }
      const app = await apps.boot({ providers: [PerJob, Scoped] });
      const { id } = await app.get(Jobs).enqueue('q', 'x');
      const reason = await failed(app.get(Jobs), 'q', id);
      expect(reason).toContain('EchoStateError: the ContextIdStrategy of this app failed on a job');
      expect(reason).toContain("reading 'x-tenant'");
    });

    it('fails its job with a clear reason when a durable provider injects the job, which it would outlive', async () => {
      ContextIdFactory.apply({
        attach: (contextId: ContextId): Resolver => ({
          resolve: () => contextId,
          payload: { tenant: 'a' },
        }),
      });
      @Injectable({ scope: Scope.REQUEST, durable: true })
      class Holding {
        constructor(@InjectJob() readonly job: Job) {}
      }
      @Processor('q', { attempts: 1 })
      class Scoped {
        constructor(readonly holding: Holding) {}
        @OnJob('x')
        run(): void {}
      }
      const app = await apps.boot({ providers: [Holding, Scoped] });
      const { id } = await app.get(Jobs).enqueue('q', 'x');
      expect(await failed(app.get(Jobs), 'q', id)).toContain('not for requests, nor in durable providers');
    });
  });

  it('leaves nothing behind: of 10,000 jobs all but the last instances can be collected', async () => {
    const made: WeakRef<object>[] = [];
    @Injectable({ scope: Scope.REQUEST })
    class Counted {
      readonly ballast = new Array(100).fill(0);
      constructor(@InjectJob() readonly job: Job) {
        made.push(new WeakRef(this));
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class Guard implements CanActivate {
      constructor(readonly counted: Counted) {
        made.push(new WeakRef(this));
      }
      canActivate = () => true;
    }
    let ran = 0;
    @Processor('q', { concurrency: 100 })
    @UseGuards(Guard)
    class Scoped {
      constructor(readonly counted: Counted) {
        made.push(new WeakRef(this));
      }
      @OnJob('x')
      run(@JobRef() _job: Job): void {
        ran += 1;
      }
    }
    const app = await apps.boot({ providers: [Counted, Scoped] });
    for (let batch = 0; batch < 10; batch++) await app.get(Jobs).enqueueMany('q', names(1000));
    await until(() => ran === 10_000, { what: 'all jobs', progress: () => ran });
    await until(async () => (await app.get(Jobs).counts('q')).metrics.completed === 10_000, { what: 'their end' });
    expect(made.length).toBeGreaterThanOrEqual(30_000);
    v8.setFlagsFromString('--expose-gc');
    const collect: () => void = vm.runInNewContext('gc');
    const alive = await until(
      () => {
        collect();
        const left = made.filter((ref) => ref.deref() !== undefined).length;
        return left < 1000 ? { left } : undefined;
      },
      { what: 'the instances to be collected' },
    );
    expect(alive.left).toBeLessThan(1000);
  });
});

describe('@InjectJob()', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('fails a request that would be served with it, and says why', async () => {
    @Controller()
    class Web {
      constructor(readonly perJob: PerJob) {}
      @Get()
      get(): string {
        return 'never';
      }
    }
    const root = moduleOf({ imports: [EchoMqModule.forRoot(apps.options())], controllers: [Web], providers: [PerJob] });
    const app = apps.keep(await NestFactory.create(root, { logger: apps.logger, abortOnError: false }));
    await app.listen(0, '127.0.0.1');
    const { status } = await fetch(await app.getUrl(), { headers: { connection: 'close' } });
    expect(status).toBe(500);
    expect(apps.log.error.join()).toContain(
      '@InjectJob() and @InjectJobSignal() work only in what is made for one job',
    );
  });
});
