import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';
import type { ConsumerOptions } from '../engine/consumer-options.js';
import type { EchoMqOptions } from '../engine/options.js';
import { assertBoolean, assertKnownKeys } from '../kernel/arguments.js';
import { EchoConfigError } from '../kernel/errors.js';

export interface EchoMqModuleOptions extends EchoMqOptions {
  /** False: this process only enqueues; its processors are left alone. Default true. */
  consume?: boolean;
  /** Options per queue, stronger than those on the processors: the way to set them from configuration. */
  queues?: Record<string, ConsumerOptions>;
}

/** What `useClass` and `useExisting` name. */
export interface EchoMqOptionsFactory {
  createEchoMqOptions(): EchoMqModuleOptions | Promise<EchoMqModuleOptions>;
}

/** Exactly one of `useFactory`, `useClass` and `useExisting`. */
export interface EchoMqModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  // biome-ignore lint/suspicious/noExplicitAny: whatever `inject` names
  useFactory?: (...args: any[]) => EchoMqModuleOptions | Promise<EchoMqModuleOptions>;
  /** What the factory is called with. */
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  /** A class to be made here. */
  useClass?: Type<EchoMqOptionsFactory>;
  /** A provider that is there already. */
  useExisting?: InjectionToken;
}

/** The engine's part of the options, and the module's own. */
export interface SplitOptions {
  readonly engine: EchoMqOptions;
  readonly consume: boolean;
  readonly queues: Record<string, ConsumerOptions>;
}

/** The compiler keeps it complete. */
const KNOWN: Record<Exclude<keyof EchoMqModuleOptions, 'clock'>, true> = {
  connection: true,
  prefix: true,
  wire: true,
  connectTimeoutMs: true,
  requestTimeoutMs: true,
  enqueueTimeoutMs: true,
  enqueueBufferLimit: true,
  maxPayloadBytes: true,
  codec: true,
  onError: true,
  onReconnected: true,
  consume: true,
  queues: true,
};
const KNOWN_NAMES = new Set(Object.keys(KNOWN));

/** @throws EchoConfigError naming the option; the engine checks its own part */
export function splitOptions(options: EchoMqModuleOptions): SplitOptions {
  if (typeof options !== 'object' || options === null) {
    throw new EchoConfigError("EchoMqModule.forRoot() needs options: { connection: 'redis://...' } at least");
  }
  assertKnownKeys(options, KNOWN_NAMES, 'EchoMqModule options', EchoConfigError);
  const { consume = true, queues = {}, ...engine } = options as EchoMqModuleOptions;
  assertBoolean(consume, 'consume');
  if (typeof queues !== 'object' || queues === null || Array.isArray(queues)) {
    throw new EchoConfigError("option 'queues' must be an object: the options of each queue under its name");
  }
  return { engine, consume, queues };
}
