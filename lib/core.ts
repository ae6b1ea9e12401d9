export { type BatchOptions, batched } from './engine/batching.js';
export { EchoBulkError, EchoFlowsError } from './engine/bulk-error.js';
export type { EngineBus, Listening, QueueEventListener } from './engine/bus.js';
export type { Consumer } from './engine/consumer.js';
export type { ConsumerEvents, DeadJob } from './engine/consumer-events.js';
export type { ConsumerOptions } from './engine/consumer-options.js';
export { EchoMq } from './engine/echomq.js';
export type { EnqueueOptions } from './engine/enqueue-options.js';
export type { EnqueueResult } from './engine/enqueuer.js';
export type {
  AddedFlow,
  AddedNode,
  ChildrenReport,
  FlowNode,
  FlowOptions,
  FlowTree,
  ParentPolicy,
} from './engine/flow-calls.js';
export { flowNode } from './engine/flow-node.js';
export { Flows } from './engine/flows.js';
export type { Handler } from './engine/handler.js';
export type { EchoMqHealth, HealthOptions, QueueHealth } from './engine/health.js';
export { type DataIssue, EchoDataError, InvalidData } from './engine/invalid-data.js';
export type { Job } from './engine/job.js';
export type { JobOf } from './engine/job-types.js';
export type { JobView } from './engine/job-view.js';
export type { Jobs } from './engine/jobs.js';
export type { BulkCallback, BulkWithCallback, ClaimedJob, EnqueueEntry, Matching, Page } from './engine/jobs-calls.js';
export type { QueueLimitSettings, QueueLimits } from './engine/jobs-limits.js';
export type {
  GroupView,
  LanePage,
  LaneSettings,
  LaneView,
  StandingLaneSettings,
  StandingRate,
  WeightSetting,
} from './engine/lane-settings.js';
export type { Lanes } from './engine/lanes.js';
export type { EchoMqOptions } from './engine/options.js';
export type { QueueEvent, QueueEventName } from './engine/queue-event.js';
export type { Completion, CompletionPage } from './engine/recording.js';
export type {
  DeclareAnswer,
  DeclaredSchedule,
  RunNow,
  Schedule,
  ScheduleDeclaration,
  ScheduleOptions,
  SchedulePage,
} from './engine/schedule-calls.js';
export type { Schedules } from './engine/schedules.js';
export type { Backoff, BackoffFunction, ExponentialBackoff, FixedBackoff, JobBackoff } from './kernel/backoff.js';
export { type Codec, type Envelope, jsonCodec, type TravellingOptions } from './kernel/codec.js';
export type { Dedup, DedupMode } from './kernel/dedup.js';
export {
  EchoArgumentError,
  EchoConfigError,
  EchoError,
  EchoJobError,
  EchoLaneFullError,
  EchoRegistrationError,
  EchoStateError,
  EchoStoreError,
  EchoTimeoutError,
  EchoWireError,
} from './kernel/errors.js';
export { isJobId, readId } from './kernel/id.js';
export type { JobForLane, Lane, LaneBy } from './kernel/lane.js';
export {
  type CancelOutcome,
  Discard,
  type ExtendOutcome,
  JobAborted,
  NotHandled,
  type Outcome,
  RateLimited,
  type RetryOutcome,
  Snooze,
  WaitForChildren,
} from './kernel/outcome.js';
export {
  type DataOf,
  defineQueue,
  type InputOf,
  type JobsOf,
  type Queue,
  type QueueOptions,
  type Schemas,
} from './kernel/queue.js';
export type { Rate } from './kernel/rate.js';
export type { CatchUp, CronTimes, IntervalTimes, Overlap, ScheduleTimes } from './kernel/schedule-spec.js';
export type { StandardSchema } from './kernel/schema.js';
export type { JobState, ListableState } from './kernel/state.js';
export type { ClusterSource, ConnectionSource } from './wire/client-factory.js';
export type { Wire } from './wire/fence.js';
export type { Counts, Promoted, Reaped } from './wire/transitions/index.js';
