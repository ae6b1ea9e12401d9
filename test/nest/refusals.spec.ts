import { describe, expect, it } from '@jest/globals';
import {
  Body,
  type CanActivate,
  type ExceptionFilter,
  Injectable,
  type NestInterceptor,
  ParseIntPipe,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { EchoRegistrationError, OnJob, Processor } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { failure, useApps } from './apps.js';

class Guard implements CanActivate {
  canActivate = () => true;
}
class Interceptor implements NestInterceptor {
  intercept: NestInterceptor['intercept'] = (_, next) => next.handle();
}
class Filter implements ExceptionFilter {
  catch(): void {}
}
class Pipe extends ParseIntPipe {}

@Injectable({ scope: Scope.REQUEST })
class PerRequest {}

/** What does not work yet is refused at boot: nothing that a user wrote down is silently left out. */
describe('the boot refuses, rather than half work,', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const refused = async (type: new (...args: never[]) => unknown) => {
    const error = await failure(apps.boot({ providers: [PerRequest, type] }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    return error.message;
  };

  it.each<[string, MethodDecorator & ClassDecorator]>([
    ['guards', UseGuards(Guard)],
    ['interceptors', UseInterceptors(Interceptor)],
    ['exception filters', UseFilters(Filter)],
    ['pipes', UsePipes(Pipe)],
  ])('%s on a handler or on its class', async (what, decorator) => {
    @Processor('a')
    class OnMethod {
      @decorator
      @OnJob('x')
      run(): void {}
    }
    @Processor('b')
    @decorator
    class OnClass {
      @OnJob('x')
      run(): void {}
    }
    expect(await refused(OnMethod)).toContain(`OnMethod.run has ${what}, and those do not apply to job handlers yet`);
    expect(await refused(OnClass)).toContain(`OnClass has ${what}, and those do not apply`);
  });

  it('guards that a handler inherits', async () => {
    class Base {
      @UseGuards(Guard)
      @OnJob('x')
      run(): void {}
    }
    @Processor('a')
    class Sub extends Base {}
    expect(await refused(Sub)).toContain('Sub.run has guards');
  });

  it('parameter decorators on a handler', async () => {
    @Processor('a')
    class WithBody {
      @OnJob('x')
      run(@Body() _body: unknown): void {}
    }
    expect(await refused(WithBody)).toContain('WithBody.run has parameter decorators');
  });

  it('but not those on methods that handle no job', async () => {
    @Processor('a')
    class Mixed {
      @OnJob('x')
      run(): void {}

      @UseGuards(Guard)
      other(): void {}
    }
    await apps.boot({ providers: [Mixed] });
  });

  it('a request-scoped processor', async () => {
    @Processor('a')
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @OnJob('x')
      run(): void {}
    }
    expect(await refused(Scoped)).toContain(
      'Scoped in RootModule is request-scoped, itself or through what it injects',
    );
  });

  it('a processor that is request-scoped through what it injects', async () => {
    @Processor('a')
    @Injectable()
    class Infected {
      constructor(readonly dependency: PerRequest) {}
      @OnJob('x')
      run(): void {}
    }
    expect(await refused(Infected)).toContain('Infected in RootModule is request-scoped');
  });

  it('a transient processor', async () => {
    @Processor('a')
    @Injectable({ scope: Scope.TRANSIENT })
    class Fleeting {
      @OnJob('x')
      run(): void {}
    }
    expect(await refused(Fleeting)).toContain('Fleeting in RootModule is transient');
  });
});
