import type { PerformOptions } from '../../engine/by-hand/by-hand.js';
import { Drain, type DrainOptions, type DrainResult } from '../../engine/by-hand/drain.js';
import type { EnqueuedJob } from '../../engine/by-hand/enqueued.js';
import { assertBoolean, assertInteger, assertKnownKeys } from '../../kernel/arguments.js';
import { EchoArgumentError, EchoStateError } from '../../kernel/errors.js';
import { type NamesOf, type Queue, queueName } from '../../kernel/queue.js';
import type { Class } from '../handler-methods.js';
import type { Lifecycle } from '../lifecycle.js';
import { EchoAssertionError } from './assertion-error.js';
import { type CountedMatch, checkMatch, type EnqueuedMatch, matches } from './enqueued-match.js';
import { describeJobs, describeMatch } from './enqueued-report.js';
import { Hands, handsOf } from './hands.js';
import { performedHandler } from './performed-handler.js';

/** Which queues are meant: by default all that the app's processors serve. */
export interface KitScope {
  queue?: string | Queue | undefined;
  /** The `EchoMqModule` of this name. Default: all of the app. */
  instance?: string | undefined;
}

export interface KitDrainOptions extends KitScope, DrainOptions {}

export interface KitIdleOptions extends KitScope {
  /** Then it gives up. Default 5 s. */
  timeoutMs?: number | undefined;
}

export interface KitPerformOptions extends PerformOptions {
  /** The `EchoMqModule` of this name. Default: that of the class, or the one that serves the queue. */
  instance?: string | undefined;
}

/** What `performJob` takes behind the name: data that may be undefined may be left out. */
type PerformArguments<Data> = undefined extends Data
  ? [data?: Data, options?: KitPerformOptions | undefined]
  : [data: Data, options?: KitPerformOptions | undefined];

const SCOPE = ['queue', 'instance'];
const KNOWN = {
  scope: new Set(SCOPE),
  enqueued: new Set(['instance']),
  drain: new Set([...SCOPE, 'scheduled', 'recursive', 'limit', 'throwOnFailure']),
  idle: new Set([...SCOPE, 'timeoutMs']),
} as const;
const MOST_RUNS = 1000;
const IDLE_WITHIN_MS = 5000;

/**
 * What a test does with an app's jobs: see what is enqueued, run it, let time pass. Provided by
 * {@link EchoMqTestingModule}; works from the end of `init()` until `close()`.
 *
 * Every method covers all `EchoMqModule`s of the app, or under `instance` one of them.
 */
export class TestKit {
  private allHands: readonly Hands[] | undefined;
  private isDraining = false;
  private isClosed = false;

  /** @internal */
  constructor(
    private readonly lifecycle: Lifecycle,
    /** What every key of this test begins with. */
    readonly prefix: string,
  ) {
    lifecycle.beforeClose(() => this.wipe());
  }

  /** @internal the app is connected, its processors are found */
  begin(): void {
    this.allHands = this.lifecycle.instances.map((instance) => new Hands(instance));
  }

  /**
   * The queue's jobs that have not started: those pending in the order they would be claimed, behind them those that wait for
   * a time, earliest first.
   */
  async enqueued(queue: string | Queue, options: { instance?: string | undefined } = {}): Promise<EnqueuedJob[]> {
    assertKnownKeys(options, KNOWN.enqueued, 'enqueued options');
    return this.jobsIn(queueName(queue), options.instance);
  }

  /**
   * Resolves with the jobs that match and have not started, if there is one, or as many as `count` says.
   * @throws EchoAssertionError that lists what is enqueued instead; EchoArgumentError for a part that makes no sense
   */
  assertEnqueued<Inputs>(
    match: CountedMatch & { queue: Queue<Inputs, unknown>; name?: NamesOf<Inputs> | undefined },
  ): Promise<EnqueuedJob[]>;
  assertEnqueued(match: CountedMatch & { queue: string }): Promise<EnqueuedJob[]>;
  async assertEnqueued(match: CountedMatch): Promise<EnqueuedJob[]> {
    const { queue, all, found } = await this.look(match, 'assertEnqueued', true);
    const { count } = match;
    if (count === undefined ? found.length > 0 : found.length === count) return found;
    const what = `of queue '${queue}' matches ${describeMatch(match)}`;
    const head = count === undefined ? `no job ${what}` : `${numberOf(found)} ${what}, expected ${count}`;
    throw new EchoAssertionError(`assertEnqueued: ${head}\n${await this.report(queue, all, match)}`);
  }

  /** @throws EchoAssertionError that lists the jobs that match and have not started, if there are any */
  refuteEnqueued<Inputs>(
    match: EnqueuedMatch & { queue: Queue<Inputs, unknown>; name?: NamesOf<Inputs> | undefined },
  ): Promise<void>;
  refuteEnqueued(match: EnqueuedMatch & { queue: string }): Promise<void>;
  async refuteEnqueued(match: EnqueuedMatch): Promise<void> {
    const { queue, found } = await this.look(match, 'refuteEnqueued', false);
    if (found.length === 0) return;
    throw new EchoAssertionError(
      `refuteEnqueued: ${numberOf(found)} of queue '${queue}' matches ${describeMatch(match)}\n${describeJobs(found)}`,
    );
  }

  /**
   * Runs the handler of a job that the server does not have, as a consumer would run one it has claimed: with schemas, guards,
   * pipes, interceptors, filters and scopes, under its time limit. Data and result go through the codec, so that what JSON
   * makes of them shows. Resolves with the result, and rejects with what the handler threw, `Discard` and `Snooze` included:
   * nothing is retried.
   *
   * The handler is found by its processor's class, also where a test has overridden that, or by the queue.
   * @throws EchoArgumentError when nobody handles the name
   */
  performJob<Inputs, Name extends NamesOf<Inputs>>(
    queue: Queue<Inputs, unknown>,
    name: Name,
    ...job: PerformArguments<Inputs[Name]>
  ): Promise<unknown>;
  performJob(processor: Class | string, name: string, data?: unknown, options?: KitPerformOptions): Promise<unknown>;
  async performJob(
    of: Class | string | Queue,
    name: string,
    data?: unknown,
    { instance, ...options }: KitPerformOptions = {},
  ): Promise<unknown> {
    const { hands, queue, service } = performedHandler(this.hands(), of, name, instance);
    return hands.engine.perform(queue, { name, data, options }, service.options, service.handler);
  }

  /**
   * Runs what is due in the queues that the app serves, one job after the other, and settles it as a consumer does. In
   * rounds: all that is due is claimed, queue by queue, and run in that order, then what has become due meanwhile.
   *
   * Handlers that throw do not make it throw: its answer counts them, and holds their errors.
   * @throws EchoStateError at `limit`, or where consumers run by themselves; under `throwOnFailure` what a handler threw
   */
  async drain(options: KitDrainOptions = {}): Promise<DrainResult> {
    assertKnownKeys(options, KNOWN.drain, 'drain options');
    const {
      scheduled = false,
      recursive = true,
      limit = MOST_RUNS,
      throwOnFailure = false,
    } = options as KitDrainOptions;
    for (const [name, value] of Object.entries({ scheduled, recursive, throwOnFailure })) {
      assertBoolean(value, name, EchoArgumentError);
    }
    assertInteger(limit, 'limit', 1);
    const queues = this.scope(options).flatMap(([hands, names]) => names.map((name) => hands.queue(name)));
    if (this.isDraining)
      throw new EchoStateError('kit.drain() is running already: await it before the next, and not in a handler');
    this.isDraining = true;
    try {
      return await new Drain(queues, { scheduled, recursive, limit, throwOnFailure }).run();
    } finally {
      this.isDraining = false;
    }
  }

  /**
   * Lets `ms` pass for jobs that wait for a time: delayed ones, retries, snoozes. Those whose time has come are pending then;
   * nothing is run. Answers how many became so. Covers every queue that this process has named. Clocks are left alone.
   */
  async advance(ms: number, options: KitScope = {}): Promise<number> {
    assertInteger(ms, 'advance(ms)', 0);
    assertKnownKeys(options, KNOWN.scope, 'advance options');
    const { queue, instance } = options as KitScope;
    let due = 0;
    for (const { engine, known } of handsOf(this.hands(), instance)) {
      for (const name of queue === undefined ? known : [queueName(queue)]) due += await engine.letTimePass(name, ms);
    }
    return due;
  }

  /**
   * For apps whose consumers run by themselves (`autoStart: true`): resolves when nothing is due or running. What waits for
   * a later time is left alone, and so is what is paused.
   * @throws EchoTimeoutError that says what is left
   */
  async idle(options: KitIdleOptions = {}): Promise<void> {
    assertKnownKeys(options, KNOWN.idle, 'idle options');
    const { timeoutMs = IDLE_WITHIN_MS } = options as KitIdleOptions;
    assertInteger(timeoutMs, 'timeoutMs', 1);
    await Promise.all(this.scope(options).map(([{ engine }, names]) => engine.untilIdle(names, timeoutMs)));
  }

  private hands(): readonly Hands[] {
    if (this.isClosed) throw new EchoStateError('TestKit: the app is closed');
    if (this.allHands !== undefined) return this.allHands;
    throw new EchoStateError('TestKit: the app is not initialised: await module.init(), or app.init(), before');
  }

  /** @throws EchoArgumentError for a queue that the app does not serve */
  private scope({ queue, instance }: KitScope): [Hands, string[]][] {
    const among = handsOf(this.hands(), instance);
    if (queue === undefined) return among.map((hands) => [hands, hands.served]);
    const name = queueName(queue);
    const serving = among.filter(({ served }) => served.includes(name));
    if (serving.length > 0) return serving.map((hands) => [hands, [name]]);
    const served = among.flatMap(({ served }) => served.map((known) => `'${known}'`)).join(', ') || 'none';
    throw new EchoArgumentError(`no processor of this app serves queue '${name}'. Served are ${served}`);
  }

  private async jobsIn(queue: string, instance: string | undefined): Promise<EnqueuedJob[]> {
    const jobs: EnqueuedJob[] = [];
    for (const { engine } of handsOf(this.hands(), instance)) jobs.push(...(await engine.enqueued(queue)));
    return jobs;
  }

  private async look(match: CountedMatch, method: string, counted: boolean) {
    checkMatch(match, method, counted);
    const queue = queueName(match.queue);
    const all = await this.jobsIn(queue, match.instance);
    return { queue, all, found: all.filter((job) => matches(job, match)) };
  }

  /** What is there instead, and where else something is: a misspelt queue is a queue too. */
  private async report(queue: string, all: readonly EnqueuedJob[], { instance, name }: CountedMatch): Promise<string> {
    const lines =
      all.length > 0 ? [`Enqueued there: ${numberOf(all)}`, describeJobs(all, name)] : ['Nothing is enqueued there.'];
    const elsewhere: string[] = [];
    for (const { engine, known } of handsOf(this.hands(), instance)) {
      for (const other of known) {
        const { pending, scheduled, active, dead, metrics } = await engine.counts(other);
        if (other !== queue && pending + scheduled > 0) elsewhere.push(`'${other}' ${pending + scheduled}`);
        const gone = Object.entries({ active, dead, completed: metrics.completed, removed: metrics.removed });
        const told = gone.filter(([, count]) => count > 0).map(([what, count]) => `${count} ${what}`);
        if (other === queue && told.length > 0) lines.push(`No longer enqueued: ${told.join(', ')}`);
      }
    }
    if (elsewhere.length > 0) lines.push(`In other queues: ${elsewhere.join(', ')}`);
    return lines.join('\n');
  }

  /** Consumers have drained; connections are still open. What cannot be removed is told, and is under the test's prefix. */
  private async wipe(): Promise<void> {
    this.isClosed = true;
    for (const { echo, logger } of this.lifecycle.instances) {
      const engine = echo.byHand();
      await engine
        .wipe()
        .catch((error: Error) => logger.warn(`keys under prefix '${engine.prefix}' are left: ${error.message}`));
    }
  }
}

function numberOf(jobs: readonly unknown[]): string {
  return jobs.length === 1 ? '1 job' : `${jobs.length} jobs`;
}
