import { type DynamicModule, Inject, Module, type Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { EchoMq } from '../engine/echomq.js';
import { Jobs } from '../engine/jobs.js';
import { EchoConfigError } from '../kernel/errors.js';
import { asyncOptionProviders } from './async-options.js';
import { Consumers } from './consumers.js';
import { EchoMqCoreModule } from './core.module.js';
import { EchoMqFirstModule, EchoMqLastModule } from './edge.modules.js';
import { Lifecycle } from './lifecycle.js';
import type { EchoMqModuleAsyncOptions, EchoMqModuleOptions } from './module-options.js';
import { CONSUMERS, ECHO_MQ, JOBS } from './tokens.js';

const OPTIONS = Symbol('EchoMqModule options');

/**
 * Gives every module of the app `Jobs`, to enqueue, and runs the jobs of the app's `@Processor` classes. Import it once,
 * in the root module, with `forRoot` or `forRootAsync`.
 *
 * It connects before any module's `onModuleInit` and fails the boot when it cannot. Jobs run from when every module's
 * `onApplicationBootstrap` is over. At shutdown running handlers are waited for before any module's `onModuleDestroy`;
 * the connection closes last.
 */
@Module({})
export class EchoMqModule {
  /** @throws EchoConfigError when it stands alone among an app's imports, without a forRoot anywhere */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    for (const { providers } of modules.values()) if (providers.has(OPTIONS)) return;
    throw new EchoConfigError(
      "EchoMqModule is imported without options: import EchoMqModule.forRoot({ connection: 'redis://...' }), or forRootAsync, in the root module",
    );
  }

  static forRoot(options: EchoMqModuleOptions): DynamicModule {
    // A value, not a factory: Nest 10 tells two dynamic modules apart by what they hold.
    return moduleOf([{ provide: OPTIONS, useValue: options ?? null }]);
  }

  /** @throws EchoConfigError unless exactly one of `useFactory`, `useClass` and `useExisting` is given */
  static forRootAsync(options: EchoMqModuleAsyncOptions): DynamicModule {
    return moduleOf(asyncOptionProviders(OPTIONS, options), options.imports);
  }
}

function moduleOf(options: Provider[], imports: DynamicModule['imports'] = []): DynamicModule {
  return {
    module: EchoMqModule,
    global: true,
    imports: [EchoMqCoreModule, EchoMqFirstModule, EchoMqLastModule, ...imports],
    providers: [
      ...options,
      {
        provide: ECHO_MQ,
        inject: [Lifecycle, OPTIONS],
        useFactory: (lifecycle: Lifecycle, given: EchoMqModuleOptions) => lifecycle.use(given),
      },
      { provide: JOBS, inject: [ECHO_MQ], useFactory: (echo: EchoMq) => echo.jobs },
      { provide: CONSUMERS, inject: [Lifecycle], useFactory: (lifecycle: Lifecycle) => lifecycle.consumers },
      { provide: EchoMq, useExisting: ECHO_MQ },
      { provide: Jobs, useExisting: JOBS },
      { provide: Consumers, useExisting: CONSUMERS },
    ],
    exports: [ECHO_MQ, JOBS, CONSUMERS, EchoMq, Jobs, Consumers],
  };
}
