import { afterEach } from '@jest/globals';
import type { INestApplicationContext, Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { KINDS } from '../../drain/kinds.js';

/** What a test may boot: the kinds of app that a process may boot, and those of a test. */
export const BOOTS: Record<string, (root: Type) => Promise<INestApplicationContext>> = {
  ...KINDS,
  'a testing module': async (root) => (await compiled(root)).init(),
  'an HTTP app of a testing module': async (root) =>
    (await compiled(root)).createNestApplication({ logger: false }).init(),
};

export function compiled(root: Type): Promise<TestingModule> {
  return Test.createTestingModule({ imports: [root] }).compile();
}

/** Apps of a test: those that it does not close itself are closed after it. */
export interface Apps {
  keep<App extends Closable>(app: App): App;
  /** Once: Nest runs the hooks of an app again when it is closed again. */
  close(app: Closable): Promise<void>;
}

interface Closable {
  close(): Promise<void>;
}

/** Call it before `guardLeaks()`. */
export function useApps(): Apps {
  const kept = new Set<Closable>();
  const close = (app: Closable) => {
    kept.delete(app);
    return app.close();
  };
  afterEach(async () => {
    await Promise.all([...kept].map(close));
  });
  return {
    keep(app) {
      kept.add(app);
      return app;
    },
    close,
  };
}
