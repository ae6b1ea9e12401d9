import { Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { Lifecycle } from './lifecycle.js';

/** Static, so that an app has one {@link Lifecycle} however many dynamic modules are made of EchoMqModule. */
@Module({
  providers: [
    {
      provide: Lifecycle,
      inject: [ModulesContainer],
      useFactory: (modules: ModulesContainer) => new Lifecycle(modules),
    },
  ],
  exports: [Lifecycle],
})
export class EchoMqCoreModule {}
