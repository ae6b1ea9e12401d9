import { Module } from '@nestjs/common';
import { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { JobScopeModule } from './job-scope.module.js';
import { afterLazyLoads } from './lazy-modules.js';
import { Lifecycle } from './lifecycle.js';

/** Static, so that an app has one {@link Lifecycle} however many dynamic modules are made of EchoMqModule. */
@Module({
  imports: [JobScopeModule],
  providers: [
    {
      provide: Lifecycle,
      inject: [ModulesContainer, LazyModuleLoader],
      useFactory: (modules: ModulesContainer, loader: LazyModuleLoader) => {
        const lifecycle = new Lifecycle(modules);
        afterLazyLoads(loader, () => lifecycle.rescan());
        return lifecycle;
      },
    },
  ],
  exports: [Lifecycle],
})
export class EchoMqCoreModule {}
