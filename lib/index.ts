// Classes that stand in decorated signatures (Job, Jobs, ...) are exported as values: the compiler keeps them as metadata.

export { EchoBulkError } from './engine/bulk-error.js';
export type { Consumer, ConsumerEvents, DeadJob } from './engine/consumer.js';
export type { ConsumerOptions } from './engine/consumer-options.js';
export { EchoMq } from './engine/echomq.js';
export type { EnqueueOptions } from './engine/enqueue-options.js';
export type { EnqueueResult } from './engine/enqueuer.js';
export type { Handler } from './engine/handler.js';
export type { EchoMqHealth, HealthOptions, QueueHealth } from './engine/health.js';
export { Job } from './engine/job.js';
export type { JobView } from './engine/job-view.js';
export { type ClaimedJob, type EnqueueEntry, Jobs, type Page } from './engine/jobs.js';
export type { EchoMqOptions } from './engine/options.js';
export type { Backoff, BackoffFunction, ExponentialBackoff, FixedBackoff, JobBackoff } from './kernel/backoff.js';
export { type Codec, type Envelope, jsonCodec, type TravellingOptions } from './kernel/codec.js';
export {
  EchoArgumentError,
  EchoConfigError,
  EchoError,
  EchoRegistrationError,
  EchoStateError,
  EchoStoreError,
  EchoTimeoutError,
  EchoWireError,
} from './kernel/errors.js';
export { isJobId, readId } from './kernel/id.js';
export {
  type CancelOutcome,
  Discard,
  type ExtendOutcome,
  JobAborted,
  NotHandled,
  type Outcome,
  type RetryOutcome,
  Snooze,
} from './kernel/outcome.js';
export type { JobState, ListableState } from './kernel/state.js';
export { Consumers } from './nest/consumers.js';
export { EchoMqModule } from './nest/echomq.module.js';
export {
  EchoMqHealthIndicator,
  type EchoMqHealthIndicatorOptions,
  type EchoMqHealthResult,
} from './nest/health-indicator.js';
export { InjectConsumers, InjectEchoMq, InjectJobs } from './nest/inject.js';
export type { EchoMqModuleAsyncOptions, EchoMqModuleOptions, EchoMqOptionsFactory } from './nest/module-options.js';
export { OnJob } from './nest/on-job.js';
export { Processor } from './nest/processor.js';
export { getConsumersToken, getEchoMqOptionsToken, getEchoMqToken, getJobsToken } from './nest/tokens.js';
export type { ClusterSource, ConnectionSource } from './wire/client.js';
export type { Wire } from './wire/fence.js';
export type { Counts, Promoted, Reaped } from './wire/transitions/index.js';
