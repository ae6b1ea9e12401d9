import type { LazyModuleLoader } from '@nestjs/core';

/**
 * Nest tells nobody that a module was loaded late, so the app's only loader is made to: `after` is called when a module
 * has been loaded, and what it throws is what `load()` rejects with.
 */
export function afterLazyLoads(loader: LazyModuleLoader, after: () => void): void {
  const load = loader.load.bind(loader);
  loader.load = async (...args: Parameters<typeof load>) => {
    const moduleRef = await load(...args);
    after();
    return moduleRef;
  };
}
