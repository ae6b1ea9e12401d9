import { type DynamicModule, Inject, Module, type Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { EchoMq } from '../engine/echomq.js';
import { Flows } from '../engine/flows.js';
import { Jobs } from '../engine/jobs.js';
import { Lanes } from '../engine/lanes.js';
import { Schedules } from '../engine/schedules.js';
import { EchoConfigError } from '../kernel/errors.js';
import { assertAsyncOptions, asyncOptionProviders } from './async-options.js';
import { Bus } from './bus.js';
import { Consumers } from './consumers.js';
import { EchoMqCoreModule } from './core.module.js';
import { EchoMqFirstModule, EchoMqLastModule } from './edge.modules.js';
import { EchoMqHealthIndicator } from './health-indicator.js';
import { Lifecycle } from './lifecycle.js';
import {
  assertInstanceName,
  type ComputedOptions,
  type EchoMqModuleAsyncOptions,
  type EchoMqModuleOptions,
  type NamedBeside,
} from './module-options.js';
import {
  getBusToken,
  getConsumersToken,
  getEchoMqOptionsToken,
  getEchoMqToken,
  getFlowsToken,
  getJobsToken,
  getLanesToken,
  getSchedulesToken,
  isOptionsToken,
} from './tokens.js';

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
    for (const { providers } of modules.values()) if ([...providers.keys()].some(isOptionsToken)) return;
    throw new EchoConfigError(
      "EchoMqModule is imported without options: import EchoMqModule.forRoot({ connection: 'redis://...' }), or forRootAsync, in the root module",
    );
  }

  static forRoot(options: EchoMqModuleOptions): DynamicModule {
    const name = options?.name;
    // A value, not a factory: Nest 10 tells two dynamic modules apart by what they hold.
    return moduleOf(name, [{ provide: getEchoMqOptionsToken(name), useValue: options ?? null }]);
  }

  /**
   * What is computed has no `name`: it stands here, beside the factory.
   * @throws EchoConfigError naming the option that is unknown or makes no sense, and unless exactly one of `useFactory`,
   * `useClass` and `useExisting` is given
   */
  static forRootAsync<Answer extends ComputedOptions>(
    options: EchoMqModuleAsyncOptions<Answer> & NamedBeside<Answer>,
  ): DynamicModule {
    assertAsyncOptions(options);
    const { name, imports } = options;
    return moduleOf(name, asyncOptionProviders(getEchoMqOptionsToken(name), options), imports);
  }
}

function moduleOf(
  name: string | undefined,
  options: Provider[],
  imports: DynamicModule['imports'] = [],
): DynamicModule {
  assertInstanceName(name);
  const echo = getEchoMqToken(name);
  const jobs = getJobsToken(name);
  const flows = getFlowsToken(name);
  const schedules = getSchedulesToken(name);
  const lanes = getLanesToken(name);
  const consumers = getConsumersToken(name);
  const bus = getBusToken(name);
  const providers: Provider[] = [
    {
      provide: echo,
      inject: [Lifecycle, getEchoMqOptionsToken(name)],
      useFactory: (lifecycle: Lifecycle, given: EchoMqModuleOptions) => lifecycle.use(name, given).echo,
    },
    { provide: jobs, inject: [echo], useFactory: ({ jobs }: EchoMq) => jobs },
    { provide: flows, inject: [echo], useFactory: ({ flows }: EchoMq) => flows },
    { provide: schedules, inject: [echo], useFactory: ({ schedules }: EchoMq) => schedules },
    { provide: lanes, inject: [echo], useFactory: ({ lanes }: EchoMq) => lanes },
    {
      provide: consumers,
      // Behind the engine, which makes the instance.
      inject: [Lifecycle, echo],
      useFactory: (lifecycle: Lifecycle) => lifecycle.instanceOf(name).consumers,
    },
    { provide: bus, inject: [Lifecycle, echo], useFactory: (lifecycle: Lifecycle) => lifecycle.instanceOf(name).bus },
  ];
  if (name === undefined) {
    providers.push(
      { provide: EchoMq, useExisting: echo },
      { provide: Jobs, useExisting: jobs },
      { provide: Flows, useExisting: flows },
      { provide: Schedules, useExisting: schedules },
      { provide: Lanes, useExisting: lanes },
      { provide: Consumers, useExisting: consumers },
      { provide: Bus, useExisting: bus },
      {
        provide: EchoMqHealthIndicator,
        inject: [echo],
        useFactory: (engine: EchoMq) => new EchoMqHealthIndicator(engine),
      },
    );
  }
  return {
    module: EchoMqModule,
    global: true,
    imports: [EchoMqCoreModule, EchoMqFirstModule, EchoMqLastModule, ...imports],
    providers: [...options, ...providers],
    exports: providers.map((provider) => (provider as { provide: symbol }).provide),
  };
}
