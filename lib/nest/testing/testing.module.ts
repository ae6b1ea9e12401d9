import { randomBytes } from 'node:crypto';
import { type DynamicModule, Inject, Module, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { EchoMqOptions } from '../../engine/options.js';
import { assertBoolean, assertKnownKeys, show } from '../../kernel/arguments.js';
import { EchoConfigError } from '../../kernel/errors.js';
import { base62 } from '../../kernel/id.js';
import { DEFAULT_PREFIX } from '../../kernel/keyspace.js';
import { EchoMqCoreModule } from '../core.module.js';
import { Lifecycle } from '../lifecycle.js';
import type { TestOverrides } from '../test-overrides.js';
import { isOptionsToken, TEST_OVERRIDES } from '../tokens.js';
import { TestKit } from './test-kit.js';

export interface EchoMqTestingModuleOptions {
  /** The server for all of the app's EchoMqModules. Default: their own. */
  connection?: EchoMqOptions['connection'] | undefined;
  /**
   * What every key of this test begins with; all of it is removed when the app closes. Put before the app's own prefix, if it
   * has one. 1 to 40 characters of A-Z a-z 0-9 _ . : -. Default `test-` and eight random characters: no two tests meet.
   */
  prefix?: string | undefined;
  /** True: consumers run by themselves, as in production. Default false: jobs run when the {@link TestKit} runs them. */
  autoStart?: boolean | undefined;
}

const KNOWN = new Set(['connection', 'prefix', 'autoStart']);
const CHARACTERS = 8;
/** Shorter than an app's may be: that, and an instance's name, are put behind it. */
const PREFIX = /^[A-Za-z0-9_.:-]{1,40}$/;

/**
 * Puts an app in the hands of a test: import it beside the app's root module and get the {@link TestKit} from the module or
 * app. It changes the options of every `EchoMqModule`, whatever they are: keys have a prefix of their own and are removed at
 * the end, and no consumer starts by itself.
 */
@Module({})
export class EchoMqTestingModule implements OnModuleInit {
  /** @throws EchoConfigError without an EchoMqModule in the app, and beside another EchoMqTestingModule.forRoot */
  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(TestKit) private readonly kit: TestKit,
  ) {
    checkApp(modules);
  }

  /** @throws EchoConfigError naming the option */
  static forRoot(options: EchoMqTestingModuleOptions = {}): DynamicModule {
    const overrides = overridesOf(options);
    return {
      module: EchoMqTestingModule,
      imports: [EchoMqCoreModule],
      providers: [
        { provide: TEST_OVERRIDES, useValue: overrides },
        {
          provide: TestKit,
          inject: [Lifecycle],
          useFactory: (lifecycle: Lifecycle) => new TestKit(lifecycle, overrides.prefix),
        },
      ],
      exports: [TestKit],
    };
  }

  onModuleInit(): void {
    this.kit.begin();
  }
}

function overridesOf(options: EchoMqTestingModuleOptions): TestOverrides {
  assertKnownKeys(options, KNOWN, 'EchoMqTestingModule options', EchoConfigError);
  const given = options as EchoMqTestingModuleOptions;
  const { connection, prefix = `test-${randomCharacters()}`, autoStart = false } = given;
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new EchoConfigError(
      "EchoMqTestingModule: option 'prefix' must be 1 to 40 characters of A-Z a-z 0-9 _ . : -, since the app's own is put " +
        `behind it, got ${show(prefix)}`,
    );
  }
  if (prefix === DEFAULT_PREFIX) {
    throw new EchoConfigError(
      `EchoMqTestingModule: option 'prefix' must not be '${DEFAULT_PREFIX}', which apps use: everything under it is removed`,
    );
  }
  assertBoolean(autoStart, 'autoStart');
  return { connection, prefix, autoStart };
}

function randomCharacters(): string {
  return base62(randomBytes(8).readBigUInt64BE()).padStart(CHARACTERS, '0').slice(-CHARACTERS);
}

function checkApp(modules: ModulesContainer): void {
  const overrides = new Set<unknown>();
  let hasEchoMq = false;
  for (const { providers } of modules.values()) {
    const own = providers.get(TEST_OVERRIDES);
    if (own !== undefined) overrides.add(own.instance);
    hasEchoMq ||= [...providers.keys()].some(isOptionsToken);
  }
  if (overrides.size > 1) {
    throw new EchoConfigError(
      'EchoMqTestingModule.forRoot() is imported twice: one is for all of the app, call it once',
    );
  }
  if (hasEchoMq) return;
  throw new EchoConfigError(
    'EchoMqTestingModule.forRoot() needs an EchoMqModule in the app: import the module under test, with its EchoMqModule.forRoot, beside it',
  );
}
