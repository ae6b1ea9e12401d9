// The door of the test kit. Beside `nestjs-echomq` itself, in tests only.

export type { DrainFailure, DrainResult } from './engine/by-hand/drain.js';
export type { EnqueuedJob } from './engine/by-hand/enqueued.js';
export { EchoAssertionError } from './nest/testing/assertion-error.js';
export type { CountedMatch, EnqueuedMatch } from './nest/testing/enqueued-match.js';
export {
  type KitDrainOptions,
  type KitIdleOptions,
  type KitPerformOptions,
  type KitScope,
  TestKit,
} from './nest/testing/test-kit.js';
export { EchoMqTestingModule, type EchoMqTestingModuleOptions } from './nest/testing/testing.module.js';
