// biome-ignore-all lint/suspicious/noThenProperty: it is what the option is called, and no function
import { expectTypeOf } from 'expect-type';
import {
  type BatchOptions,
  type BulkCallback,
  Bus,
  type Codec,
  type ConsumerOptions,
  Consumers,
  type Dedup,
  type DtoSchemaOptions,
  dtoSchema,
  EchoMq,
  EchoMqHealthIndicator,
  type EchoMqHealthIndicatorOptions,
  EchoMqModule,
  type EchoMqModuleAsyncOptions,
  type EchoMqModuleOptions,
  type EchoMqOptions,
  type EnqueueEntry,
  type EnqueueOptions,
  type FlowNode,
  type FlowOptions,
  Flows,
  flowNode,
  type HealthOptions,
  type JobBackoff,
  type JobBatch,
  type JobSchedule,
  Jobs,
  type LaneSettings,
  Lanes,
  type Matching,
  OnJob,
  OnQueueEvent,
  type OnQueueEventOptions,
  Processor,
  type ProcessorOptions,
  type Queue,
  type QueueLimitSettings,
  type QueueOptions,
  type Rate,
  RateLimited,
  type ScheduleDeclaration,
  type ScheduleOptions,
  Schedules,
  type ScheduleTimes,
  type TravellingOptions,
  type WeightSetting,
} from 'nestjs-echomq';
import {
  type CountedMatch,
  EchoMqTestingModule,
  type EchoMqTestingModuleOptions,
  type EnqueuedMatch,
  type KitDrainOptions,
  type KitIdleOptions,
  type KitPerformOptions,
  type KitScope,
  TestKit,
} from 'nestjs-echomq/testing';

// For who compiles with exactOptionalPropertyTypes: an option that may be left out may also be given as undefined.

/** The options that may be left out, and may not be undefined. */
type Exact<Options> = Options extends unknown
  ? {
      [Name in keyof Options]-?: object extends Pick<Options, Name>
        ? { [Given in Name]: undefined } extends Pick<Options, Name>
          ? never
          : Name
        : never;
    }[keyof Options]
  : never;
/** The same of all that the methods of a class take. */
type ExactIn<Api> = {
  [Method in keyof Api]: Api[Method] extends (...given: infer Given) => unknown
    ? Exact<Exclude<Extract<NonNullable<Given[number]>, object>, Queue | readonly unknown[]>>
    : never;
}[keyof Api];
declare class Precise {
  look(queue: string | Queue, options?: { depth?: number; limit?: number | undefined; name: string }): void;
}
expectTypeOf<ExactIn<Precise>>().toEqualTypeOf<'depth'>();

expectTypeOf<ExactIn<Jobs>>().toBeNever();
expectTypeOf<ExactIn<Flows>>().toBeNever();
expectTypeOf<ExactIn<Schedules>>().toBeNever();
expectTypeOf<ExactIn<Lanes>>().toBeNever();
expectTypeOf<ExactIn<EchoMq>>().toBeNever();
expectTypeOf<ExactIn<Bus>>().toBeNever();
expectTypeOf<ExactIn<Consumers>>().toBeNever();
expectTypeOf<ExactIn<TestKit>>().toBeNever();
expectTypeOf<ExactIn<EchoMqHealthIndicator>>().toBeNever();
expectTypeOf<ExactIn<typeof EchoMq>>().toBeNever();
expectTypeOf<ExactIn<typeof EchoMqModule>>().toBeNever();
expectTypeOf<ExactIn<typeof EchoMqTestingModule>>().toBeNever();
expectTypeOf<Exact<EchoMqOptions | EchoMqModuleOptions | EchoMqModuleAsyncOptions>>().toBeNever();
expectTypeOf<Exact<ConsumerOptions | ProcessorOptions | OnQueueEventOptions | DtoSchemaOptions>>().toBeNever();
expectTypeOf<Exact<EnqueueOptions | EnqueueEntry | BulkCallback | TravellingOptions>>().toBeNever();
expectTypeOf<Exact<FlowNode | FlowOptions | Matching | BatchOptions | QueueOptions<unknown>>>().toBeNever();
expectTypeOf<Exact<JobBackoff | Dedup | Rate | LaneSettings | WeightSetting | QueueLimitSettings>>().toBeNever();
expectTypeOf<Exact<ScheduleOptions | ScheduleTimes | ScheduleDeclaration | JobSchedule | JobBatch>>().toBeNever();
expectTypeOf<Exact<Codec | HealthOptions | EchoMqHealthIndicatorOptions>>().toBeNever();
expectTypeOf<Exact<EchoMqTestingModuleOptions | EnqueuedMatch | CountedMatch>>().toBeNever();
expectTypeOf<Exact<KitScope | KitDrainOptions | KitIdleOptions | KitPerformOptions>>().toBeNever();

declare const jobs: Jobs, flows: Flows, schedules: Schedules, lanes: Lanes, echo: EchoMq, kit: TestKit;
declare const Mail: Queue<{ welcome: { to: string }; digest: undefined }>;
declare const some: number | undefined, text: string | undefined, either: boolean | undefined;
declare const options: EnqueueOptions | undefined;

jobs.enqueue(
  'mail',
  'welcome',
  {},
  { delayMs: some, priority: some, lane: text, dedup: undefined, backoff: undefined },
);
jobs.enqueue(Mail, 'welcome', { to: 'Ada' }, options);
jobs.enqueue(Mail, 'digest', undefined, options);
jobs.enqueueMany(Mail, [{ name: 'welcome', data: { to: 'Ada' }, opts: options }]);
jobs.enqueueMany(Mail, [], { then: { name: 'digest', data: undefined, opts: options, queue: undefined } });
jobs.enqueueAndWait(Mail, 'welcome', { to: 'Ada' }, { timeoutMs: some, handlerTimeoutMs: some });
jobs.enqueue('mail', 'x', {}, { dedup: { key: 'k', mode: undefined, ttlMs: some } });
jobs.enqueue('mail', 'x', {}, { backoff: { type: 'exponential', delayMs: 1, maxMs: some, jitter: some } });
jobs.list('mail', 'pending', { offset: some, limit: some, lane: text });
jobs.completions('mail', { after: text, limit: some });
jobs.claim('mail', { leaseMs: 1000, count: some });
jobs.limit('mail', { concurrency: some, rate: { limit: 1, perMs: 1000, burst: some } });
jobs.schedule('mail', 'digest', { cron: '@daily', tz: text }, 'digest', {}, { catchUp: undefined, overlap: undefined });
jobs.schedule(Mail, 'digest', { everyMs: 1000 }, 'digest', undefined, undefined);
schedules.declare('mail', [
  { key: 'k', times: { everyMs: 1000 }, name: 'digest', data: undefined, options: undefined },
]);
flows.add({ queue: 'mail', name: 'x', data: undefined, opts: { parentPolicy: undefined }, children: undefined });
flows.add(flowNode(Mail, 'welcome', { to: 'Ada' }, { opts: undefined, children: undefined }));
lanes.configure('mail', null, { weight: some, cap: undefined, rate: undefined, maxWaiting: undefined });
echo.health({ timeoutMs: some, maxWaitingMs: some });
new EchoMqHealthIndicator(echo).isHealthy('mail', { throwOnDown: either });
new RateLimited(1000, { scope: undefined });

EchoMq.connect({ connection: 'redis://localhost', prefix: text, codec: undefined, onError: undefined });
EchoMq.connect({ connection: { cluster: [], options: undefined } });
echo.consume('mail', { concurrency: some, record: either, backoff: undefined }, () => undefined);
EchoMqModule.forRoot({ connection: 'redis://localhost', name: text, consume: either, defaults: undefined });
EchoMqModule.forRootAsync({
  ...{ name: text, imports: undefined, inject: undefined, useClass: undefined, useExisting: undefined },
  useFactory: () => ({ connection: 'redis://localhost', queues: undefined }),
});
EchoMqTestingModule.forRoot({ connection: undefined, prefix: text, autoStart: either });
dtoSchema(class {}, { transform: either, whitelist: either });

@Processor('mail', { concurrency: some, instance: text, lane: undefined })
class MailProcessor {
  @OnJob('digest', { cron: '@daily', tz: text, key: text, data: undefined, overlap: undefined })
  digest(): void {}

  @OnJob('row', { batch: { size: 2, waitMs: 1 }, cron: undefined, everyMs: undefined })
  rows(): void {}

  @OnQueueEvent('mail', 'dead', { instance: text })
  dead(): void {}
}

kit.enqueued('mail', { instance: text });
kit.assertEnqueued({ queue: 'mail', name: text, delayMs: some, opts: undefined, count: some, instance: text });
kit.assertEnqueued({ queue: Mail, name: undefined, data: undefined, opts: { attempts: some } });
kit.refuteEnqueued({ queue: Mail, priority: some, runAt: undefined, toleranceMs: some });
kit.drain({ queue: undefined, scheduled: either, recursive: either, limit: some, throwOnFailure: either });
kit.idle({ timeoutMs: some });
kit.performJob(MailProcessor, 'digest', undefined, { attempt: some, opts: options, children: { values: undefined } });
kit.performJob(Mail, 'digest', undefined, undefined);
