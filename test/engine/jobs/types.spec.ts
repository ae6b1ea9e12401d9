import { describe, it } from '@jest/globals';
import { expectTypeOf } from 'expect-type';
import type {
  Backoff,
  BackoffFunction,
  CancelOutcome,
  ClaimedJob,
  Codec,
  ConnectionSource,
  Consumer,
  ConsumerOptions,
  Counts,
  EchoMq,
  EchoMqOptions,
  EnqueueEntry,
  EnqueueOptions,
  EnqueueResult,
  Envelope,
  ExtendOutcome,
  Handler,
  Job,
  JobBackoff,
  JobState,
  Jobs,
  JobView,
  ListableState,
  Outcome,
  Page,
  Promoted,
  Queue,
  Reaped,
  RetryOutcome,
  TravellingOptions,
  Wire,
} from '../../../lib/core.js';
import * as core from '../../../lib/core.js';

// Checked by the compiler: at run time these tests say nothing.
describe('the types of the public surface', () => {
  it('EchoMq: made by connect or create, never by new', () => {
    expectTypeOf(core.EchoMq.connect).parameters.toEqualTypeOf<[options: EchoMqOptions]>();
    expectTypeOf(core.EchoMq.connect).returns.resolves.toEqualTypeOf<EchoMq>();
    expectTypeOf(core.EchoMq.create).returns.toEqualTypeOf<EchoMq>();
    // @ts-expect-error its constructor is private
    (settings: never) => new core.EchoMq(settings);
    expectTypeOf<EchoMq['jobs']>().toEqualTypeOf<Jobs>();
    const consume = (echo: EchoMq, options: ConsumerOptions, handler: Handler) => echo.consume('q', options, handler);
    expectTypeOf(consume).returns.toEqualTypeOf<Consumer>();
    // A handler that closes its own consumer needs no annotation.
    (echo: EchoMq) => {
      const consumer = echo.consume('q', {}, () => consumer.close());
      expectTypeOf(consumer).toEqualTypeOf<Consumer>();
    };
    expectTypeOf<EchoMq['close']>().returns.resolves.toBeVoid();
  });

  it('EchoMqOptions: only the connection is needed', () => {
    expectTypeOf<{ connection: 'redis://x' }>().toExtend<EchoMqOptions>();
    // biome-ignore lint/complexity/noBannedTypes: an object without anything is what must not do
    expectTypeOf<{}>().not.toExtend<EchoMqOptions>();
    expectTypeOf<EchoMqOptions['connection']>().toEqualTypeOf<ConnectionSource>();
    expectTypeOf<string>().toExtend<ConnectionSource>();
    expectTypeOf<{ host: string; port: number }>().toExtend<ConnectionSource>();
    expectTypeOf<{ cluster: { host: string; port: number }[] }>().toExtend<ConnectionSource>();
    expectTypeOf<number>().not.toExtend<ConnectionSource>();
    expectTypeOf<Wire>().toEqualTypeOf<4 | 6>();
    expectTypeOf<EchoMqOptions['codec']>().toEqualTypeOf<Codec | undefined>();
  });

  it('enqueue: data of any kind, options checked, a result with an id and a status', () => {
    const enqueue = (jobs: Jobs, queue: string, name: string, data: unknown, opts: EnqueueOptions) =>
      jobs.enqueue(queue, name, data, opts);
    expectTypeOf(enqueue).returns.resolves.toEqualTypeOf<EnqueueResult>();
    expectTypeOf<EnqueueResult>().toEqualTypeOf<{
      id: string;
      status: 'landed' | 'duplicate' | 'replaced';
      state?: JobState | 'gone';
    }>();
    expectTypeOf<keyof EnqueueOptions>().toEqualTypeOf<
      | 'delayMs'
      | 'runAt'
      | 'priority'
      | 'ageingMs'
      | 'attempts'
      | 'backoff'
      | 'timeoutMs'
      | 'keepMs'
      | 'maxStalls'
      | 'id'
      | 'lane'
      | 'dedup'
    >();
    expectTypeOf<EnqueueOptions['runAt']>().toEqualTypeOf<Date | number | undefined>();
    expectTypeOf<EnqueueOptions['backoff']>().toEqualTypeOf<JobBackoff | undefined>();
    expectTypeOf<BackoffFunction>().not.toExtend<JobBackoff>();
    const enqueueMany = (jobs: Jobs, queue: string, entries: readonly EnqueueEntry[]) =>
      jobs.enqueueMany(queue, entries);
    expectTypeOf(enqueueMany).returns.resolves.toEqualTypeOf<EnqueueResult[]>();
    expectTypeOf<EnqueueEntry>().toEqualTypeOf<{
      name: string;
      data?: unknown;
      opts?: EnqueueOptions | undefined;
    }>();
    expectTypeOf<Jobs['mintId']>().returns.toBeString();
  });

  it('handles: what goes in and which outcomes come out', () => {
    type Settled<Name extends keyof Jobs> = Jobs[Name] extends (...args: never[]) => Promise<infer R> ? R : never;
    expectTypeOf<Settled<'claim'>>().toEqualTypeOf<ClaimedJob[]>();
    expectTypeOf<Parameters<Jobs['claim']>>().toEqualTypeOf<
      [queue: string | Queue, options: { leaseMs: number; count?: number | undefined }]
    >();
    expectTypeOf<ClaimedJob>().toEqualTypeOf<{
      id: string;
      name: string;
      data: unknown;
      payload: Buffer;
      attempts: number;
      token: string;
    }>();
    expectTypeOf<Outcome>().toEqualTypeOf<'ok' | 'gone' | 'stale' | 'wrong_state'>();
    expectTypeOf<RetryOutcome>().toEqualTypeOf<'scheduled' | 'pending' | 'dead' | 'gone' | 'stale' | 'wrong_state'>();
    expectTypeOf<ExtendOutcome>().toEqualTypeOf<Outcome | 'cancelled'>();
    expectTypeOf<CancelOutcome>().toEqualTypeOf<'removed' | 'stopping' | 'gone' | 'wrong_state'>();
    expectTypeOf<Settled<'complete'>>().toEqualTypeOf<Outcome>();
    expectTypeOf<Settled<'retry'>>().toEqualTypeOf<RetryOutcome>();
    expectTypeOf<Parameters<Jobs['retry']>[3]>().toEqualTypeOf<{
      maxAttempts: number;
      delayMs?: number | undefined;
      error?: unknown;
    }>();
    expectTypeOf<Settled<'release'>>().toEqualTypeOf<Outcome>();
    expectTypeOf<Settled<'extend'>>().toEqualTypeOf<ExtendOutcome>();
    expectTypeOf<Settled<'promote'>>().toEqualTypeOf<Promoted>();
    expectTypeOf<Settled<'reap'>>().toEqualTypeOf<Reaped>();
    expectTypeOf<Settled<'reprocess'>>().toEqualTypeOf<Outcome>();
    expectTypeOf<Settled<'remove'>>().toEqualTypeOf<Outcome>();
    expectTypeOf<Settled<'reschedule'>>().toEqualTypeOf<Outcome>();
    expectTypeOf<Settled<'cancel'>>().toEqualTypeOf<CancelOutcome>();
    expectTypeOf<Settled<'trim'>>().toBeNumber();
    expectTypeOf<Settled<'pause'>>().toBeBoolean();
    expectTypeOf<Settled<'resume'>>().toBeBoolean();
    expectTypeOf<Settled<'isPaused'>>().toBeBoolean();
    expectTypeOf<Settled<'counts'>>().toEqualTypeOf<Counts>();
    expectTypeOf<Settled<'get'>>().toEqualTypeOf<JobView | undefined>();
    expectTypeOf<Settled<'list'>>().toEqualTypeOf<Page>();
    expectTypeOf<Settled<'obliterate'>>().toBeNumber();
  });

  it('states: a kept row is done, and done cannot be listed', () => {
    expectTypeOf<JobState>().toEqualTypeOf<
      'pending' | 'active' | 'scheduled' | 'dead' | 'awaiting_children' | 'done'
    >();
    expectTypeOf<ListableState>().toEqualTypeOf<Exclude<JobState, 'done'>>();
    expectTypeOf<JobView['state']>().toEqualTypeOf<JobState>();
    expectTypeOf<JobView['result']>().toEqualTypeOf<Buffer | undefined>();
    expectTypeOf<Page>().toEqualTypeOf<{ jobs: JobView[]; total: number; next: number | undefined }>();
  });

  it('handlers: may return anything, and say what data they expect', () => {
    expectTypeOf<(job: Job<{ to: string }>) => Promise<number>>().toExtend<Handler>();
    expectTypeOf<() => void>().toExtend<Handler>();
    expectTypeOf<Job<{ to: string }>['data']>().toEqualTypeOf<{ to: string }>();
    expectTypeOf<Job['data']>().toBeUnknown();
    expectTypeOf<Job['signal']>().toEqualTypeOf<AbortSignal>();
    expectTypeOf<Job['opts']>().toEqualTypeOf<Readonly<TravellingOptions> | undefined>();
    expectTypeOf<Job['token']>().toBeString();
  });

  it('consumers: typed events, chained', () => {
    type On = Consumer['on'];
    expectTypeOf<On>().toBeFunction();
    const listen = (consumer: Consumer) =>
      consumer
        .on('completed', (job, result) => {
          expectTypeOf(job).toEqualTypeOf<Job>();
          expectTypeOf(result).toBeUnknown();
        })
        .once('failed', (_job, error, outcome) => {
          expectTypeOf(error).toBeUnknown();
          expectTypeOf(outcome).toEqualTypeOf<'scheduled' | 'pending' | 'dead'>();
        })
        .on('lease-lost', (_job, why) => expectTypeOf(why).toBeString())
        .on('error', (error) => expectTypeOf(error).toEqualTypeOf<core.EchoError>());
    expectTypeOf(listen).returns.toEqualTypeOf<Consumer>();
    // @ts-expect-error there is no such event
    (consumer: Consumer) => consumer.on('drained', () => undefined);
    expectTypeOf<Consumer['settings']>().toEqualTypeOf<{
      readonly [Name in keyof ConsumerOptions]-?: Exclude<ConsumerOptions[Name], undefined>;
    }>();
    expectTypeOf<ConsumerOptions['backoff']>().toEqualTypeOf<Backoff | undefined>();
  });

  it('errors and codecs', () => {
    expectTypeOf<core.EchoError['retryable']>().toBeBoolean();
    expectTypeOf<core.EchoBulkError>().toExtend<core.EchoError>();
    expectTypeOf<core.EchoBulkError['results']>().toEqualTypeOf<(EnqueueResult | undefined)[]>();
    expectTypeOf<core.EchoFlowsError>().toExtend<core.EchoBulkError>();
    expectTypeOf<core.EchoFlowsError['results']>().toEqualTypeOf<(core.AddedFlow | undefined)[]>();
    for (const Kind of [core.EchoArgumentError, core.EchoConfigError, core.EchoStateError, core.EchoTimeoutError]) {
      expectTypeOf(Kind.prototype).toExtend<core.EchoError>();
    }
    expectTypeOf(core.jsonCodec).toEqualTypeOf<Codec>();
    expectTypeOf<Codec['decode']>().returns.toEqualTypeOf<Envelope | undefined>();
    expectTypeOf<core.JobAborted['why']>().toEqualTypeOf<'timeout' | 'cancelled' | 'lease_lost' | 'shutdown'>();
    expectTypeOf(core.isJobId).guards.toBeString();
    expectTypeOf<ConstructorParameters<typeof core.Snooze>>().toEqualTypeOf<[ms: number]>();
    expectTypeOf<ConstructorParameters<typeof core.Discard>>().toEqualTypeOf<[reason?: string | undefined]>();
  });
});
