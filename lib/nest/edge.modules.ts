import {
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { EchoMqCoreModule } from './core.module.js';
import { Lifecycle } from './lifecycle.js';

/**
 * Nest calls hooks module by module, sorted by a module's distance from the root: the farthest first at the start; at
 * shutdown the farthest first on Nest 10, the nearest first on 11 and 12. Two modules at the very ends therefore bracket
 * every other module on all three, which no single place can do: whichever shuts down first drains, before anybody's
 * database is closed, and whichever is last closes the sockets.
 *
 * The hooks stand on the module classes, not on providers: within a module, 10 and 11 run those of providers in parallel.
 */
@Module({ imports: [EchoMqCoreModule] })
export class EchoMqFirstModule implements OnModuleInit, OnModuleDestroy, OnApplicationShutdown {
  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(Lifecycle) private readonly lifecycle: Lifecycle,
  ) {
    standAt(modules, EchoMqFirstModule, Number.POSITIVE_INFINITY);
  }

  onModuleInit(): Promise<void> {
    return this.lifecycle.open();
  }

  onModuleDestroy(): Promise<void> {
    return this.lifecycle.drain();
  }

  onApplicationShutdown(): Promise<void> | undefined {
    return this.lifecycle.passed(this);
  }
}

@Module({ imports: [EchoMqCoreModule] })
export class EchoMqLastModule implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(Lifecycle) private readonly lifecycle: Lifecycle,
  ) {
    standAt(modules, EchoMqLastModule, Number.NEGATIVE_INFINITY);
  }

  onApplicationBootstrap(): Promise<void> | undefined {
    return this.lifecycle.start();
  }

  onModuleDestroy(): Promise<void> {
    return this.lifecycle.drain();
  }

  onApplicationShutdown(): Promise<void> | undefined {
    return this.lifecycle.passed(this);
  }
}

/** Nest computes distances before it makes instances and reads them when hooks run: a constructor is in between. */
function standAt(modules: ModulesContainer, type: Type, distance: number): void {
  for (const module of modules.values()) if (module.metatype === type) module.distance = distance;
}
