import { assertInteger, assertKnownKeys } from '../../kernel/arguments.js';
import type { Keyspace, QueueKeys } from '../../kernel/keyspace.js';
import type { Connection } from '../../wire/connection.js';
import { everyKey } from '../../wire/every-key.js';
import type { Transition } from '../../wire/transition.js';
import { type Counts, counts } from '../../wire/transitions/index.js';
import { type ConsumerOptions, consumerSettings } from '../consumer-options.js';
import { Drafts } from '../drafts.js';
import type { EnqueueOptions } from '../enqueue-options.js';
import type { Handler } from '../handler.js';
import type { Minting } from '../minting.js';
import { type EnqueuedJob, enqueuedIn, type Run } from './enqueued.js';
import { letTimePass } from './passing-time.js';
import { type GivenChildren, performAlone } from './perform.js';
import { QueueByHand, type QueueByHandParts } from './queue-by-hand.js';
import { untilIdle } from './until-idle.js';

export interface ByHandParts extends Omit<QueueByHandParts, 'run' | 'relay'> {
  readonly connection: Connection;
  readonly keyspace: Keyspace;
  readonly minting: Minting;
  readonly requestTimeoutMs: number;
}

/** How a handler is performed. */
export interface PerformOptions {
  /** Which attempt the handler is told it is, from 1. Default 1. */
  attempt?: number | undefined;
  /** Options that the job comes with, as for enqueue: its own `timeoutMs` is obeyed. */
  opts?: EnqueueOptions | undefined;
  /** What `job.children()` answers; what is left out is empty. */
  children?: GivenChildren | undefined;
}

const KNOWN_OPTIONS = new Set(['attempt', 'opts', 'children']);

/** An engine in the hands of a test. */
export class ByHand {
  private readonly run: Run;
  private readonly relay: () => Promise<void>;
  private readonly drafts: Drafts;

  constructor(private readonly parts: ByHandParts) {
    this.run = <Call, Answer>(step: Transition<Call, Answer>, keys: QueueKeys, call: Call) =>
      parts.executor.run(step, keys, call, parts.requestTimeoutMs);
    this.relay = () => parts.flows.relayAll(this.queuesNamed.map((queue) => parts.keyspace.queue(queue)));
    this.drafts = new Drafts(parts);
  }

  /** What every key of this engine begins with. */
  get prefix(): string {
    return this.parts.keyspace.prefix;
  }

  /** The queues that this process has named so far. */
  get queuesNamed(): string[] {
    return this.parts.keyspace.named;
  }

  /** @throws EchoConfigError for an option that makes no sense */
  serve(queue: string, options: ConsumerOptions, handler: Handler): QueueByHand {
    const settings = consumerSettings(options, `consume('${queue}')`);
    const parts = { ...this.parts, run: this.run, relay: this.relay };
    return new QueueByHand(parts, this.parts.keyspace.queue(queue), settings, handler);
  }

  /** Runs a job that the server does not have, and answers its result. @throws what the handler threw */
  async perform(
    queue: string,
    job: { readonly name: string; readonly data: unknown; readonly options: PerformOptions },
    settings: ConsumerOptions,
    handler: Handler,
  ): Promise<unknown> {
    const { minting, requestTimeoutMs } = this.parts;
    const { attempt: attempts = 1, opts, children } = job.options;
    assertKnownKeys(job.options, KNOWN_OPTIONS, 'performJob options');
    assertInteger(attempts, 'attempt', 1);
    const draft = this.drafts.make(job.name, job.data, opts);
    if (draft.id === '') {
      await minting.renewWithin(requestTimeoutMs);
      draft.id = minting.require();
    }
    const payload = Buffer.from(draft.payload as string);
    const row = { id: draft.id, payload, attempts, token: `${attempts}@by-hand`, uncharged: 0 };
    const performance = { row, settings: consumerSettings(settings, `consume('${queue}')`), children };
    return performAlone(this.parts, queue, performance, handler);
  }

  enqueued(queue: string): Promise<EnqueuedJob[]> {
    return enqueuedIn(this.run, this.parts.keyspace.queue(queue), this.parts.codec);
  }

  counts(queue: string): Promise<Counts> {
    return this.run(counts, this.parts.keyspace.queue(queue), undefined);
  }

  letTimePass(queue: string, ms: number): Promise<number> {
    return letTimePass(this.run, this.parts.keyspace.queue(queue), ms);
  }

  /** Resolves when nothing of these queues is due or running. @throws EchoTimeoutError that says what is left */
  untilIdle(queues: readonly string[], timeoutMs: number): Promise<void> {
    const { keyspace, metronome, clock } = this.parts;
    return untilIdle(
      { run: this.run, relay: this.relay, metronome, clock },
      queues.map((queue) => keyspace.queue(queue)),
      timeoutMs,
    );
  }

  /** Removes every key under the prefix, on every node. Without a connection it does nothing. */
  async wipe(): Promise<void> {
    const { connection, keyspace, flows, metronome, requestTimeoutMs } = this.parts;
    if (!connection.isUp) return;
    flows.stop();
    await metronome.within(requestTimeoutMs, flows.relayAll([])); // what is on its way would arrive behind us
    const options = { resend: true, timeoutMs: requestTimeoutMs };
    for await (const keys of everyKey(connection, keyspace)) {
      // One a call: in a cluster they have slots.
      await Promise.all(connection.inOneWrite(() => keys.map((key) => connection.call('UNLINK', [key], options))));
    }
  }
}
