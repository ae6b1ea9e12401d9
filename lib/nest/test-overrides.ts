import { createHash } from 'node:crypto';
import type { ModulesContainer } from '@nestjs/core';
import type { EchoMqOptions } from '../engine/options.js';
import type { EchoMqModuleOptions } from './module-options.js';
import { TEST_OVERRIDES } from './tokens.js';

/** What a test changes in the options of every `EchoMqModule` of its app. */
export interface TestOverrides {
  /** Put before the app's own: no test meets another's keys. */
  readonly prefix: string;
  /** Another server than the app's. */
  readonly connection?: EchoMqOptions['connection'] | undefined;
  /** False: no consumer starts by itself. */
  readonly autoStart: boolean;
}

/** Those of the app, if a testing module is among its imports: it provides them as a value, which is there from the start. */
export function testOverridesOf(modules: ModulesContainer): TestOverrides | undefined {
  for (const { providers } of modules.values()) {
    const provided = providers.get(TEST_OVERRIDES);
    if (provided !== undefined) return provided.instance as unknown as TestOverrides;
  }
  return undefined;
}

export function overridden(
  options: EchoMqModuleOptions,
  { prefix, connection, autoStart }: TestOverrides,
  name: string | undefined,
): EchoMqModuleOptions {
  return {
    ...options,
    prefix: prefixed(prefix, name, options.prefix),
    autoStart,
    ...(connection === undefined ? {} : { connection }),
  };
}

const PREFIX = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Two instances may use one server under different prefixes, or different servers under the same. */
function prefixed(test: string, name: string | undefined, own: string | undefined): string {
  const parts = [name, own].filter((part) => part !== undefined);
  const whole = [test, ...parts].join('.');
  if (PREFIX.test(whole)) return whole;
  // An instance may be called what no prefix can be.
  return `${test}.${createHash('sha1').update(JSON.stringify(parts)).digest('hex').slice(0, 16)}`;
}
