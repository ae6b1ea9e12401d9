import { describe, expect, it } from '@jest/globals';
import {
  type DynamicModule,
  Inject,
  Injectable,
  type ModuleMetadata,
  type OnModuleInit,
  type Provider,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { EchoMq, EchoMqModule, getEchoMqToken, Jobs, OnJob, Processor } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { gate, moduleOf, turns, useApps } from './apps.js';

/** Like a database client: of no use once it is closed. */
class Database {
  isOpen = true;
  query(): string {
    if (!this.isOpen) throw new Error('the database is closed');
    return 'row';
  }
}

class ClosesOnDestroy extends Database {
  onModuleDestroy(): void {
    this.isOpen = false;
  }
}

class ClosesBeforeShutdown extends Database {
  beforeApplicationShutdown(): void {
    this.isOpen = false;
  }
}

class ClosesOnShutdown extends Database {
  onApplicationShutdown(): void {
    this.isOpen = false;
  }
}

let running = gate();
let mayQuery = gate();
let row: string | undefined;

@Processor('queries')
@Injectable()
class Queries {
  constructor(private readonly database: Database) {}

  @OnJob('query')
  async query(): Promise<void> {
    running.open();
    await mayQuery.opened;
    row = this.database.query();
  }
}

type Place = (database: Provider, echo: DynamicModule) => ModuleMetadata;

const exporting = (database: Provider, imports: ModuleMetadata['imports'] = []) =>
  moduleOf({ providers: [database], exports: [Database], imports });

const wrapped = (imports: NonNullable<ModuleMetadata['imports']>, exports: NonNullable<ModuleMetadata['exports']>) =>
  moduleOf({ imports, exports });

/** Where the database may live. */
const PLACES: Record<string, Place> = {
  'in the module of the processor': (database, echo) => ({
    imports: [echo, moduleOf({ providers: [database, Queries] })],
  }),
  'in a module that it imports': (database, echo) => ({
    imports: [echo, moduleOf({ imports: [exporting(database)], providers: [Queries] })],
  }),
  'three modules deep': (database, echo) => {
    const deep = exporting(database);
    const middle = wrapped([deep], [deep]);
    const near = wrapped([middle], [middle]);
    return { imports: [echo, moduleOf({ imports: [near], providers: [Queries] })] };
  },
  'in the root module': (database, echo) => ({ imports: [echo], providers: [database, Queries] }),
  'in a global module': (database, echo) => ({
    imports: [
      echo,
      { module: moduleOf({}), global: true, providers: [database], exports: [Database] },
      moduleOf({ providers: [Queries] }),
    ],
  }),
  'in a module imported before ours': (database, echo) => {
    const feature = exporting(database);
    return { imports: [feature, moduleOf({ imports: [feature], providers: [Queries] }), echo] };
  },
  'in a module that imports ours': (database, echo) => {
    const feature = exporting(database, [echo]);
    return { imports: [moduleOf({ imports: [feature], providers: [Queries] })] };
  },
};

const CLOSERS: Type<Database>[] = [ClosesOnDestroy, ClosesBeforeShutdown, ClosesOnShutdown];

describe('a database is still open while handlers drain', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  /** A handler is running that has not asked the database yet. */
  const expectOpenUntilDrained = async (database: Database, closing: Promise<unknown>) => {
    await turns(20);
    expect(database.isOpen).toBe(true);
    mayQuery.open();
    await closing;
    expect(database.isOpen).toBe(false);
  };

  const kinds = {
    'an application context': (root: Type) =>
      NestFactory.createApplicationContext(root, { logger: apps.logger, abortOnError: false }),
    'an HTTP app': async (root: Type) => {
      const app = await NestFactory.create(root, { logger: apps.logger, abortOnError: false });
      await app.listen(0, '127.0.0.1');
      return app;
    },
    'a testing module': async (root: Type) =>
      (
        await Test.createTestingModule({ imports: [root] })
          .setLogger(apps.logger)
          .compile()
      ).init(),
  };
  const cases = Object.keys(PLACES).flatMap((place) =>
    CLOSERS.flatMap((closer) => Object.keys(kinds).map((kind) => [place, closer, kind] as const)),
  );

  it.each(cases.map(([place, closer, kind]) => [place, closer.name, kind, closer] as const))(
    '%s, %s, in %s',
    async (place, _, kind, closer) => {
      running = gate();
      mayQuery = gate();
      row = undefined;
      const echo = EchoMqModule.forRoot(apps.options());
      const root = moduleOf(PLACES[place]!({ provide: Database, useClass: closer }, echo));
      const app = apps.keep(await kinds[kind as keyof typeof kinds](root));
      const database = app.get(Database, { strict: false });
      await app.get(Jobs).enqueue('queries', 'query');
      await running.opened;
      await expectOpenUntilDrained(database, app.close());
      expect(row).toBe('row');
      const keys = await server.client().zcard('emq:{queries}:active');
      expect(keys).toBe(0);
    },
  );

  it('when its hook stands on the module class itself', async () => {
    running = gate();
    mayQuery = gate();
    class DatabaseModule {
      constructor(readonly database: Database) {}
      onModuleDestroy(): void {
        this.database.isOpen = false;
      }
    }
    Injectable()(DatabaseModule);
    Reflect.defineMetadata('design:paramtypes', [Database], DatabaseModule);
    const feature = { module: DatabaseModule, providers: [Database], exports: [Database] };
    const app = await apps.boot({ imports: [moduleOf({ imports: [feature], providers: [Queries] })] });
    await app.get(Jobs).enqueue('queries', 'query');
    await running.opened;
    row = undefined;
    const closing = app.close();
    await turns(20);
    mayQuery.open();
    await closing;
    expect(row).toBe('row');
    await until(() => !app.get(Database, { strict: false }).isOpen, { what: 'the database to be closed' });
  });

  describe('whose consumers were made by EchoMq.consume', () => {
    const queries = async (database: Database): Promise<void> => {
      running.open();
      await mayQuery.opened;
      row = database.query();
    };
    const consuming = (more: () => Promise<unknown> | undefined = () => undefined) => {
      @Injectable()
      class Consumes implements OnModuleInit {
        constructor(
          private readonly database: Database,
          @Inject(getEchoMqToken()) private readonly echo: EchoMq,
          @Inject(getEchoMqToken('other')) private readonly other: EchoMq,
        ) {}

        onModuleInit(): void {
          this.echo.consume('queries', { attempts: 1 }, () => queries(this.database));
          this.other.consume('queries', {}, async () => {
            await more();
            await queries(this.database);
          });
        }
      }
      return Consumes;
    };
    const boot = async (closer: Type<Database>, consumes: Type) => {
      running = gate();
      mayQuery = gate();
      row = undefined;
      const other = EchoMqModule.forRoot(apps.options({ name: 'other', prefix: 'other' }));
      const providers = [{ provide: Database, useClass: closer }, consumes];
      const app = await apps.boot({ imports: [other, moduleOf({ providers })] });
      return { app, database: app.get(Database, { strict: false }), other: app.get<EchoMq>(getEchoMqToken('other')) };
    };
    const expectRun = async (prefix: string) => {
      const completed = await server.client().hget(`${prefix}:{queries}:metrics:completed`, 'count');
      expect({ row, completed }).toEqual({ row: 'row', completed: '1' });
    };

    const everywhere = CLOSERS.flatMap((closer) =>
      ['emq', 'other'].map((prefix) => [closer.name, prefix, closer] as const),
    );

    it.each(everywhere)('%s, on the instance %s', async (_, prefix, closer) => {
      const { app, database, other } = await boot(closer, consuming());
      await (prefix === 'emq' ? app.get(Jobs) : other.jobs).enqueue('queries', 'query');
      await running.opened;
      await expectOpenUntilDrained(database, app.close());
      await expectRun(prefix);
    });

    it('and may be closed by a handler of one of them, behind all the others', async () => {
      let close = async (): Promise<void> => {};
      const [asked, closed] = [gate(), gate()];
      const more = async () => {
        const closing = close();
        asked.open();
        await closing;
        closed.open();
      };
      const { app, database, other } = await boot(ClosesOnDestroy, consuming(more));
      close = () => app.close();
      await app.get(Jobs).enqueue('queries', 'query');
      await running.opened;
      await other.jobs.enqueue('queries', 'close');
      await asked.opened;
      await expectOpenUntilDrained(database, closed.opened);
      await expectRun('emq');
    });

    it('which consumes nothing more from then on', async () => {
      let refused: unknown;
      @Injectable()
      class Late {
        constructor(private readonly echo: EchoMq) {}

        beforeApplicationShutdown(): void {
          try {
            this.echo.consume('late', {}, () => undefined);
          } catch (error) {
            refused = error;
          }
        }
      }
      const app = await apps.boot({ providers: [Late] });
      await app.close();
      expect(refused).toMatchObject({ code: 'ECHO_STATE', message: expect.stringContaining('consumes nothing more') });
    });
  });
});
