import { AsyncResource } from 'node:async_hooks';

/**
 * Calls what is somebody else's in an async context of its own, a copy of ours. Called in ours, one that enters a store
 * (`AsyncLocalStorage.enterWith`) would leave it behind for whoever is called next, another tenant's job, say.
 */
export function inOwnContext<T>(act: () => T): T {
  return new AsyncResource('EchoMqCall').runInAsyncScope(act);
}
