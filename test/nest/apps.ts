import { afterEach, beforeEach } from '@jest/globals';
import {
  type INestApplicationContext,
  type LoggerService,
  Module,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EchoMqModule, type EchoMqModuleOptions } from '../../lib/index.js';
import type { TestServer } from '../support/server.js';

/** What Nest 10 may say of a module, ours or its own, when the machine is busy. */
const OF_A_SLOW_MACHINE = /^The module "\w+" is taking [\d.]+ms to serialize/;

/** Apps of a spec file: closed after the test that booted them, with what they logged. */
export interface Apps {
  readonly log: { log: string[]; warn: string[]; error: string[]; debug: string[] };
  readonly logger: LoggerService;
  /** Options for the spec's server. */
  options(more?: Partial<EchoMqModuleOptions>): EchoMqModuleOptions;
  /** An application context whose root module has this metadata, and EchoMqModule unless `echo` is null. */
  boot(metadata: ModuleMetadata, echo?: Partial<EchoMqModuleOptions> | null): Promise<INestApplicationContext>;
  /** Closes it after the test. */
  keep<App extends { close(): Promise<void> }>(app: App): App;
}

/** Call it after `useServer()` and before `guardLeaks()`. */
export function useApps(server: TestServer): Apps {
  const kept: { close(): Promise<void> }[] = [];
  const log = { log: [] as string[], warn: [] as string[], error: [] as string[], debug: [] as string[] };
  beforeEach(() => {
    for (const lines of Object.values(log)) lines.length = 0;
  });
  afterEach(async () => {
    for (const app of kept.splice(0)) await app.close();
  });
  const apps: Apps = {
    log,
    logger: {
      log: (line: unknown) => log.log.push(String(line)),
      warn: (line: unknown) => OF_A_SLOW_MACHINE.test(String(line)) || log.warn.push(String(line)),
      error: (line: unknown) => log.error.push(String(line)),
      debug: (line: unknown) => log.debug.push(String(line)),
    },
    options: (more) => ({ connection: server.url, ...more }),
    async boot(metadata, echo = {}) {
      const own = echo === null ? [] : [EchoMqModule.forRoot(apps.options(echo))];
      const root = moduleOf({ ...metadata, imports: [...own, ...(metadata.imports ?? [])] }, 'RootModule');
      const options = { logger: apps.logger, abortOnError: false };
      return apps.keep(await NestFactory.createApplicationContext(root, options));
    },
    keep(app) {
      kept.push(app);
      return app;
    },
  };
  return apps;
}

/** A module class of its own with this metadata. */
export function moduleOf(metadata: ModuleMetadata, name = 'SomeModule'): Type {
  const type = { [name]: class {} }[name]!;
  Module(metadata)(type);
  return type;
}

/** A promise and the way to settle it. */
export function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  let open: (value: T) => void = () => {};
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open: (value) => open(value) };
}

/** Lets whatever can happen without us happen: a number of turns of the event loop, socket reads included. */
export async function turns(count = 50): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((next) => setImmediate(next));
}

/** The error a promise rejects with; a promise that resolves is a failure. */
export async function failure(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    () => undefined,
    (error: Error) => error,
  );
  if (outcome === undefined) throw new Error('expected a rejection');
  return outcome;
}
