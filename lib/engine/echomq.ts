import { randomBytes } from 'node:crypto';
import { EchoConfigError, type EchoError, EchoStateError } from '../kernel/errors.js';
import { base62 } from '../kernel/id.js';
import { Keyspace, type QueueKeys } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';
import { clientFactory } from '../wire/client-factory.js';
import { Connection } from '../wire/connection.js';
import { Executor } from '../wire/executor.js';
import { passFence, passQueueFence } from '../wire/fence.js';
import { batchSizeOf } from './batching.js';
import { EngineBus } from './bus.js';
import { ByHand } from './by-hand/by-hand.js';
import type { Consumer } from './consumer.js';
import { type ConsumerOptions, consumerSettings } from './consumer-options.js';
import { Enqueuer } from './enqueuer.js';
import { FaultReporter } from './fault-reporter.js';
import { Flows } from './flows.js';
import { callingJobs, type Handler } from './handler.js';
import { type EchoMqHealth, HealthCheck, type HealthOptions } from './health.js';
import type { JobNamed } from './job-types.js';
import { Jobs } from './jobs.js';
import { LaneRules } from './lane-rules.js';
import { Lanes } from './lanes.js';
import { Metronome } from './metronome.js';
import { Minting } from './minting.js';
import { type EchoMqOptions, type EchoMqSettings, echoMqSettings } from './options.js';
import { Pump } from './pump.js';
import { Schedules } from './schedules.js';
import { SlotFiring } from './slot-firing.js';
import { validating } from './validation.js';
import { Waits } from './waits.js';

const LAST_ANSWERS_MS = 2000;

/**
 * One server, one prefix: the jobs on it, and this process's consumers. A process needs one, however many queues: it holds
 * one connection to enqueue and a second once it consumes, waits for a job or listens to events.
 */
export class EchoMq {
  readonly jobs: Jobs;
  readonly flows: Flows;
  readonly schedules: Schedules;
  readonly lanes: Lanes;
  readonly bus: EngineBus;
  private readonly keyspace: Keyspace;
  private readonly connection: Connection;
  private readonly metronome: Metronome;
  private readonly minting: Minting;
  private readonly enqueuer: Enqueuer;
  private readonly pump: Pump;
  private readonly waits: Waits;
  private readonly healthCheck: HealthCheck;
  private readonly faults: FaultReporter;
  private opening: Promise<void> | undefined;
  private started = false;
  private closing: Promise<void> | undefined;

  private constructor(private readonly settings: EchoMqSettings) {
    const { clock, codec, wire } = settings;
    const factory = clientFactory(settings.connection);
    const keyspace = new Keyspace(settings.prefix);
    const metronome = new Metronome(clock);
    const connection = new Connection(factory, clock, (client) => passFence(client, keyspace, wire), metronome);
    const executor: Executor = new Executor(
      connection,
      factory.cluster
        ? async (keys) => {
            await passQueueFence(new Executor(connection), keys, wire);
            await connection.learnQueue(keys);
          }
        : undefined,
    );
    const process = base62(randomBytes(12).readBigUInt64BE());
    const epochs = wire === 6;
    this.keyspace = keyspace;
    this.connection = connection;
    this.metronome = metronome;
    this.minting = new Minting(executor, keyspace, clock, metronome, process, () => this.schedules.declareLost());
    this.faults = new FaultReporter(settings.onError, settings.onReconnected, clock);
    let lostAt: number | undefined;
    connection.listen({
      up: () => {
        if (lostAt !== undefined) this.faults.over(Math.round(clock.monotonic() - lostAt));
        lostAt = undefined;
        this.minting.renew().catch((error) => this.fault(error));
      },
      down: (reason) => {
        lostAt ??= clock.monotonic();
        if (reason.retryable || this.started) this.fault(reason); // until then a refusal is told to whoever opens
      },
    });
    this.enqueuer = new Enqueuer(
      executor,
      connection,
      clock,
      {
        timeoutMs: settings.enqueueTimeoutMs,
        bufferLimit: settings.enqueueBufferLimit,
      },
      {
        around: (queue, send) => this.pump.around(queue, send),
        isWaiting: (queue) => this.pump.isWaiting(queue),
        dispatch: (queue, item, told) => this.pump.dispatch(queue, item, told),
      },
    );
    const shared = {
      executor,
      keyspace,
      metronome,
      codec,
      minting: this.minting,
      enqueuer: this.enqueuer,
      laneRules: new LaneRules(),
      maxPayloadBytes: settings.maxPayloadBytes,
      requestTimeoutMs: settings.requestTimeoutMs,
      enqueueTimeoutMs: settings.enqueueTimeoutMs,
      fault: (error: EchoError) => this.fault(error),
    };
    this.flows = new Flows(shared);
    this.schedules = new Schedules(shared);
    this.lanes = new Lanes(shared);
    this.waits = new Waits({
      ...shared,
      follow: (keys) => this.pump.follow(keys, 'ends'),
      unfollow: (keys) => this.pump.unfollow(keys, 'ends'),
    });
    this.bus = new EngineBus({
      ...shared,
      connection,
      follow: (keys) => this.pump.follow(keys, 'events'),
      unfollow: (keys) => this.pump.unfollow(keys, 'events'),
      inScope: (act) => this.pump.inScope(act),
    });
    this.pump = new Pump({
      connection,
      executor,
      flows: this.flows,
      waits: this.waits,
      bus: this.bus,
      slots: new SlotFiring(shared),
      keyspace,
      metronome,
      clock,
      codec,
      maxPayloadBytes: settings.maxPayloadBytes,
      factory,
      process,
      epochs,
      fault: (error) => this.fault(error),
    });
    this.healthCheck = new HealthCheck({
      connection,
      executor,
      keyspace,
      metronome,
      clock,
      consumers: () => this.pump.serving.values(),
      beatOwedSince: (queue) => this.pump.beatOwedSince(queue),
    });
    this.jobs = new Jobs({
      ...shared,
      flows: this.flows,
      waits: this.waits,
      schedules: this.schedules,
      connection,
      epoch: (keys: QueueKeys) => (epochs ? connection.epoch(keys) : undefined),
    });
  }

  /**
   * Resolves once connected and past the version fence.
   * @throws EchoConfigError for an option that makes no sense, EchoWireError for a foreign server, EchoStoreError when it
   * refuses, EchoTimeoutError after `connectTimeoutMs`
   */
  static async connect(options: EchoMqOptions): Promise<EchoMq> {
    const echo = EchoMq.create(options);
    await echo.open();
    return echo;
  }

  /** Connects on first use, or by {@link open}. @throws EchoConfigError */
  static create(options: EchoMqOptions): EchoMq {
    return new EchoMq(echoMqSettings(options));
  }

  /** Connects as `onBoot` says; a failure closes what was opened. Idempotent. */
  open(): Promise<void> {
    this.opening ??= this.start();
    return this.opening;
  }

  /**
   * Runs a queue's jobs in this process. Of a queue of `defineQueue` the handler gets a union of jobs that `job.name` tells
   * apart; where it has schemas, data as they put it out, and a job whose data does not fit is buried ({@link InvalidData}).
   * Jobs of other names, which somebody may have enqueued by the queue's bare name, come as they are.
   * @throws EchoConfigError for an option that makes no sense, or when this process consumes the queue already
   */
  consume(queue: string, options: ConsumerOptions, handler: Handler): Consumer;
  consume<Outputs>(
    queue: Queue<unknown, Outputs>,
    options: ConsumerOptions,
    // biome-ignore lint/suspicious/noExplicitAny: as Handler
    handler: (job: JobNamed<Outputs>) => any,
  ): Consumer;
  consume(queue: string | Queue, options: ConsumerOptions, handler: Handler): Consumer {
    const name = queueName(queue);
    const keys = this.keyspace.queue(name);
    const settings = consumerSettings(options, `consume('${name}')`);
    if (typeof handler !== 'function') throw new EchoConfigError(`consume('${name}') needs a handler function`);
    if (batchSizeOf(handler) > settings.concurrency)
      throw tooFewSlots(name, settings.concurrency, batchSizeOf(handler));
    if (this.closing) throw new EchoStateError('this EchoMq is closed');
    return this.pump.serve(keys, settings, validating(queue, handler));
  }

  /**
   * Does the server answer, and are the queues that this process consumes served? One round trip when called, nothing in
   * between. A server that is away is an answer too. @throws EchoArgumentError for an option that makes no sense
   */
  health(options: HealthOptions = {}): Promise<EchoMqHealth> {
    return this.healthCheck.look(options);
  }

  /** @internal for tests */
  byHand(): ByHand {
    const { pump, flows, settings, connection, keyspace, minting, metronome } = this;
    const { executor, clock, codec, maxPayloadBytes } = pump;
    return new ByHand({
      ...{ executor, connection, keyspace, minting, flows, metronome, clock, codec, maxPayloadBytes },
      requestTimeoutMs: settings.requestTimeoutMs,
      epoch: (keys) => pump.epoch(keys),
      inScope: (act) => pump.inScope(act),
      fault: (error) => this.fault(error),
    });
  }

  /** Closes every consumer and consumes nothing more; `jobs` goes on working. Idempotent. */
  async drain(): Promise<void> {
    await this.pump.close().others;
  }

  /** Stops claiming, drains every consumer, answers what was enqueued, closes the sockets. Idempotent; works without a server. */
  close(): Promise<void> {
    const inside = callingJobs().length > 0;
    const { others, all } = this.pump.close();
    this.closing ??= all.then(() => this.finish());
    // Called inside a handler, only the other handlers are waited for: the sockets close behind it.
    return inside ? others.then(() => undefined) : this.closing;
  }

  private async start(): Promise<void> {
    const { connectTimeoutMs, onBoot } = this.settings;
    const waits = onBoot === 'wait';
    try {
      await this.connection.open(connectTimeoutMs, waits);
      await this.minting.renewWithin(connectTimeoutMs);
    } catch (error) {
      // Waiting, it is told as a fault, and goes on being tried.
      if (!waits || !(error as EchoError).retryable) {
        this.closing ??= this.finish();
        await this.closing;
        throw error;
      }
    }
    this.started = true;
  }

  private async finish(): Promise<void> {
    if (this.connection.isUp) {
      // What a flow owes is relayed behind its landing; a job that somebody waits for here may just have ended.
      const answered = this.enqueuer.idle().then(() => Promise.all([this.flows.rest(), this.waits.lastLook()]));
      await this.metronome.within(LAST_ANSWERS_MS, answered);
    }
    this.flows.stop();
    this.schedules.stop();
    this.waits.stop();
    this.bus.stop();
    await this.pump.end();
    await this.minting.stop(this.connection.isUp).catch((error) => this.fault(error));
    this.metronome.stop();
    await this.connection.close();
  }

  private fault(error: EchoError): void {
    this.faults.report(error);
  }
}

function tooFewSlots(queue: string, concurrency: number, size: number): EchoConfigError {
  return new EchoConfigError(
    `option 'consume('${queue}').concurrency' is ${concurrency}, but its handler takes batches of ${size}, and each job ` +
      `takes up a slot while it gathers: give it ${size} or more`,
  );
}
