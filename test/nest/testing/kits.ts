import { afterEach } from '@jest/globals';
import type { LoggerService, ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { EchoMqModule, type EchoMqModuleOptions, Jobs } from '../../../lib/index.js';
import { EchoMqTestingModule, type EchoMqTestingModuleOptions, TestKit } from '../../../lib/testing.js';
import type { TestServer } from '../../support/server.js';

/** A testing module with its kit. */
export interface Kitted {
  readonly module: TestingModule;
  readonly kit: TestKit;
  readonly jobs: Jobs;
}

export interface Kits {
  /** An app whose root module has this metadata, with an EchoMqModule on the spec's server and the kit; initialised. */
  boot(
    metadata: ModuleMetadata,
    echo?: Partial<EchoMqModuleOptions>,
    kit?: EchoMqTestingModuleOptions,
    logger?: LoggerService,
  ): Promise<Kitted>;
  /** Closes it after the test. */
  keep<App extends { close(): Promise<void> }>(app: App): App;
}

/** Call it after `useServer()` and before `guardLeaks()`. */
export function useKits(server: Pick<TestServer, 'url'>): Kits {
  const kept: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const app of kept.splice(0)) await app.close();
  });
  const keep: Kits['keep'] = (app) => {
    kept.push(app);
    return app;
  };
  return {
    keep,
    async boot(metadata, echo = {}, kit = {}, logger = undefined) {
      const builder = Test.createTestingModule({
        ...metadata,
        imports: [
          EchoMqModule.forRoot({ connection: server.url, ...echo }),
          EchoMqTestingModule.forRoot(kit),
          ...(metadata.imports ?? []),
        ],
      });
      const module = await (logger ? builder.setLogger(logger) : builder).compile();
      keep(module);
      await module.init();
      return { module, kit: module.get(TestKit), jobs: module.get(Jobs) };
    },
  };
}
