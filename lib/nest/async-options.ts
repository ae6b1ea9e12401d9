import type { InjectionToken, OptionalFactoryDependency, Provider } from '@nestjs/common';
import { assertKnownKeys, show } from '../kernel/arguments.js';
import { EchoConfigError } from '../kernel/errors.js';
import {
  assertInstanceName,
  type ComputedOptions,
  type EchoMqModuleAsyncOptions,
  type EchoMqOptionsFactory,
} from './module-options.js';

interface Recipe {
  /** What is called, for messages. */
  readonly what: string;
  readonly inject: (InjectionToken | OptionalFactoryDependency)[];
  /** Of what was injected, the call. @throws EchoConfigError when it cannot be called */
  // biome-ignore lint/suspicious/noExplicitAny: whatever `inject` names
  bind(...args: any[]): () => unknown;
  readonly providers: Provider[];
}

const CALL = 'EchoMqModule.forRootAsync';
const METHOD = 'createEchoMqOptions';

/** The compiler keeps it complete. */
const KNOWN: Record<keyof EchoMqModuleAsyncOptions, true> = {
  useFactory: true,
  inject: true,
  useClass: true,
  useExisting: true,
  imports: true,
  name: true,
};
const KNOWN_NAMES = new Set(Object.keys(KNOWN));

/** @throws EchoConfigError naming the option that is unknown or is not what it must be */
export function assertAsyncOptions(options: unknown): asserts options is EchoMqModuleAsyncOptions {
  if (typeof options !== 'object' || options === null) {
    throw new EchoConfigError(
      `${CALL}() needs options: { useFactory: () => ({ connection: 'redis://...' }) } at least`,
    );
  }
  assertKnownKeys(options, KNOWN_NAMES, `${CALL} options`, EchoConfigError);
  const { name, useFactory, inject, useClass, useExisting, imports } = options as Record<string, unknown>;
  assertInstanceName(name);
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    throw new EchoConfigError(`${CALL} needs exactly one of useFactory, useClass and useExisting`);
  }
  const isToken = ['function', 'string', 'symbol'].includes(typeof useExisting);
  assertForm('useFactory', useFactory, typeof useFactory === 'function', 'a function that answers the options');
  assertForm('useClass', useClass, typeof useClass === 'function', `a class with a method ${METHOD}()`);
  assertForm('useExisting', useExisting, isToken, `the token of a provider with a method ${METHOD}()`);
  assertForm('inject', inject, Array.isArray(inject), 'an array of tokens');
  assertForm('imports', imports, Array.isArray(imports), 'an array of modules');
}

function assertForm(name: string, value: unknown, fits: boolean, wanted: string): void {
  if (value === undefined || fits) return;
  throw new EchoConfigError(`${CALL}: option '${name}' must be ${wanted}, got ${show(value)}`);
}

/**
 * The providers that compute options by injection. A factory that fails, or answers nothing, fails the boot: there is no
 * server to fall back to. So does one that answers another name than that beside it.
 */
export function asyncOptionProviders(token: symbol, options: EchoMqModuleAsyncOptions): Provider[] {
  const { name } = options;
  const call = name === undefined ? CALL : `${CALL} ('${name}')`;
  const { what, inject, bind, providers } = recipeOf(options, call);
  const compute = async (...args: unknown[]): Promise<ComputedOptions> => {
    const make = bind(...args);
    let computed: unknown;
    try {
      computed = await make();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new EchoConfigError(`${call}: ${what} failed: ${reason}`, error);
    }
    if (typeof computed !== 'object' || computed === null) {
      throw new EchoConfigError(
        `${call}: ${what} answered ${computed === null ? 'null' : typeof computed}, not options`,
      );
    }
    const answered = (computed as { name?: unknown }).name;
    if (answered === undefined || answered === name) return computed as ComputedOptions;
    throw new EchoConfigError(
      `${call}: ${what} answered name ${show(answered)}, too late for a name: ` +
        `give it beside the factory, as in forRootAsync({ name: 'audit', useFactory })`,
    );
  };
  return [...providers, { provide: token, inject, useFactory: compute }];
}

function recipeOf({ useFactory, inject = [], useClass, useExisting }: EchoMqModuleAsyncOptions, call: string): Recipe {
  if (useFactory !== undefined) {
    return {
      what: 'useFactory',
      inject,
      bind:
        (...args) =>
        () =>
          useFactory(...args),
      providers: [],
    };
  }
  const token = (useClass ?? useExisting) as InjectionToken;
  const name = typeof token === 'function' ? token.name : String(token);
  return {
    what: `${name}.${METHOD}()`,
    inject: [token],
    bind(factory: Partial<EchoMqOptionsFactory> | null | undefined) {
      if (typeof factory?.[METHOD] === 'function') return () => (factory as EchoMqOptionsFactory)[METHOD]();
      throw new EchoConfigError(`${call}: ${name} has no method ${METHOD}(), which answers the options`);
    },
    providers: useClass === undefined ? [] : [useClass],
  };
}
