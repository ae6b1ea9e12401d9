import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';
import type { ConsumerOptions } from '../engine/consumer-options.js';
import type { EchoMqOptions } from '../engine/options.js';
import { assertBoolean, assertKnownKeys, show } from '../kernel/arguments.js';
import { EchoConfigError } from '../kernel/errors.js';

export interface EchoMqModuleOptions extends EchoMqOptions {
  /**
   * For an app with several servers: `@InjectJobs(name)` injects this one's jobs, `@Processor(queue, { instance: name })` is
   * served from it. Without a name it is the one that `Jobs` injects. `forRootAsync` takes it beside the factory.
   */
  name?: string | undefined;
  /** False: this process only enqueues; its processors are left alone. Default true. */
  consume?: boolean | undefined;
  /** False: consumers start when `Consumers.start()` is called, never before the app's bootstrap is over. Default true. */
  autoStart?: boolean | undefined;
  /** For every queue of this app; weaker than the options on processors. */
  defaults?: ConsumerOptions | undefined;
  /**
   * True: schedules that an earlier version of this app declared on its handlers, and this one does not, are removed at the start.
   * Default false: the log names them.
   */
  pruneSchedules?: boolean | undefined;
  /** Options per queue, stronger than those on the processors: the way to set them from configuration. */
  queues?: Record<string, ConsumerOptions> | undefined;
}

/** What is computed: all but the name, which stands beside the factory. */
export type ComputedOptions = Omit<EchoMqModuleOptions, 'name'>;

/** What `useClass` and `useExisting` name. */
export interface EchoMqOptionsFactory {
  createEchoMqOptions(): ComputedOptions | Promise<ComputedOptions>;
}

/** Exactly one of `useFactory`, `useClass` and `useExisting`. */
export interface EchoMqModuleAsyncOptions<Answer extends ComputedOptions = ComputedOptions> {
  /** Modules that export what `inject` names, or what the class needs. */
  imports?: ModuleMetadata['imports'] | undefined;
  /** As in {@link EchoMqModuleOptions}; here, because tokens are made before options are computed. */
  name?: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: whatever `inject` names
  useFactory?: ((...args: any[]) => Answer | Promise<Answer>) | undefined;
  /** What the factory is called with. */
  inject?: (InjectionToken | OptionalFactoryDependency)[] | undefined;
  /** A class to be made here. */
  useClass?: Type<EchoMqOptionsFactory> | undefined;
  /** A provider that is there already. */
  useExisting?: InjectionToken | undefined;
}

/**
 * Keeps the compiler from taking a factory whose answer surely has a name. One that may have it, as the whole of
 * {@link EchoMqModuleOptions}, is looked at when it has answered.
 */
export type NamedBeside<Answer> = Answer extends { name: string }
  ? { useFactory: "'name' stands beside useFactory, not in what it answers" }
  : unknown;

/** The engine's part of the options, and the module's own. */
export interface SplitOptions {
  readonly engine: EchoMqOptions;
  readonly consume: boolean;
  readonly autoStart: boolean;
  readonly defaults: ConsumerOptions;
  readonly pruneSchedules: boolean;
  readonly queues: Record<string, ConsumerOptions>;
}

/** The compiler keeps it complete. */
const KNOWN: Record<Exclude<keyof EchoMqModuleOptions, 'clock'>, true> = {
  connection: true,
  prefix: true,
  wire: true,
  connectTimeoutMs: true,
  onBoot: true,
  requestTimeoutMs: true,
  enqueueTimeoutMs: true,
  enqueueBufferLimit: true,
  maxPayloadBytes: true,
  codec: true,
  onError: true,
  onReconnected: true,
  name: true,
  consume: true,
  autoStart: true,
  defaults: true,
  pruneSchedules: true,
  queues: true,
};
const KNOWN_NAMES = new Set(Object.keys(KNOWN));

/** @throws EchoConfigError naming the option; the engine checks its own part */
export function splitOptions(options: EchoMqModuleOptions): SplitOptions {
  if (typeof options !== 'object' || options === null) {
    throw new EchoConfigError("EchoMqModule.forRoot() needs options: { connection: 'redis://...' } at least");
  }
  assertKnownKeys(options, KNOWN_NAMES, 'EchoMqModule options', EchoConfigError);
  const {
    name: _,
    consume = true,
    autoStart = true,
    defaults = {},
    pruneSchedules = false,
    queues = {},
    ...engine
  } = options as EchoMqModuleOptions;
  assertBoolean(consume, 'consume');
  assertBoolean(autoStart, 'autoStart');
  assertBoolean(pruneSchedules, 'pruneSchedules');
  if (typeof queues !== 'object' || queues === null || Array.isArray(queues)) {
    throw new EchoConfigError("option 'queues' must be an object: the options of each queue under its name");
  }
  return { engine, consume, autoStart, defaults, pruneSchedules, queues };
}

/** @throws EchoConfigError unless it is a string that is not empty, or absent */
export function assertInstanceName(name: unknown): asserts name is string | undefined {
  if (name === undefined || (typeof name === 'string' && name !== '')) return;
  throw new EchoConfigError(`option 'name' must be a string that is not empty, got ${show(name)}`);
}
