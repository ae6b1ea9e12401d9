import { type DynamicModule, Module } from '@nestjs/common';
import { EchoMqModule } from 'nestjs-echomq';
import { AuditsController } from './audits/audits.controller.js';
import { Audits } from './audits/audits.js';
import { AuditsProcessor } from './audits/audits.processor.js';
import { DocumentsProcessor } from './documents/documents.processor.js';
import { Settings } from './settings.js';

@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: Nest's shape of a module
export class AppModule {
  /** The whole app. In yours the settings may come from @nestjs/config: then use `EchoMqModule.forRootAsync`. */
  static with(settings: Settings): DynamicModule {
    return {
      module: AppModule,
      imports: [EchoMqModule.forRoot({ connection: settings.redisUrl, prefix: 'sample' })],
      controllers: [AuditsController],
      // A processor is a provider like any other: it is found by its decorator, there is nothing to register.
      providers: [{ provide: Settings, useValue: settings }, Audits, AuditsProcessor, DocumentsProcessor],
    };
  }
}
