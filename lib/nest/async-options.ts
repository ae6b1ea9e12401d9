import type { InjectionToken, OptionalFactoryDependency, Provider } from '@nestjs/common';
import { EchoConfigError } from '../kernel/errors.js';
import type { EchoMqModuleAsyncOptions, EchoMqModuleOptions, EchoMqOptionsFactory } from './module-options.js';

interface Recipe {
  /** What is called, for messages. */
  readonly what: string;
  readonly inject: (InjectionToken | OptionalFactoryDependency)[];
  // biome-ignore lint/suspicious/noExplicitAny: whatever `inject` names
  make(...args: any[]): unknown;
  readonly providers: Provider[];
}

/**
 * The providers that compute options by injection. A factory that fails, or answers nothing, fails the boot: there is no
 * server to fall back to.
 * @throws EchoConfigError when the options do not say how to compute them
 */
export function asyncOptionProviders(token: symbol, options: EchoMqModuleAsyncOptions): Provider[] {
  const { what, inject, make, providers } = recipeOf(options);
  const which = options.name === undefined ? '' : ` ('${options.name}')`;
  const compute = async (...args: unknown[]): Promise<EchoMqModuleOptions> => {
    let computed: unknown;
    try {
      computed = await make(...args);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new EchoConfigError(`EchoMqModule.forRootAsync${which}: ${what} failed: ${reason}`, error);
    }
    if (typeof computed === 'object' && computed !== null) return computed as EchoMqModuleOptions;
    throw new EchoConfigError(
      `EchoMqModule.forRootAsync${which}: ${what} answered ${computed === null ? 'null' : typeof computed}, not options`,
    );
  };
  return [...providers, { provide: token, inject, useFactory: compute }];
}

function recipeOf({ useFactory, inject = [], useClass, useExisting }: EchoMqModuleAsyncOptions): Recipe {
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    throw new EchoConfigError('EchoMqModule.forRootAsync needs exactly one of useFactory, useClass and useExisting');
  }
  if (useFactory !== undefined) return { what: 'useFactory', inject, make: useFactory, providers: [] };
  const token = (useClass ?? useExisting) as InjectionToken;
  const name = typeof token === 'function' ? token.name : String(token);
  return {
    what: `${name}.createEchoMqOptions()`,
    inject: [token],
    make: (factory: EchoMqOptionsFactory) => factory.createEchoMqOptions(),
    providers: useClass === undefined ? [] : [useClass],
  };
}
