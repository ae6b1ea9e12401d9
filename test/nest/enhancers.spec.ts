import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import {
  type ArgumentMetadata,
  type ArgumentsHost,
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Catch,
  type ContextType,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  ForbiddenException,
  Get,
  HttpException,
  Injectable,
  type NestInterceptor,
  ParseIntPipe,
  type PipeTransform,
  type Provider,
  RequestMethod,
  Scope,
  SetMetadata,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
} from '@nestjs/common';
import {
  APP_FILTER,
  APP_GUARD,
  APP_INTERCEPTOR,
  APP_PIPE,
  ExternalContextCreator,
  ModulesContainer,
  NestFactory,
  Reflector,
} from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { Type as Transformed } from 'class-transformer';
import { IsEmail, IsInt, Min, ValidateNested } from 'class-validator';
import { catchError, from, map, of, throwError } from 'rxjs';
import {
  Discard,
  ECHOMQ_CONTEXT,
  EchoMqModule,
  EchoStateError,
  Job,
  JobData,
  JobRef,
  JobSignal,
  Jobs,
  type JobView,
  jobOf,
  OnJob,
  Processor,
  Snooze,
} from '../../lib/index.js';
import { findProcessors } from '../../lib/nest/discovery.js';
import { routesOf } from '../../lib/nest/routes.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { moduleOf, useApps } from './apps.js';

/** What happened, in order. */
let trace: string[] = [];

/** What is injected into enhancers, to show that Nest makes them. */
@Injectable()
class Journal {
  note(line: string): void {
    trace.push(line);
  }
}

function guardNamed(name: string): Type<CanActivate> {
  @Injectable()
  class Named implements CanActivate {
    constructor(private readonly journal: Journal) {}
    canActivate(): boolean {
      this.journal.note(`guard ${name}`);
      return true;
    }
  }
  return Named;
}

function interceptorNamed(name: string): Type<NestInterceptor> {
  @Injectable()
  class Named implements NestInterceptor {
    constructor(private readonly journal: Journal) {}
    intercept(_context: ExecutionContext, next: CallHandler) {
      this.journal.note(`interceptor ${name} in`);
      return next.handle().pipe(
        map((value) => {
          this.journal.note(`interceptor ${name} out`);
          return `${value}>${name}`;
        }),
      );
    }
  }
  return Named;
}

function pipeNamed(name: string): Type<PipeTransform> {
  @Injectable()
  class Named implements PipeTransform {
    constructor(private readonly journal: Journal) {}
    transform(value: unknown, { type, data }: ArgumentMetadata): unknown {
      this.journal.note(`pipe ${name} ${type} ${data ?? 'whole'}`);
      return `${value}|${name}`;
    }
  }
  return Named;
}

function filterNamed(
  name: string,
  makes: (thrown: Error) => unknown = (thrown) => thrown.message,
): Type<ExceptionFilter> {
  @Catch()
  class Named implements ExceptionFilter {
    constructor(private readonly journal: Journal) {}
    catch(thrown: Error): unknown {
      this.journal.note(`filter ${name}`);
      return makes(thrown);
    }
  }
  Reflect.defineMetadata('design:paramtypes', [Journal], Named);
  return Named;
}

class No implements CanActivate {
  canActivate = () => false;
}

const once = { attempts: 1, keepMs: 60_000 };

describe('a handler', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  /** Runs one job to its end. */
  const run = async (
    processor: Type,
    data: unknown = undefined,
    { providers = [], queue = 'q', name = 'x' }: { providers?: Provider[]; queue?: string; name?: string } = {},
  ): Promise<JobView> => {
    trace = [];
    const app = await apps.boot({ providers: [Journal, processor, ...providers] });
    const jobs = app.get(Jobs);
    const { id } = await jobs.enqueue(queue, name, data);
    const job = await ended(jobs, queue, id);
    await app.close(); // or it would take the next one's jobs
    return job;
  };
  const ended = (jobs: Jobs, queue: string, id: string): Promise<JobView> =>
    until(
      async () => {
        const job = await jobs.get(queue, id);
        return job && (['done', 'dead'].includes(job.state) || job.lastError !== undefined) ? job : undefined;
      },
      { what: 'the job to end' },
    );
  const result = ({ result: bytes }: JobView): unknown => JSON.parse(String(bytes));
  const reason = ({ lastError }: JobView): string => lastError?.split('\n')[0] ?? '';

  it('is called through guards, interceptors and pipes of its class and its own, in the order of a request', async () => {
    @Processor('q', once)
    @UseGuards(guardNamed('class'))
    @UseInterceptors(interceptorNamed('class'))
    @UsePipes(pipeNamed('class'))
    class Full {
      constructor(private readonly journal: Journal) {}

      @OnJob('x')
      @UseGuards(guardNamed('method'))
      @UseInterceptors(interceptorNamed('method'))
      @UsePipes(pipeNamed('method'))
      run(@JobData('to', pipeNamed('parameter')) to: string): string {
        this.journal.note('handler');
        return to;
      }
    }
    const job = await run(Full, { to: 'ada' });
    expect(trace).toEqual([
      'guard class',
      'guard method',
      'interceptor class in',
      'interceptor method in',
      'pipe class body to',
      'pipe method body to',
      'pipe parameter body to',
      'handler',
      'interceptor method out',
      'interceptor class out',
    ]);
    expect(result(job)).toBe('ada|class|method|parameter>method>class');
  });

  it('is called in the order of Nest itself, by its creator of contexts for whatever is no controller', async () => {
    @Processor('q', once)
    @UseGuards(guardNamed('class'))
    @UseInterceptors(interceptorNamed('class'))
    @UsePipes(pipeNamed('class'))
    @UseFilters(filterNamed('class'))
    class Full {
      constructor(private readonly journal: Journal) {}

      @OnJob('x')
      @UseGuards(guardNamed('method 1'), guardNamed('method 2'))
      @UseInterceptors(interceptorNamed('method'))
      @UsePipes(pipeNamed('method'))
      @UseFilters(filterNamed('method 1'), filterNamed('method 2'))
      run(@JobData() _data: string, @JobData('to', pipeNamed('parameter')) to: string): string {
        this.journal.note('handler');
        if (to.startsWith('nobody')) throw new Error('nobody');
        return to;
      }
    }
    for (const to of ['ada', 'nobody']) {
      const job = await run(Full, { to });
      const ours = trace;
      trace = [];
      const app = await apps.boot({ providers: [Journal, Full] });
      const full = app.get(Full);
      const data = { exchangeKeyForValue: (_type: unknown, name: unknown, [given]: unknown[]) => (name ? to : given) };
      const nests = app
        .get(ExternalContextCreator)
        .create(
          full,
          full.run as never,
          'run',
          '__routeArguments__',
          data as never,
          undefined,
          undefined,
          undefined,
          ECHOMQ_CONTEXT,
        );
      const answer = await (nests as (job: unknown) => Promise<unknown>)({});
      expect(ours).toEqual(trace);
      expect(ours.length).toBeGreaterThan(9);
      expect(result(job)).toBe(answer);
    }
  });

  it('gets the enhancers that it inherits, and those instances that are given', async () => {
    class Base {
      @UseGuards(guardNamed('base'))
      @UseInterceptors({ intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(map((n) => n + 1)) })
      @OnJob('x')
      run(@JobData(new ParseIntPipe()) n: number): number {
        return n;
      }
    }
    @Processor('q', once)
    class Sub extends Base {}
    expect(result(await run(Sub, '41'))).toBe(42);
    expect(trace).toEqual(['guard base']);
  });

  it('that overrides another takes its own parameters, not those of the other', async () => {
    class Base {
      @OnJob('x')
      run(@JobData('to') to: unknown): unknown {
        return to;
      }
    }
    @Processor('q', once)
    class Sub extends Base {
      @OnJob('x')
      override run(job: unknown): unknown {
        return (job as Job).name;
      }
    }
    expect(result(await run(Sub, { to: 'ada' }))).toBe('x');
  });

  it('is asked for by guards that find the job, the class, the method and their metadata in the context', async () => {
    let seen: unknown;
    @Injectable()
    class Curious implements CanActivate {
      constructor(private readonly reflector: Reflector) {}
      canActivate(context: ExecutionContext): boolean {
        const { id, name } = jobOf(context);
        seen = {
          type: context.getType<ContextType | typeof ECHOMQ_CONTEXT>(),
          name,
          sameJob: context.getArgs()[0] === jobOf(context) && context.switchToRpc().getData().id === id,
          args: context.getArgs().length,
          type_: context.getClass(),
          handler: context.getHandler(),
          roles: this.reflector.getAllAndMerge('roles', [context.getHandler(), context.getClass()]),
        };
        return true;
      }
    }
    @Processor('q', once)
    @SetMetadata('roles', ['class'])
    class Watched {
      @OnJob('x')
      @UseGuards(Curious)
      @SetMetadata('roles', ['method'])
      run(): void {}
    }
    await run(Watched);
    expect(seen).toEqual({
      type: 'echomq',
      name: 'x',
      sameJob: true,
      args: 1,
      type_: Watched,
      handler: Watched.prototype.run,
      roles: ['method', 'class'],
    });
  });

  it('takes data, job, signal and what own decorators make of the context, each in its place', async () => {
    const Attempt = createParamDecorator((more: number, context: ExecutionContext) => jobOf(context).attempt + more);
    const Later = createParamDecorator(async () => 'later');
    let got: unknown[] = [];
    @Processor('q', once)
    class Taking {
      @OnJob('x')
      run(
        @JobRef() job: Job,
        @JobData() data: unknown,
        undecorated: unknown,
        @JobSignal() signal: AbortSignal,
        @JobData('to') to: unknown,
        @Attempt(10) attempt: number,
        @Later() later: string,
      ): void {
        got = [job instanceof Job, data, undecorated, signal === job.signal, to, attempt, later];
      }
    }
    await run(Taking, { to: 'ada' });
    expect(got).toEqual([true, { to: 'ada' }, undefined, true, 'ada', 11, 'later']);
    await run(Taking, null);
    expect(got).toEqual([true, null, undefined, true, undefined, 11, 'later']);
  });

  it('takes the job and its signal past all pipes, whatever those make of the data', async () => {
    let got: unknown[] = [];
    @Processor('q', once)
    @UsePipes({ transform: () => 'piped' })
    class Taking {
      @OnJob('x')
      run(@JobRef() job: Job, @JobSignal() signal: AbortSignal, @JobData() data: unknown): void {
        got = [job instanceof Job, signal instanceof AbortSignal, data];
      }
    }
    await run(Taking, 'as it came');
    expect(got).toEqual([true, true, 'piped']);
  });

  it('is called as it is, with nothing in between, where it has neither enhancers nor decorated parameters', async () => {
    @Processor('q', once)
    class Both {
      @OnJob('plain')
      plain(job: Job): unknown {
        return [this instanceof Both, job];
      }

      @OnJob('guarded')
      @UseGuards({ canActivate: () => true })
      guarded(): void {}
    }
    const app = await apps.boot({ providers: [Both] });
    const [routes] = routesOf(findProcessors(app.get(ModulesContainer)));
    const job = {} as Job;
    expect(routes!.byName.get('plain')!(job)).toEqual([true, job]); // no promise around it
    expect(routes!.byName.get('guarded')!(job)).toBeInstanceOf(Promise);
  });

  it('is not called when a guard denies: that is a failed attempt, and the next one asks again', async () => {
    const verdicts = [false, Promise.resolve(false), of(false), of(true)];
    let calls = 0;
    class Wavering implements CanActivate {
      canActivate = () => verdicts.shift()!;
    }
    @Processor('q', { attempts: 4, backoff: { type: 'fixed', delayMs: 0 }, keepMs: 60_000 })
    class Guarded {
      @OnJob('x')
      @UseGuards(Wavering)
      run(): void {
        calls += 1;
      }
    }
    const app = await apps.boot({ providers: [Guarded] });
    const { id } = await app.get(Jobs).enqueue('q', 'x');
    const job = await until(
      async () => {
        const found = await app.get(Jobs).get('q', id);
        return found?.state === 'done' ? found : undefined;
      },
      { what: 'the job to be done' },
    );
    expect({ calls, attempts: job.attempts }).toEqual({ calls: 1, attempts: 4 });
  });

  it('tells a denial by name in the reason, and a filter may catch it as a ForbiddenException', async () => {
    @Processor('q', once)
    class Guarded {
      @OnJob('x')
      @UseGuards(No)
      run(): void {}
    }
    const job = await run(Guarded);
    expect(job.state).toBe('dead');
    expect(reason(job)).toBe('ForbiddenException: No does not let the job through');

    @Catch(ForbiddenException)
    class Lenient implements ExceptionFilter {
      catch = () => 'denied';
    }
    @Processor('q', once)
    @UseFilters(Lenient)
    class Filtered extends Guarded {}
    expect(result(await run(Filtered))).toBe('denied');
  });

  describe('whose data a pipe refuses', () => {
    class Address {
      @IsEmail()
      email!: string;
    }
    class Order {
      @IsInt({ message: 'quantity $value is no whole number' })
      quantity!: number;

      @ValidateNested()
      @Transformed(() => Address)
      to!: Address;
    }
    class Positive {
      @Min(1)
      n!: number;
    }

    it('is not called, and its job is buried at once with the messages, and no more of the data than they tell', async () => {
      let calls = 0;
      @Processor('q', { attempts: 5 })
      class Strict {
        @OnJob('x')
        run(@JobData(new ValidationPipe({ transform: true })) _order: Order): void {
          calls += 1;
        }
      }
      const job = await run(Strict, { quantity: 1.5, to: { email: 'hunter2', secret: 'hunter3' } });
      expect(job).toMatchObject({ state: 'dead', attempts: 1 });
      expect(job.lastError).toBe('invalid data: quantity 1.5 is no whole number; to.email must be an email');
      expect(calls).toBe(0);
    });

    it('is called with what the pipe made of it when it is right', async () => {
      @Processor('q', once)
      class Strict {
        @OnJob('x')
        @UsePipes(new ValidationPipe({ transform: true, whitelist: true }))
        run(@JobRef() job: Job, @JobData() order: Order): unknown {
          return [job instanceof Job, order instanceof Order, order.to instanceof Address, Object.keys(order).sort()];
        }
      }
      const job = await run(Strict, { quantity: 2, to: { email: 'a@b.example' }, more: 1 });
      expect(result(job)).toEqual([true, true, true, ['quantity', 'to']]);
    });

    it.each<[string, () => Error, string]>([
      ['a text', () => new HttpException('too big', 422), 'invalid data: too big'],
      ['several', () => new BadRequestException(['one', 'two']), 'invalid data: one; two'],
      [
        'errors of class-validator, which hold the value',
        () =>
          new BadRequestException([
            { property: 'n', value: 'hunter2', target: { n: 'hunter2' }, constraints: { min: 'n is small' } },
            { property: 'm', value: 'hunter2', children: [{ constraints: { min: 'm.o is small' } }] },
          ]),
        'invalid data: n is small; m.o is small',
      ],
      [
        'an object that is none of these',
        () => new BadRequestException({ value: 'hunter2' }),
        'invalid data: Bad Request Exception',
      ],
      ['a long text', () => new BadRequestException('y'.repeat(5000)), `invalid data: ${'y'.repeat(986)}`],
    ])('has a readable reason, from %s', async (_what, make, told) => {
      class Refusing implements PipeTransform {
        transform(): never {
          throw make();
        }
      }
      @Processor('q', { attempts: 5 })
      class Strict {
        @OnJob('x')
        run(@JobData(Refusing) _data: unknown): void {}
      }
      const job = await run(Strict, 1);
      expect([job.state, job.lastError]).toEqual(['dead', told]);
    });

    it('fails an attempt when the pipe fails in another way: what it needs may be away for a while', async () => {
      class Failing implements PipeTransform {
        transform(): never {
          throw new HttpException('no database', 503);
        }
      }
      @Processor('q', { attempts: 5, backoff: { type: 'fixed', delayMs: 60_000 } })
      class Strict {
        @OnJob('x')
        run(@JobData(Failing) _data: unknown): void {}
      }
      const job = await run(Strict, 1);
      expect([job.state, reason(job)]).toEqual(['scheduled', 'HttpException: no database']);
    });

    it('fails an attempt when guard or handler throw what a pipe would refuse with', async () => {
      class Throwing implements CanActivate {
        canActivate(): never {
          throw new BadRequestException('by the guard');
        }
      }
      @Processor('q', { attempts: 5, backoff: { type: 'fixed', delayMs: 60_000 } })
      class Strict {
        @OnJob('guard')
        @UseGuards(Throwing)
        guarded(@JobData() _data: unknown): void {}

        @OnJob('handler')
        handler(@JobData(new ValidationPipe()) _data: Positive): void {
          throw new BadRequestException('by the handler');
        }
      }
      expect((await run(Strict, { n: 1 }, { name: 'guard' })).state).toBe('scheduled');
      expect((await run(Strict, { n: 1 }, { name: 'handler' })).state).toBe('scheduled');
    });

    it('completes when a filter takes the refusal, and an interceptor may make another error of it', async () => {
      @Catch(BadRequestException)
      class Forgiving implements ExceptionFilter<BadRequestException> {
        catch = ({ message }: BadRequestException) => `forgiven: ${message}`;
      }
      const another: NestInterceptor = {
        intercept: (_, next) => next.handle().pipe(catchError(() => throwError(() => new Error('another')))),
      };
      @Processor('q', { ...once, attempts: 2, backoff: { type: 'fixed', delayMs: 60_000 } })
      class Strict {
        @OnJob('filter')
        @UseFilters(Forgiving)
        filtered(@JobData(ParseIntPipe) _data: number): void {}

        @OnJob('interceptor')
        @UseInterceptors(another)
        intercepted(@JobData(ParseIntPipe) _data: number): void {}
      }
      expect(result(await run(Strict, 'x', { name: 'filter' }))).toContain('forgiven: Validation failed');
      const job = await run(Strict, 'x', { name: 'interceptor' });
      expect([job.state, reason(job)]).toEqual(['scheduled', 'Error: another']);
    });
  });

  describe('that throws into an exception filter', () => {
    class Wrong extends Error {}

    const throwing = (thrown: () => unknown, ...filters: (Type<ExceptionFilter> | ExceptionFilter)[]): Type => {
      @Processor('q', once)
      class Throwing {
        @OnJob('x')
        @UseFilters(...filters)
        run(): void {
          throw thrown();
        }
      }
      return Throwing;
    };

    it.each<[string, unknown, unknown]>([
      ['a value', 'made good', 'made good'],
      ['nothing', undefined, null],
      ['false', false, false],
      ['a promise', Promise.resolve('later'), 'later'],
      ['an Observable', of(1, 2), 2],
    ])('completes its job with what the filter returns: %s', async (_what, answer, stored) => {
      const job = await run(
        throwing(
          () => new Wrong('x'),
          filterNamed('any', () => answer),
        ),
      );
      expect([job.state, result(job)]).toEqual(['done', stored]);
      expect(apps.log.error).toEqual([]);
    });

    it('fails with what the filter throws', async () => {
      const rethrow = filterNamed('any', (thrown) => {
        throw new Error(`worse: ${thrown.message}`);
      });
      expect(reason(await run(throwing(() => new Wrong('x'), rethrow)))).toBe('Error: worse: x');
      const rejecting = filterNamed('any', async () => {
        throw new Error('rejected');
      });
      expect(reason(await run(throwing(() => new Wrong('x'), rejecting)))).toBe('Error: rejected');
    });

    it('fails with what it threw when no filter is meant for that', async () => {
      @Catch(HttpException)
      class OnlyHttp implements ExceptionFilter {
        catch = () => 'caught';
      }
      expect(reason(await run(throwing(() => new Wrong('mine'), OnlyHttp)))).toBe('Error: mine');
      expect(result(await run(throwing(() => new ForbiddenException(), OnlyHttp)))).toBe('caught');
    });

    it('is heard by the last filter of the method first, and by those of the class behind it', async () => {
      @Processor('q', once)
      @UseFilters(filterNamed('class'))
      class Throwing {
        @OnJob('x')
        run(): void {
          throw new Wrong('x');
        }
        @OnJob('y')
        @UseFilters(filterNamed('first'), filterNamed('last'))
        other(): void {
          throw new Wrong('y');
        }
      }
      await run(Throwing);
      expect(trace).toEqual(['filter class']);
      await run(Throwing, undefined, { name: 'y' });
      expect(trace).toEqual(['filter last']);
    });

    it('is past the filters with Discard and Snooze, which are words to the queue and no failures', async () => {
      const all = filterNamed('all');
      const buried = await run(throwing(() => new Discard('not for us'), all));
      expect([buried.state, buried.lastError]).toEqual(['dead', 'not for us']);
      trace = [];
      const app = await apps.boot({ providers: [Journal, throwing(() => new Snooze(60_000), all)] });
      await app.get(Jobs).enqueue('q', 'x');
      await until(async () => (await app.get(Jobs).counts('q')).scheduled === 1, { what: 'the snooze' });
      expect(trace).toEqual([]);
    });

    it('gives the filter the job', async () => {
      class Asking implements ExceptionFilter {
        catch = (_: unknown, host: ArgumentsHost) => [host.getType<string>(), jobOf(host).name];
      }
      expect(result(await run(throwing(() => new Wrong('x'), Asking)))).toEqual(['echomq', 'x']);
    });
  });

  it('has as its result what the interceptors make of it: the last value, and undefined of none', async () => {
    const answering = (...values: unknown[]): NestInterceptor => ({ intercept: () => from(values) });
    @Processor('q', once)
    class Intercepted {
      @OnJob('some')
      @UseInterceptors(answering(1, 2, [3]))
      some(): void {
        trace.push('called');
      }
      @OnJob('none')
      @UseInterceptors(answering())
      none(): void {}
      @OnJob('list')
      @UseInterceptors({ intercept: (_: unknown, next: CallHandler) => next.handle() } as NestInterceptor)
      async list(): Promise<number[]> {
        return [1, 2];
      }
    }
    expect(result(await run(Intercepted, undefined, { name: 'some' }))).toEqual([3]);
    expect(trace).toEqual([]);
    expect(result(await run(Intercepted, undefined, { name: 'none' }))).toBe(null);
    expect(result(await run(Intercepted, undefined, { name: 'list' }))).toEqual([1, 2]);
  });

  it('runs in the AsyncLocalStorage that an interceptor has entered, and each job in its own', async () => {
    const store = new AsyncLocalStorage<string>();
    const seen: string[] = [];
    class Entering implements NestInterceptor {
      intercept = (context: ExecutionContext, next: CallHandler) => store.run(jobOf(context).id, () => next.handle());
    }
    @Processor('q', { concurrency: 20 })
    class Stored {
      @OnJob('x')
      @UseInterceptors(Entering)
      async run(@JobRef() { id }: Job): Promise<void> {
        await new Promise((next) => setImmediate(next));
        seen.push(`${store.getStore() === id}`);
      }
    }
    const app = await apps.boot({ providers: [Stored] });
    await app.get(Jobs).enqueueMany(
      'q',
      Array.from({ length: 50 }, () => ({ name: 'x' })),
    );
    await until(() => seen.length === 50, { what: 'all jobs' });
    expect(new Set(seen)).toEqual(new Set(['true']));
  });

  it('gets enhancers of its own where they are transient, made with what they inject', async () => {
    let made = 0;
    @Injectable({ scope: Scope.TRANSIENT })
    class Fleeting implements CanActivate {
      readonly number = ++made;
      constructor(private readonly journal: Journal) {}
      canActivate(): boolean {
        this.journal.note(`guard ${this.number > 0}`);
        return true;
      }
    }
    @Processor('q', once)
    @UseGuards(Fleeting)
    class Guarded {
      @OnJob('x')
      run(): void {}
    }
    expect((await run(Guarded)).state).toBe('done');
    expect(trace).toEqual(['guard true']);
  });

  it('is left alone by the global enhancers of the app, whatever their scope', async () => {
    const global = (provide: string, scope: Scope): Provider => {
      @Injectable({ scope })
      class Global {
        canActivate(): boolean {
          return note('guard');
        }
        intercept(_: unknown, next: CallHandler) {
          note('interceptor');
          return next.handle();
        }
        transform(value: unknown): unknown {
          note('pipe');
          return value;
        }
        catch(): void {
          note('filter');
        }
      }
      return { provide, useClass: Global };
    };
    const note = (line: string) => trace.push(line) > 0;
    const providers = [APP_GUARD, APP_INTERCEPTOR, APP_PIPE, APP_FILTER].flatMap((provide) => [
      global(provide, Scope.DEFAULT),
      global(provide, Scope.REQUEST),
    ]);
    @Processor('q', once)
    class Plain {
      @OnJob('x')
      run(): void {}

      @OnJob('y')
      @UseGuards({ canActivate: () => note('own') })
      guarded(@JobData() _data: unknown): void {
        throw new Error('told as it is');
      }
    }
    await run(Plain, 1, { providers });
    expect(trace).toEqual([]);
    expect(reason(await run(Plain, 1, { providers, name: 'y' }))).toBe('Error: told as it is');
    expect(trace).toEqual(['own']);
  });

  it('can have its guard overridden in a test', async () => {
    @Processor('q', once)
    class Guarded {
      @OnJob('x')
      @UseGuards(No)
      run(): string {
        return 'passed';
      }
    }
    const testing = await Test.createTestingModule({
      imports: [EchoMqModule.forRoot(apps.options())],
      providers: [Guarded],
    })
      .overrideGuard(No)
      .useValue({ canActivate: () => true })
      .setLogger(apps.logger)
      .compile();
    await apps.keep(testing).init();
    const jobs = testing.get(Jobs);
    expect(result(await ended(jobs, 'q', (await jobs.enqueue('q', 'x')).id))).toBe('passed');
  });

  it('is guarded under another token too, or the boot fails where Nest (10) makes no guard for that', async () => {
    @Processor('q', once)
    class Guarded {
      @OnJob('x')
      @UseGuards(guardNamed('here'))
      run(): void {}
    }
    trace = [];
    const booting = apps.boot({ providers: [Journal, { provide: 'another', useClass: Guarded }] });
    const app = await booting.catch((error: Error) => error);
    if (app instanceof Error) {
      expect(app.message).toContain('list Guarded itself among the providers');
      return;
    }
    const { id } = await app.get(Jobs).enqueue('q', 'x');
    await ended(app.get(Jobs), 'q', id);
    expect(trace).toEqual(['guard here']);
  });

  it('keeps apart from another of the same class name and method name', async () => {
    const named = (queue: string, pipe: Type<PipeTransform>): Type => {
      @Processor(queue, once)
      class Same {
        @OnJob('x')
        run(@JobData(pipe) data: string): string {
          return data;
        }
      }
      return Same;
    };
    const [first, second] = [named('q', pipeNamed('first')), named('other', pipeNamed('second'))];
    expect(result(await run(first, 'd', { providers: [second] }))).toBe('d|first');
    expect(result(await run(second, 'd', { providers: [first], queue: 'other' }))).toBe('d|second');
  });

  it('gets the guard of the module that its instance comes from, where two modules provide its class', async () => {
    const WHO = 'who';
    @Injectable()
    class Telling implements CanActivate {
      constructor(private readonly journal: Journal) {}
      canActivate(): boolean {
        this.journal.note('asked');
        return true;
      }
    }
    @Processor('q', once)
    @UseGuards(Telling)
    class Twice {
      @OnJob('x')
      run(): void {}
    }
    const journal = (who: string): Provider => ({
      provide: Journal,
      useValue: { note: (line: string) => trace.push(`${who} ${line}`) },
    });
    const modules = ['first', 'second'].map((who) =>
      moduleOf({ providers: [Twice, journal(who), { provide: WHO, useValue: who }] }),
    );
    trace = [];
    const app = await apps.boot({ imports: modules });
    const { id } = await app.get(Jobs).enqueue('q', 'x');
    await ended(app.get(Jobs), 'q', id);
    expect(trace).toEqual(['first asked']);
  });
});

describe('jobOf', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('says what to do where the context is that of a request', async () => {
    let thrown: unknown;
    class Asking implements CanActivate {
      canActivate(context: ExecutionContext): boolean {
        try {
          jobOf(context);
        } catch (error) {
          thrown = error;
        }
        return true;
      }
    }
    @Controller()
    @UseGuards(Asking)
    class Web {
      @Get()
      get(): string {
        return 'ok';
      }
    }
    expect(RequestMethod.GET).toBe(0);
    const root = moduleOf({ imports: [EchoMqModule.forRoot(apps.options())], controllers: [Web] });
    const app = apps.keep(await NestFactory.create(root, { logger: apps.logger, abortOnError: false }));
    await app.listen(0, '127.0.0.1');
    await fetch(await app.getUrl(), { headers: { connection: 'close' } });
    expect(thrown).toBeInstanceOf(EchoStateError);
    expect((thrown as Error).message).toContain("this context is of type 'http'");
  });
});
