import { describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  ParseIntPipe,
  type Provider,
  Query,
  Scope,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
} from '@nestjs/common';
import { EchoRegistrationError, JobData, JobRef, jobOf, OnJob, Processor } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { failure, useApps } from './apps.js';

class Guard implements CanActivate {
  canActivate = () => true;
}
class Interceptor implements NestInterceptor {
  intercept: NestInterceptor['intercept'] = (_, next) => next.handle();
}
class Filter {
  catch(): void {}
}
class Pipe extends ParseIntPipe {}

/** What would do nothing is refused at boot: nothing that a user wrote down is silently left out. */
describe('the boot refuses, rather than half work,', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const refused = async (...providers: Provider[]) => {
    const error = await failure(apps.boot({ providers }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    return error.message;
  };

  describe('enhancers given as classes, where Nest makes none of them:', () => {
    const kinds: [string, MethodDecorator & ClassDecorator][] = [
      ['Guard', UseGuards(Guard)],
      ['Interceptor', UseInterceptors(Interceptor)],
      ['Filter', UseFilters(Filter)],
      ['Pipe', UsePipes(Pipe)],
    ];
    const wearing = (decorator: MethodDecorator & ClassDecorator): [onMethod: Type, onClass: Type] => {
      @Processor('a')
      class OnMethod {
        @decorator
        @OnJob('x')
        run(@JobData() _data: unknown): void {}
      }
      @Processor('b')
      @decorator
      class OnClass {
        @OnJob('x')
        run(@JobData() _data: unknown): void {}
      }
      return [OnMethod, OnClass];
    };

    it.each(kinds)('%s, on a processor that a factory makes', async (name, decorator) => {
      const [OnMethod, OnClass] = wearing(decorator);
      expect(await refused({ provide: 'p', useFactory: () => new OnMethod() })).toContain(
        `OnMethod.run in RootModule is given ${name} as a class, of which Nest makes no instance here: list OnMethod itself`,
      );
      expect(await refused({ provide: OnClass, useFactory: () => new OnClass() })).toContain(
        `OnClass.run in RootModule is given ${name}`,
      );
    });

    it.each(kinds)(
      '%s, on a processor that is a value, though another in its module has it made',
      async (name, decorator) => {
        const [OnMethod, OnClass] = wearing(decorator);
        const message = await refused(OnMethod, { provide: 'p', useValue: new OnClass() });
        expect(message).toContain(`OnClass.run in RootModule is given ${name}`);
      },
    );

    it('a pipe of a parameter', async () => {
      @Processor('a')
      class Taking {
        @OnJob('x')
        run(@JobData(Pipe) _n: number): void {}
      }
      expect(await refused({ provide: 'p', useValue: new Taking() })).toContain(
        'Taking.run in RootModule is given Pipe',
      );
    });

    it('a guard on a method whose name is a symbol, which Nest does not look at', async () => {
      const run = Symbol('run');
      @Processor('a')
      class Symbolic {
        @OnJob('x')
        @UseGuards(Guard)
        [run](): void {}
      }
      expect(await refused(Symbolic)).toContain('Symbolic.Symbol(run) in RootModule is given Guard');
    });

    it('but not instances, nor what stands on methods that handle no job', async () => {
      @Processor('a')
      @UseGuards(new Guard())
      class Instances {
        @OnJob('x')
        @UseInterceptors(new Interceptor())
        run(@JobData(new Pipe()) _n: number): void {}

        @UseGuards(Guard)
        other(): void {}
      }
      await apps.boot({ providers: [{ provide: 'p', useFactory: () => new Instances() }] });
    });
  });

  it('a guard that is none', async () => {
    class NoGuard {}
    @Processor('a')
    class Guarded {
      @OnJob('x')
      @UseGuards(NoGuard as Type<CanActivate>)
      run(): void {}
    }
    const { message } = await failure(apps.boot({ providers: [Guarded] }));
    expect(message).toContain("Guarded.run: NoGuard stands among its guards but has no method 'canActivate'");
  });

  it('pipes on a handler that takes the job as it is, but not on one that takes nothing', async () => {
    @Processor('a')
    @UsePipes(new ValidationPipe())
    class Unpiped {
      @OnJob('x')
      run(_job: unknown): void {}
    }
    expect(await refused(Unpiped)).toContain('Unpiped.run in RootModule has pipes but takes the job as it is');
    @Processor('a')
    @UsePipes(new ValidationPipe())
    class Piped {
      @OnJob('x')
      run(@JobData() _data: unknown): void {}

      @OnJob('y')
      tick(): void {}
    }
    await apps.boot({ providers: [Piped] });
  });

  it('validation by types that the compiler has left out', async () => {
    const untyped = (pipe: ValidationPipe) => {
      class Untyped {
        run(_data: unknown): void {}
      }
      // As esbuild and tsx compile it: decorators, but no types.
      const run = Object.getOwnPropertyDescriptor(Untyped.prototype, 'run')!;
      JobData(pipe)(Untyped.prototype, 'run', 0);
      OnJob('x')(Untyped.prototype, 'run', run);
      Processor('a')(Untyped);
      return Untyped;
    };
    expect(await refused(untyped(new ValidationPipe()))).toContain('switch emitDecoratorMetadata on');
    await apps.boot({ providers: [untyped(new ValidationPipe({ expectedType: Object }))] });
  });

  it('decorators of parameters that mean nothing for a job', async () => {
    @Processor('a')
    class WithQuery {
      @OnJob('x')
      run(@JobRef() _job: unknown, @Query() _query: unknown): void {}
    }
    expect(await refused(WithQuery)).toContain('WithQuery.run: parameter 1 has a decorator for requests');
    const Name = createParamDecorator((_: unknown, context: ExecutionContext) => jobOf(context).name);
    @Processor('a')
    class WithOwn {
      @OnJob('x')
      run(@Name() _name: unknown): void {}
    }
    await apps.boot({ providers: [WithOwn] });
  });

  it('a transient processor, which nobody injects', async () => {
    @Processor('a')
    @Injectable({ scope: Scope.TRANSIENT })
    class Fleeting {
      @OnJob('x')
      run(): void {}
    }
    expect(await refused(Fleeting)).toContain('Fleeting in RootModule is transient');
    @Processor('a')
    class Fixed extends Fleeting {
      @OnJob('x')
      override run(): void {}
    }
    // A decorator's scope is inherited; what a provider says is stronger.
    await apps.boot({ providers: [{ provide: Fixed, useClass: Fixed, scope: Scope.DEFAULT }] });
  });
});
