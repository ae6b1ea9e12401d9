export { EchoBulkError } from './engine/bulk-error.js';
export type { Consumer, ConsumerEvents, DeadJob } from './engine/consumer.js';
export type { ConsumerOptions } from './engine/consumer-options.js';
export { EchoMq } from './engine/echomq.js';
export type { EnqueueOptions } from './engine/enqueue-options.js';
export type { EnqueueResult } from './engine/enqueuer.js';
export type { Handler } from './engine/handler.js';
export type { EchoMqHealth, HealthOptions, QueueHealth } from './engine/health.js';
export type { Job } from './engine/job.js';
export type { JobView } from './engine/job-view.js';
export type { ClaimedJob, EnqueueEntry, Jobs, Page } from './engine/jobs.js';
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
export type { ClusterSource, ConnectionSource } from './wire/client.js';
export type { Wire } from './wire/fence.js';
export type { Counts, Promoted, Reaped } from './wire/transitions/index.js';
