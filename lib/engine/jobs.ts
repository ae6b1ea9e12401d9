import { assertBoolean, assertInteger, assertKnownKeys, assertSize, show } from '../kernel/arguments.js';
import type { Codec } from '../kernel/codec.js';
import { EchoArgumentError, type EchoError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import type { CancelOutcome, ExtendOutcome, Outcome, RetryOutcome } from '../kernel/outcome.js';
import { JOB_STATES, type ListableState } from '../kernel/state.js';
import type { Connection } from '../wire/connection.js';
import type { Executor } from '../wire/executor.js';
import { everyRow } from '../wire/rows.js';
import type { Transition } from '../wire/transition.js';
import * as wire from '../wire/transitions/index.js';
import { EchoBulkError } from './bulk-error.js';
import { delayText, type EnqueueOptions, landingOf } from './enqueue-options.js';
import type { EnqueueResult, Enqueuer, OutgoingJob } from './enqueuer.js';
import { failureText } from './failure-text.js';
import { envelopeOf, type JobView, viewOf } from './job-view.js';
import type { Minting } from './minting.js';

/** A job that was claimed by hand: whoever has the token may settle it. */
export interface ClaimedJob {
  id: string;
  /** Empty when the payload is no envelope; `data` is then the payload. */
  name: string;
  data: unknown;
  payload: Buffer;
  attempts: number;
  token: string;
}

/** One of many jobs to enqueue. */
export interface EnqueueEntry {
  name: string;
  data?: unknown;
  opts?: EnqueueOptions;
}

/** One page of a list. */
export interface Page {
  jobs: JobView[];
  /** Jobs in this state. */
  total: number;
  /** Where the next page begins; undefined on the last. */
  next: number | undefined;
}

export interface JobsParts {
  executor: Executor;
  connection: Connection;
  keyspace: Keyspace;
  codec: Codec;
  minting: Minting;
  enqueuer: Enqueuer;
  maxPayloadBytes: number;
  requestTimeoutMs: number;
  enqueueTimeoutMs: number;
  epoch(keys: QueueKeys): string | undefined;
}

const MOST_PER_SWEEP = 1000;
const PAGE_BYTES = 8_000_000;

/**
 * Everything that can be done to jobs from outside a handler. Every method takes the queue's name first, refuses
 * nonsense with an EchoArgumentError before a byte is sent, and rejects with an EchoError when the server cannot do it.
 */
export class Jobs {
  /** @internal */
  constructor(private readonly parts: JobsParts) {}

  /** An id to enqueue under, now or again. @throws EchoStoreError, retryable, when no node number is leased */
  mintId(): string {
    return this.parts.minting.require();
  }

  /**
   * Resolves once the server has the job. Calls made in one turn of the event loop for one queue go out as one script
   * call. After a connection loss an unanswered job is sent again under its id, and so lands once.
   */
  enqueue(queue: string, name: string, data?: unknown, opts?: EnqueueOptions): Promise<EnqueueResult> {
    try {
      const keys = this.parts.keyspace.queue(queue);
      const item = this.item(name, data, opts);
      if (item.id !== '') return this.parts.enqueuer.add(keys, item);
      return this.canMint(1).then(() => this.parts.enqueuer.add(keys, { ...item, id: this.mintId() }));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Script calls of 500 jobs, in order, each all or nothing; every item is checked before the first is sent.
   * @throws EchoBulkError when some of the calls failed, or all: it says which jobs landed, and under which ids to repeat
   */
  async enqueueMany(queue: string, entries: readonly EnqueueEntry[]): Promise<EnqueueResult[]> {
    const keys = this.parts.keyspace.queue(queue);
    if (!Array.isArray(entries)) throw new EchoArgumentError(`enqueueMany takes an array, got ${show(entries)}`);
    const items = entries.map((entry, i) => {
      try {
        assertKnownKeys(entry, ENTRY_KEYS, 'item');
        return this.item(entry.name as string, entry.data, entry.opts as EnqueueOptions | undefined);
      } catch (error) {
        throw new EchoArgumentError(`item ${i}: ${(error as Error).message}`, error);
      }
    });
    if (items.length === 0) return [];
    if (items.some((item) => item.id === '')) {
      await this.canMint(items.length);
      for (const item of items) if (item.id === '') item.id = this.mintId();
    }
    const settled = await this.parts.enqueuer.addMany(keys, items);
    const failure = settled.find((part) => part.status === 'rejected');
    const results: (EnqueueResult | undefined)[] = [];
    for (const part of settled) {
      if (part.status === 'fulfilled') {
        results.push(...part.value);
      }
    }
    if (failure === undefined) return results as EnqueueResult[];
    const landed = new Map(results.map((result) => [result!.id, result]));
    const ids = items.map((item) => item.id);
    throw new EchoBulkError(
      failure.reason as EchoError,
      ids.map((id) => landed.get(id)),
      ids,
    );
  }

  /** Takes up to `count` jobs (1 to 500, default 1) for `leaseMs`; an empty array when nothing is claimable. */
  async claim(queue: string, options: { leaseMs: number; count?: number }): Promise<ClaimedJob[]> {
    const keys = this.parts.keyspace.queue(queue);
    assertKnownKeys(options, CLAIM_KEYS, 'claim options');
    const { leaseMs, count = 1 } = options;
    assertInteger(leaseMs, 'leaseMs', 1);
    assertInteger(count, 'count', 1, 500);
    const epoch = this.parts.epoch(keys);
    const rows = await this.run(wire.claim, keys, { leaseMs, count, epoch, process: '' });
    return rows.map(({ id, payload, attempts, token }) => {
      const envelope = envelopeOf(payload, this.parts.codec);
      return { id, name: envelope?.name ?? '', data: envelope ? envelope.data : payload, payload, attempts, token };
    });
  }

  /** The claim's holder is done. With `keepMs` the row stays that long as `done`, with its result. */
  async complete(
    queue: string,
    id: string,
    token: string,
    options: { result?: unknown; keepMs?: number } = {},
  ): Promise<Outcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, COMPLETE_KEYS, 'complete options');
    const { keepMs = 0 } = options;
    assertInteger(keepMs, 'keepMs', 0);
    const result = this.parts.codec.encodeResult(options.result);
    assertSize(result, this.parts.maxPayloadBytes, 'the result');
    const { answer, resent } = await this.settle(wire.complete, keys, {
      record: 0,
      items: [{ id, token, keepMs, result }],
    });
    return resent && isLost(answer) ? 'ok' : answer;
  }

  /** The attempt failed. At `maxAttempts` charged attempts the job is buried; 0 buries it at once. */
  async retry(
    queue: string,
    id: string,
    token: string,
    options: { maxAttempts: number; delayMs?: number; error?: unknown },
  ): Promise<RetryOutcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, RETRY_KEYS, 'retry options');
    const { maxAttempts, delayMs = 0 } = options;
    assertInteger(maxAttempts, 'maxAttempts', 0);
    assertInteger(delayMs, 'delayMs', 0);
    const error = options.error === undefined ? '' : failureText(options.error);
    const { answer, resent } = await this.settle(wire.retry, keys, {
      record: 0,
      items: [{ id, token, delayMs, maxAttempts, error }],
    });
    if (!resent || !isLost(answer)) return answer;
    const state = (await this.get(queue, id))?.state;
    return state === 'scheduled' || state === 'dead' ? state : 'pending'; // or it has gone on from there
  }

  /** Gives a job back unfinished; the attempt is not charged. */
  async release(queue: string, id: string, token: string, options: { delayMs?: number } = {}): Promise<Outcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, DELAY_KEYS, 'release options');
    const delay = delayText(options.delayMs ?? 0, 'delayMs');
    const { answer, resent } = await this.settle(wire.release, keys, [{ id, token, delay }]);
    return resent && isLost(answer) ? 'ok' : answer;
  }

  /** Renews the lease: it then ends `leaseMs` from the server's now. `cancelled` means renewed, but asked to stop. */
  async extend(queue: string, id: string, token: string, options: { leaseMs: number }): Promise<ExtendOutcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, LEASE_KEYS, 'extend options');
    assertInteger(options.leaseMs, 'leaseMs', 1);
    const [outcome] = await this.run(wire.extend, keys, { leaseMs: options.leaseMs, items: [{ id, token }] });
    return outcome!;
  }

  /** Moves jobs whose time has come to pending. Consumers do this by themselves. */
  async promote(queue: string, options: { limit?: number } = {}): Promise<wire.Promoted> {
    assertKnownKeys(options, LIMIT_KEYS, 'promote options');
    const { limit = 1000 } = options;
    assertInteger(limit, 'limit', 1, 1000);
    return this.run(wire.promote, this.parts.keyspace.queue(queue), { limit });
  }

  /** Takes back jobs whose lease has lapsed. Consumers do this by themselves. */
  async reap(queue: string, options: { limit?: number; maxStalls?: number } = {}): Promise<wire.Reaped> {
    assertKnownKeys(options, REAP_KEYS, 'reap options');
    const { limit = 1000, maxStalls = 2 } = options;
    assertInteger(limit, 'limit', 1, 1000);
    assertInteger(maxStalls, 'maxStalls', 0);
    const keys = this.parts.keyspace.queue(queue);
    return this.run(wire.reap, keys, { limit, maxStalls, epoch: this.parts.epoch(keys) ?? '', record: 0 });
  }

  /** Puts a dead job back to pending. With `fresh` the attempts so far no longer count against the cap. */
  async reprocess(queue: string, id: string, options: { fresh?: boolean } = {}): Promise<Outcome> {
    assertKnownKeys(options, FRESH_KEYS, 'reprocess options');
    assertJobId(id);
    const { fresh = false } = options;
    assertBoolean(fresh, 'fresh', EchoArgumentError);
    const { answer, resent } = await this.settle(wire.reprocess, this.parts.keyspace.queue(queue), {
      fresh,
      ids: [id],
    });
    return resent && answer === 'wrong_state' ? 'ok' : answer;
  }

  /** Removes a job that nobody is running. */
  async remove(queue: string, id: string): Promise<Outcome> {
    assertJobId(id);
    const { answer, resent } = await this.settle(wire.remove, this.parts.keyspace.queue(queue), [id]);
    return resent && answer === 'gone' ? 'ok' : answer;
  }

  /** Removes a job that has not started; asks a running one to stop, which fires its handler's signal. */
  async cancel(queue: string, id: string): Promise<CancelOutcome> {
    assertJobId(id);
    const { answer, resent } = await this.settle(wire.cancel, this.parts.keyspace.queue(queue), [id]);
    return resent && answer === 'gone' ? 'removed' : answer;
  }

  /** Gives a job that waits for its time another time. `wrong_state`: it does not wait (any more). */
  async reschedule(queue: string, id: string, options: { delayMs?: number; runAt?: Date | number }): Promise<Outcome> {
    assertJobId(id);
    assertKnownKeys(options, WHEN_KEYS, 'reschedule options');
    if (options.delayMs === undefined && options.runAt === undefined) {
      throw new EchoArgumentError('reschedule needs a time: give delayMs or runAt');
    }
    const { delay } = landingOf(options);
    const [outcome] = await this.run(wire.reschedule, this.parts.keyspace.queue(queue), [{ id, delay }]);
    return outcome!;
  }

  /** Removes the oldest dead jobs until `keepCount` are left; answers how many went. */
  async trim(queue: string, options: { keepCount: number }): Promise<number> {
    assertKnownKeys(options, TRIM_KEYS, 'trim options');
    const { keepCount } = options;
    assertInteger(keepCount, 'keepCount', 0);
    const keys = this.parts.keyspace.queue(queue);
    let removed = 0;
    for (;;) {
      const now = await this.run(wire.trim, keys, { keepCount, limit: MOST_PER_SWEEP });
      removed += now;
      if (now < MOST_PER_SWEEP) return removed;
    }
  }

  /** From then on nothing of the queue is claimed, by anybody; running handlers go on. False when it was paused. */
  pause(queue: string): Promise<boolean> {
    return this.switch(wire.pause, queue);
  }

  resume(queue: string): Promise<boolean> {
    return this.switch(wire.resume, queue);
  }

  async isPaused(queue: string): Promise<boolean> {
    return (await this.counts(queue)).paused;
  }

  /** Sizes and totals, from one consistent look. */
  async counts(queue: string): Promise<wire.Counts> {
    return this.run(wire.counts, this.parts.keyspace.queue(queue), undefined);
  }

  async get(queue: string, id: string): Promise<JobView | undefined> {
    assertJobId(id);
    const [row] = await this.run(wire.get, this.parts.keyspace.queue(queue), [id]);
    return row && viewOf(id, row, this.parts.codec);
  }

  /**
   * A page of the jobs in one state, in the order they would be taken: 1 to 1,000 jobs, default 100, from `offset`. A page
   * of large payloads may be shorter; `next` says where to go on.
   */
  async list(queue: string, state: ListableState, options: { offset?: number; limit?: number } = {}): Promise<Page> {
    const keys = this.parts.keyspace.queue(queue);
    assertKnownKeys(options, PAGE_KEYS, 'list options');
    const step = Object.hasOwn(wire.list, state) ? wire.list[state] : undefined;
    if (step === undefined) {
      const states = JOB_STATES.filter((known) => known !== 'done').join(', ');
      throw new EchoArgumentError(`state ${show(state)} cannot be listed. Known are ${states}`);
    }
    const { offset = 0, limit = 100 } = options;
    assertInteger(offset, 'offset', 0);
    assertInteger(limit, 'limit', 1, 1000);
    const { total, rows } = await this.run(step, keys, { offset, limit, maxBytes: PAGE_BYTES });
    const jobs = rows.flatMap(({ id, row }) => (row ? [viewOf(id, row, this.parts.codec)] : []));
    const end = offset + rows.length;
    return { jobs, total, next: rows.length > 0 && end < total ? end : undefined };
  }

  /**
   * Removes the queue with everything in it, in bounded steps; it is paused from the first. With running jobs only under
   * `force`. Answers how many jobs went. @throws EchoStateError when jobs are running
   */
  async obliterate(queue: string, options: { force?: boolean } = {}): Promise<number> {
    assertKnownKeys(options, FORCE_KEYS, 'obliterate options');
    const { force = false } = options;
    assertBoolean(force, 'force', EchoArgumentError);
    const keys = this.parts.keyspace.queue(queue);
    let removed = 0;
    for (;;) {
      const now = await this.run(wire.obliterate, keys, { force, limit: MOST_PER_SWEEP });
      removed += now;
      if (now === 0) break;
    }
    for await (const ids of everyRow(this.parts.connection, keys)) {
      await this.run(wire.sweep, keys, ids); // kept results stand in no set
    }
    await this.run(wire.resume, keys, undefined);
    return removed;
  }

  private item(name: string, data: unknown, opts: EnqueueOptions | undefined): Draft {
    if (typeof name !== 'string' || name === '') {
      throw new EchoArgumentError(`a job's name must be a string that is not empty, got ${show(name)}`);
    }
    const { id, delay, fields, travelling } = landingOf(opts);
    const payload = this.encode(name, data, travelling);
    return { id: id ?? this.parts.minting.next() ?? '', payload, delay, fields, fresh: id === undefined };
  }

  private encode(name: string, data: unknown, travelling: ReturnType<typeof landingOf>['travelling']): string | Buffer {
    let payload: string | Buffer;
    try {
      payload = this.parts.codec.encode(name, data, travelling);
    } catch (error) {
      if (error instanceof EchoArgumentError) throw error;
      throw new EchoArgumentError(`the codec cannot encode the job: ${failureText(error)}`, error);
    }
    assertSize(payload, this.parts.maxPayloadBytes, 'the job');
    return payload;
  }

  /** Waits until ids can be minted again. */
  private canMint(jobs: number): Promise<void> {
    const { enqueuer, minting, enqueueTimeoutMs } = this.parts;
    return enqueuer.holding(jobs, minting.renewWithin(enqueueTimeoutMs));
  }

  private claimed(queue: string, id: string, token: string): QueueKeys {
    assertJobId(id);
    if (typeof token !== 'string' || token === '') {
      throw new EchoArgumentError(`token must be the one that claim answered, got ${show(token)}`);
    }
    return this.parts.keyspace.queue(queue);
  }

  private run<Call, Answer>(step: Transition<Call, Answer>, keys: QueueKeys, call: Call): Promise<Answer> {
    return this.parts.executor.run(step, keys, call, this.parts.requestTimeoutMs);
  }

  /** For one job. After a second sending, the answer may speak of what the first one did. */
  private async settle<Call, Answer>(
    step: Transition<Call, Answer[]>,
    keys: QueueKeys,
    call: Call,
  ): Promise<{ answer: Answer; resent: boolean }> {
    const { answer, resent } = await this.tracked(step, keys, call);
    return { answer: answer[0]!, resent };
  }

  private async switch(step: Transition<void, boolean>, queue: string): Promise<boolean> {
    const { answer, resent } = await this.tracked(step, this.parts.keyspace.queue(queue), undefined);
    return answer || resent;
  }

  private async tracked<Call, Answer>(
    step: Transition<Call, Answer>,
    keys: QueueKeys,
    call: Call,
  ): Promise<{ answer: Answer; resent: boolean }> {
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    const answer = await this.parts.executor.run(step, keys, call, this.parts.requestTimeoutMs, onResend);
    return { answer, resent };
  }
}

function isLost(answer: Outcome | RetryOutcome): boolean {
  return answer === 'gone' || answer === 'stale';
}

type Draft = { -readonly [K in keyof OutgoingJob]: OutgoingJob[K] };

const ENTRY_KEYS = new Set(['name', 'data', 'opts']);
const CLAIM_KEYS = new Set(['leaseMs', 'count']);
const COMPLETE_KEYS = new Set(['result', 'keepMs']);
const RETRY_KEYS = new Set(['maxAttempts', 'delayMs', 'error']);
const DELAY_KEYS = new Set(['delayMs']);
const LEASE_KEYS = new Set(['leaseMs']);
const LIMIT_KEYS = new Set(['limit']);
const REAP_KEYS = new Set(['limit', 'maxStalls']);
const FRESH_KEYS = new Set(['fresh']);
const WHEN_KEYS = new Set(['delayMs', 'runAt']);
const TRIM_KEYS = new Set(['keepCount']);
const PAGE_KEYS = new Set(['offset', 'limit']);
const FORCE_KEYS = new Set(['force']);
