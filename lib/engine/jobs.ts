import { assertBoolean, assertInteger, assertKnownKeys, assertSize, show } from '../kernel/arguments.js';
import type { Codec } from '../kernel/codec.js';
import { EchoArgumentError, type EchoError, EchoJobError, EchoStateError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import type { CancelOutcome, ExtendOutcome, Outcome, RetryOutcome } from '../kernel/outcome.js';
import { type Queue, queueName } from '../kernel/queue.js';
import { JOB_STATES, type ListableState } from '../kernel/state.js';
import type { Connection } from '../wire/connection.js';
import type { Executor } from '../wire/executor.js';
import { everyRow } from '../wire/rows.js';
import type { Transition } from '../wire/transition.js';
import * as wire from '../wire/transitions/index.js';
import { EchoBulkError } from './bulk-error.js';
import { type Draft, Drafts } from './drafts.js';
import { delayText, type EnqueueOptions, landingOf } from './enqueue-options.js';
import type { EnqueueResult, Enqueuer } from './enqueuer.js';
import { failureText } from './failure-text.js';
import type { Flows } from './flows.js';
import { EchoDataError } from './invalid-data.js';
import type { DataArguments, EntryFor, NameFor } from './job-types.js';
import { envelopeOf, type JobView, viewOf } from './job-view.js';
import { type ClaimedJob, type EnqueueEntry, KNOWN, type Page, type WaitingOptions, waitMs } from './jobs-calls.js';
import type { Minting } from './minting.js';
import { resultOf } from './results.js';
import { checkData } from './validation.js';
import type { Waits } from './waits.js';

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
  flows: Flows;
  waits: Waits;
  epoch(keys: QueueKeys): string | undefined;
}

const MOST_PER_SWEEP = 1000;
const PAGE_BYTES = 8_000_000;

/**
 * Everything that can be done to jobs from outside a handler. Every method takes the queue first, by name or as what
 * `defineQueue` made of it, refuses nonsense with an EchoArgumentError before a byte is sent, and rejects with an EchoError
 * when the server cannot do it.
 */
export class Jobs {
  private readonly drafts: Drafts;

  /** @internal */
  constructor(private readonly parts: JobsParts) {
    this.drafts = new Drafts(parts);
  }

  /** An id to enqueue under, now or again. @throws EchoStoreError, retryable, when no node number is leased */
  mintId(): string {
    return this.parts.minting.require();
  }

  /**
   * Resolves once the server has the job. Calls made in one turn of the event loop for one queue go out as one script
   * call. After a connection loss an unanswered job is sent again under its id, and so lands once.
   *
   * On a queue of `defineQueue` name and data are checked by the compiler. Where it has schemas the data is validated before
   * anything is sent, and sent as it was given.
   * @throws EchoDataError, with `issues`, when the data does not fit its schema
   */
  enqueue<Of extends string | Queue, Name extends NameFor<Of>>(
    queue: Of,
    name: Name,
    ...data: DataArguments<Of, Name>
  ): Promise<EnqueueResult>;
  enqueue(queue: string | Queue, name: string, data?: unknown, opts?: EnqueueOptions): Promise<EnqueueResult> {
    try {
      if (typeof queue !== 'string') return this.enqueueChecked(queue, name, data, opts);
      return this.send(this.parts.keyspace.queue(queue), this.drafts.make(name, data, opts));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Script calls of 500 jobs, in order, each all or nothing; every item is checked, and validated where the queue has
   * schemas, before the first is sent.
   * @throws EchoArgumentError naming the item, an EchoDataError when its data does not fit
   * @throws EchoBulkError when some of the calls failed, or all: it says which jobs landed, and under which ids to repeat
   */
  enqueueMany<Of extends string | Queue>(queue: Of, entries: readonly EntryFor<Of>[]): Promise<EnqueueResult[]>;
  async enqueueMany(queue: string | Queue, entries: readonly EnqueueEntry[]): Promise<EnqueueResult[]> {
    const keys = this.keys(queue);
    if (!Array.isArray(entries)) throw new EchoArgumentError(`enqueueMany takes an array, got ${show(entries)}`);
    const checking: Promise<void>[] = [];
    const items = entries.map((entry, i) => {
      try {
        assertKnownKeys(entry, KNOWN.entry, 'item');
        const { name, data, opts } = entry as unknown as EnqueueEntry;
        const draft = this.drafts.make(name, data, opts);
        const check = typeof queue === 'string' ? undefined : checkData(queue, name, data);
        if (check !== undefined) {
          const named = check.catch((error) => Promise.reject(ofItem(i, error)));
          named.catch(() => undefined); // another item may be refused before this one is known to be
          checking.push(named);
        }
        return draft;
      } catch (error) {
        throw ofItem(i, error);
      }
    });
    if (items.length === 0) return [];
    if (checking.length > 0) await this.parts.enqueuer.holding(items.length, Promise.all(checking));
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
  async claim(queue: string | Queue, options: { leaseMs: number; count?: number }): Promise<ClaimedJob[]> {
    const keys = this.keys(queue);
    assertKnownKeys(options, KNOWN.claim, 'claim options');
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
    queue: string | Queue,
    id: string,
    token: string,
    options: { result?: unknown; keepMs?: number } = {},
  ): Promise<Outcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.complete, 'complete options');
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
    queue: string | Queue,
    id: string,
    token: string,
    options: { maxAttempts: number; delayMs?: number; error?: unknown },
  ): Promise<RetryOutcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.retry, 'retry options');
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
  async release(
    queue: string | Queue,
    id: string,
    token: string,
    options: { delayMs?: number } = {},
  ): Promise<Outcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.release, 'release options');
    const delay = delayText(options.delayMs ?? 0, 'delayMs');
    const { answer, resent } = await this.settle(wire.release, keys, [{ id, token, delay }]);
    return resent && isLost(answer) ? 'ok' : answer;
  }

  /** Renews the lease: it then ends `leaseMs` from the server's now. `cancelled` means renewed, but asked to stop. */
  async extend(queue: string | Queue, id: string, token: string, options: { leaseMs: number }): Promise<ExtendOutcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.extend, 'extend options');
    assertInteger(options.leaseMs, 'leaseMs', 1);
    const [outcome] = await this.run(wire.extend, keys, { leaseMs: options.leaseMs, items: [{ id, token }] });
    return outcome!;
  }

  /** Moves jobs whose time has come to pending. Consumers do this by themselves. */
  async promote(queue: string | Queue, options: { limit?: number } = {}): Promise<wire.Promoted> {
    assertKnownKeys(options, KNOWN.promote, 'promote options');
    const { limit = 1000 } = options;
    assertInteger(limit, 'limit', 1, 1000);
    return this.run(wire.promote, this.keys(queue), { limit });
  }

  /** Takes back jobs whose lease has lapsed. Consumers do this by themselves. */
  async reap(queue: string | Queue, options: { limit?: number; maxStalls?: number } = {}): Promise<wire.Reaped> {
    assertKnownKeys(options, KNOWN.reap, 'reap options');
    const { limit = 1000, maxStalls = 2 } = options;
    assertInteger(limit, 'limit', 1, 1000);
    assertInteger(maxStalls, 'maxStalls', 0);
    const keys = this.keys(queue);
    return this.run(wire.reap, keys, { limit, maxStalls, epoch: this.parts.epoch(keys) ?? '', record: 0 });
  }

  /** Puts a dead job back to pending. With `fresh` the attempts so far no longer count against the cap. */
  async reprocess(queue: string | Queue, id: string, options: { fresh?: boolean } = {}): Promise<Outcome> {
    assertKnownKeys(options, KNOWN.reprocess, 'reprocess options');
    assertJobId(id);
    const { fresh = false } = options;
    assertBoolean(fresh, 'fresh', EchoArgumentError);
    const keys = this.keys(queue);
    const { answer, resent } = await this.settle(wire.reprocess, keys, { fresh, ids: [id] });
    this.parts.flows.owes(keys);
    return resent && answer === 'wrong_state' ? 'ok' : answer;
  }

  /**
   * Removes a job that nobody is running. A parent with outstanding children goes only with its `tree`: all its descendants in
   * bounded steps, leaves first; those that run are cut loose and end as any job.
   */
  async remove(queue: string | Queue, id: string, options: { tree?: boolean } = {}): Promise<Outcome> {
    const { keys, tree } = this.felled(queue, id, options, 'remove options');
    const outcome = await this.felling(wire.remove, keys, id, tree, 'ok');
    return outcome === 'cut_loose' || outcome === 'children_first' ? 'wrong_state' : outcome;
  }

  /**
   * Removes a job that has not started; asks a running one to stop, which fires its handler's signal. A parent that waits is
   * cancelled only with its `tree`, all its descendants with it.
   */
  async cancel(queue: string | Queue, id: string, options: { tree?: boolean } = {}): Promise<CancelOutcome> {
    const { keys, tree } = this.felled(queue, id, options, 'cancel options');
    const outcome = await this.felling(wire.cancel, keys, id, tree, 'removed');
    return outcome === 'children_first' ? 'wrong_state' : outcome;
  }

  /**
   * The result of a job that has completed and is kept (`keepMs`).
   * @throws EchoJobError when it is dead or gone, EchoStateError (`ECHO_NOT_ENDED`) when it has not ended
   */
  async result(queue: string | Queue, id: string): Promise<unknown> {
    const job = await this.get(queue, id);
    if (job === undefined) throw EchoJobError.removed(id);
    if (job.state === 'dead') throw EchoJobError.dead(id, job.lastError ?? '');
    if (job.state === 'done') return resultOf(job.result, this.parts.codec);
    throw new EchoStateError(`job ${id} has not ended: it is ${job.state}`, 'ECHO_NOT_ENDED');
  }

  /**
   * Waits for a job to end, and resolves with its result; also for one that has ended already, as long as it is kept.
   * @throws EchoJobError when it dies, or is removed; EchoTimeoutError after `timeoutMs` (default 30 s; it goes on then)
   */
  async wait(queue: string | Queue, id: string, options: { timeoutMs?: number } = {}): Promise<unknown> {
    assertKnownKeys(options, KNOWN.wait, 'wait options');
    assertJobId(id);
    return this.parts.waits.end(this.keys(queue), id, waitMs(options.timeoutMs));
  }

  /**
   * Enqueues a job and waits for its end, whoever runs it: resolves with its result. `timeoutMs` is for the wait (default 30 s);
   * the rest of the options is as for {@link enqueue}, with `handlerTimeoutMs` for the time the handler may take.
   * @throws as {@link enqueue} and {@link wait} do
   */
  async enqueueAndWait<Of extends string | Queue, Name extends NameFor<Of>>(
    queue: Of,
    name: Name,
    data: DataArguments<Of, Name>[0],
    options: WaitingOptions = {},
  ): Promise<unknown> {
    const { timeoutMs, handlerTimeoutMs, ...opts } = options;
    const limit = waitMs(timeoutMs);
    const id = opts.id ?? (await this.freshId());
    const landing = { ...opts, id, ...(handlerTimeoutMs === undefined ? {} : { timeoutMs: handlerTimeoutMs }) };
    const draft = this.drafts.make(name, data, landing);
    draft.fields = [...draft.fields, 'awaited', '1'];
    if (typeof queue !== 'string') await checkData(queue, name, data);
    const keys = this.keys(queue);
    return this.parts.waits.end(keys, id, limit, () => this.parts.enqueuer.add(keys, draft));
  }

  /** Gives a job that waits for its time another time. `wrong_state`: it does not wait (any more). */
  async reschedule(
    queue: string | Queue,
    id: string,
    options: { delayMs?: number; runAt?: Date | number },
  ): Promise<Outcome> {
    assertJobId(id);
    assertKnownKeys(options, KNOWN.reschedule, 'reschedule options');
    if (options.delayMs === undefined && options.runAt === undefined) {
      throw new EchoArgumentError('reschedule needs a time: give delayMs or runAt');
    }
    const { delay } = landingOf(options);
    const [outcome] = await this.run(wire.reschedule, this.keys(queue), [{ id, delay }]);
    return outcome!;
  }

  /** Removes the oldest dead jobs until `keepCount` are left; answers how many went. */
  async trim(queue: string | Queue, options: { keepCount: number }): Promise<number> {
    assertKnownKeys(options, KNOWN.trim, 'trim options');
    const { keepCount } = options;
    assertInteger(keepCount, 'keepCount', 0);
    const keys = this.keys(queue);
    let removed = 0;
    for (;;) {
      const now = await this.run(wire.trim, keys, { keepCount, limit: MOST_PER_SWEEP });
      removed += now;
      if (now < MOST_PER_SWEEP) break;
    }
    this.parts.flows.owes(keys);
    return removed;
  }

  /** From then on nothing of the queue is claimed, by anybody; running handlers go on. False when it was paused. */
  pause(queue: string | Queue): Promise<boolean> {
    return this.switch(wire.pause, queue);
  }

  resume(queue: string | Queue): Promise<boolean> {
    return this.switch(wire.resume, queue);
  }

  async isPaused(queue: string | Queue): Promise<boolean> {
    return (await this.counts(queue)).paused;
  }

  /** Sizes and totals, from one consistent look. */
  async counts(queue: string | Queue): Promise<wire.Counts> {
    return this.run(wire.counts, this.keys(queue), undefined);
  }

  async get(queue: string | Queue, id: string): Promise<JobView | undefined> {
    assertJobId(id);
    const [row] = await this.run(wire.get, this.keys(queue), [id]);
    return row && viewOf(id, row, this.parts.codec);
  }

  /**
   * A page of the jobs in one state, in the order they would be taken: 1 to 1,000 jobs, default 100, from `offset`. A page
   * of large payloads may be shorter; `next` says where to go on.
   */
  async list(
    queue: string | Queue,
    state: ListableState,
    options: { offset?: number; limit?: number } = {},
  ): Promise<Page> {
    const keys = this.keys(queue);
    assertKnownKeys(options, KNOWN.list, 'list options');
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
  async obliterate(queue: string | Queue, options: { force?: boolean } = {}): Promise<number> {
    assertKnownKeys(options, KNOWN.obliterate, 'obliterate options');
    const { force = false } = options;
    assertBoolean(force, 'force', EchoArgumentError);
    const keys = this.keys(queue);
    let removed = 0;
    for (;;) {
      const now = await this.run(wire.obliterate, keys, { force, limit: MOST_PER_SWEEP });
      removed += now;
      if (now === 0) break;
    }
    for await (const ids of everyRow(this.parts.connection, keys)) {
      await this.run(wire.sweep, keys, ids); // kept results stand in no set
    }
    await this.parts.flows.settleDebts(keys);
    await this.run(wire.resume, keys, undefined);
    return removed;
  }

  private keys(queue: string | Queue): QueueKeys {
    return this.parts.keyspace.queue(typeof queue === 'string' ? queue : queueName(queue));
  }

  private felled(queue: string | Queue, id: string, options: { tree?: boolean }, what: string) {
    assertJobId(id);
    assertKnownKeys(options, KNOWN.tree, what);
    const { tree = false } = options;
    assertBoolean(tree, 'tree', EchoArgumentError);
    return { keys: this.keys(queue), tree };
  }

  /** Removes or cancels a job, with `tree` its descendants before it. */
  private async felling<Answer extends string>(
    step: Transition<wire.TreeCall, Answer[]>,
    keys: QueueKeys,
    id: string,
    tree: boolean,
    done: Answer,
  ): Promise<Answer> {
    const one = async ({ keys, id, first }: { keys: QueueKeys; id: string; first: boolean }): Promise<Answer> => {
      const { answer, resent } = await this.settle(step, keys, { tree, first, ids: [id] });
      this.parts.flows.owes(keys);
      return resent && answer === 'gone' ? done : answer;
    };
    return this.parts.flows.fell(keys, id, one);
  }

  private async freshId(): Promise<string> {
    const id = this.parts.minting.next();
    if (id !== undefined) return id;
    await this.canMint(1);
    return this.mintId();
  }

  /** @throws what enqueue rejects with */
  private enqueueChecked(queue: Queue, name: string, data: unknown, opts: EnqueueOptions | undefined) {
    const keys = this.keys(queue);
    const draft = this.drafts.make(name, data, opts);
    const checking = checkData(queue, name, data);
    if (checking === undefined) return this.send(keys, draft);
    return this.parts.enqueuer.holding(1, checking).then(() => this.send(keys, draft));
  }

  private send(keys: QueueKeys, draft: Draft): Promise<EnqueueResult> {
    if (draft.id !== '') return this.parts.enqueuer.add(keys, draft);
    return this.canMint(1).then(() => this.parts.enqueuer.add(keys, { ...draft, id: this.mintId() }));
  }

  /** Waits until ids can be minted again. */
  private canMint(jobs: number): Promise<void> {
    const { enqueuer, minting, enqueueTimeoutMs } = this.parts;
    return enqueuer.holding(jobs, minting.renewWithin(enqueueTimeoutMs));
  }

  private claimed(queue: string | Queue, id: string, token: string): QueueKeys {
    assertJobId(id);
    if (typeof token !== 'string' || token === '') {
      throw new EchoArgumentError(`token must be the one that claim answered, got ${show(token)}`);
    }
    return this.keys(queue);
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

  private async switch(step: Transition<void, boolean>, queue: string | Queue): Promise<boolean> {
    const { answer, resent } = await this.tracked(step, this.keys(queue), undefined);
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

function ofItem(index: number, error: unknown): EchoArgumentError {
  const message = `item ${index}: ${(error as Error).message}`;
  return error instanceof EchoDataError
    ? new EchoDataError(message, error.issues, error)
    : new EchoArgumentError(message, error);
}
