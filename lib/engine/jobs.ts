import { assertKnownKeys, assertObject, show } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { type Queue } from '../kernel/queue.js';
import type { ScheduleTimes } from '../kernel/schedule-spec.js';
import { allLanded, EchoBulkError } from './bulk-error.js';
import { located, type Place, refuseDedup, refuseDoubles } from './bulk-refusals.js';
import { type Draft, Drafts, named } from './drafts.js';
import type { EnqueueOptions } from './enqueue-options.js';
import type { EnqueueResult } from './enqueuer.js';
import { type PlannedNode, refuseTooMany } from './flow-plan.js';
import type { DataArguments, EntryFor, NameFor } from './job-types.js';
import type { JobsParts } from './jobs-base.js';
import {
  type BulkCallback,
  type BulkWithCallback,
  type EnqueueEntry,
  KNOWN,
  type WaitingOptions,
  waitMs,
} from './jobs-calls.js';
import { JobsLimits } from './jobs-limits.js';
import type { DeclaredSchedule, ScheduleOptions } from './schedule-calls.js';
import { checkData } from './validation.js';

/**
 * Everything that can be done to jobs from outside a handler. Every method takes the queue first, by name or as what
 * `defineQueue` made of it, refuses nonsense with an EchoArgumentError before a byte is sent, and rejects with an EchoError
 * when the server cannot do it.
 */
export class Jobs extends JobsLimits {
  private readonly drafts: Drafts;

  /** @internal */
  constructor(parts: JobsParts) {
    super(parts);
    this.drafts = new Drafts(parts);
  }

  /**
   * An id to enqueue under, now or again.
   * @throws EchoStoreError, retryable, when no node number is leased; EchoStateError once the EchoMq is closed
   */
  mintId(): string {
    return this.parts.minting.require();
  }

  /**
   * Resolves once the server has the job. Calls made in one turn of the event loop for one queue go out as one script
   * call; only the first of them may go by itself, to an idle consumer of this process. After a connection loss an
   * unanswered job is sent again under its id, and so lands once.
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
      return this.send(this.parts.keyspace.queue(queue), this.draft(queue, name, data, opts));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Script calls of 500 jobs, in order, each all or nothing but for jobs whose lane is full (`maxWaiting`); every item is
   * checked, and validated where the queue has schemas, before the first is sent.
   * @throws EchoArgumentError naming the item, an EchoDataError when its data does not fit
   * @throws EchoBulkError when some of the calls failed, or all: it says which jobs landed, and under which ids to repeat
   */
  enqueueMany<Of extends string | Queue>(queue: Of, entries: readonly EntryFor<Of>[]): Promise<EnqueueResult[]>;
  /**
   * The same, and `then` is a job that runs once when all of them have settled: completed, dead, cancelled or
   * removed. They are its children under the policy `ignore`: `job.children()` tells it what they answered, and of
   * what the others died. Without items it runs at once. Nothing lands without the callback: all of it stands on the
   * server, or is owed by it.
   * @throws EchoArgumentError naming the item or `then`, or for more than 100,000 items; an EchoDataError when the data of
   * one does not fit; EchoStateError when the id of an item is taken
   */
  enqueueMany<Of extends string | Queue, Then extends string | Queue = Of>(
    queue: Of,
    entries: readonly EntryFor<Of>[],
    bulk: { then: BulkCallback<Then> },
  ): Promise<BulkWithCallback>;
  async enqueueMany(
    queue: string | Queue,
    entries: readonly EnqueueEntry[],
    bulk: { then?: BulkCallback } = {},
  ): Promise<EnqueueResult[] | BulkWithCallback> {
    const keys = this.keys(queue);
    if (!Array.isArray(entries)) throw new EchoArgumentError(`enqueueMany takes an array, got ${show(entries)}`);
    assertKnownKeys(bulk, KNOWN.bulk, 'enqueueMany options');
    if (bulk.then !== undefined) refuseTooMany(entries, 'items');
    const checking: Promise<void>[] = [];
    const items = entries.map((entry, i) => {
      try {
        assertKnownKeys(entry, KNOWN.entry, 'item');
        return this.checked(queue, entry as unknown as EnqueueEntry, i, checking);
      } catch (error) {
        throw located(error, i);
      }
    });
    if (bulk.then !== undefined) return this.withCallback(queue, entries, items, bulk.then as BulkCallback, checking);
    if (items.length === 0) return [];
    if (checking.length > 0) await this.parts.enqueuer.holding(items.length, Promise.all(checking));
    if (items.some((item) => item.id === '')) {
      await this.canMint(items.length);
      for (const item of items) if (item.id === '') named(item, this.mintId());
    }
    const results = await this.parts.enqueuer.addMany(keys, items);
    return allLanded(results, () => items.map((item) => item.id), EchoBulkError);
  }

  /**
   * Waits for a job to end, and resolves with its result; also for one that has ended already, as long as it is kept.
   * @throws EchoJobError when it dies, or is removed; EchoTimeoutError after `timeoutMs` (default 30 s; it goes on then)
   */
  async wait(queue: string | Queue, id: string, options: { timeoutMs?: number | undefined } = {}): Promise<unknown> {
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
    const keys = this.keys(queue);
    assertObject(options, 'enqueueAndWait options');
    const { timeoutMs, handlerTimeoutMs, ...opts } = options;
    const limit = waitMs(timeoutMs);
    const id = opts.id ?? (await this.freshId());
    const landing = { ...opts, id, ...(handlerTimeoutMs === undefined ? {} : { timeoutMs: handlerTimeoutMs }) };
    const draft = this.drafts.make(name, data, landing);
    draft.fields = [...draft.fields, 'awaited', '1'];
    const checking = typeof queue === 'string' ? undefined : checkData(queue, name, data);
    this.laneBehind(checking, draft, queue, { name, data, opts: landing });
    await checking;
    if (opts.dedup !== undefined) {
      const there = await this.parts.enqueuer.add(keys, draft); // of a duplicate, the job that has the key is waited for
      return this.parts.waits.end(keys, there.id, limit);
    }
    const begin = async () => (await this.parts.enqueuer.add(keys, draft)).status === 'landed';
    return this.parts.waits.end(keys, id, limit, begin);
  }

  /**
   * Lands a job at every slot of `times`, `{ cron, tz }` or `{ everyMs }`, from now on: short for `schedules.put`, which says more.
   */
  schedule<Of extends string | Queue, Name extends NameFor<Of>>(
    queue: Of,
    key: string,
    times: ScheduleTimes,
    name: Name,
    ...data: DataArguments<Of, Name, ScheduleOptions>
  ): Promise<DeclaredSchedule> {
    return this.parts.schedules.put(queue, key, times, name, ...data);
  }

  /**
   * @throws EchoArgumentError at once, or by a promise that it adds to `checking` and that says which `place` it is
   * about
   */
  private checked(
    queue: string | Queue,
    { name, data, opts }: EnqueueEntry,
    place: Place,
    checking: Promise<void>[],
  ): Draft {
    const draft = this.drafts.make(name, data, opts);
    const check = typeof queue === 'string' ? undefined : checkData(queue, name, data);
    if (check !== undefined) {
      const placed = check.catch((error) => Promise.reject(located(error, place)));
      placed.catch(() => undefined); // another one may be refused before this one is known to be
      checking.push(placed);
    }
    return this.lane(draft, queue, { name, data, opts });
  }

  /** Lands the items as children of the callback. */
  private async withCallback(
    queue: string | Queue,
    entries: readonly EnqueueEntry[],
    items: readonly Draft[],
    callback: BulkCallback<string | Queue>,
    checking: Promise<void>[],
  ): Promise<BulkWithCallback> {
    const itemsIn = this.keys(queue).queue;
    const children = items.map(
      (draft, i): PlannedNode => ({ queue: itemsIn, name: entries[i]!.name, draft, policy: 'ignore', children: [] }),
    );
    let root: PlannedNode;
    try {
      assertKnownKeys(callback, KNOWN.callback, 'it');
      const { queue: own = queue, ...entry } = callback as BulkCallback;
      const { queue: runsIn } = this.keys(own);
      const draft = this.checked(own, entry, 'then', checking);
      if (draft.delay !== '') throw new EchoArgumentError('it runs when the jobs have settled, not after a delay');
      root = { queue: runsIn, name: entry.name, draft, policy: 'fail', children };
    } catch (error) {
      throw located(error, 'then');
    }
    const all = [root, ...children];
    refuseDoubles(all);
    refuseDedup(root, children);
    const { id, status, children: landed } = await this.parts.flows.landPlanned({ nodes: [root], all, checking });
    return { jobs: landed.map((child) => ({ id: child.id, status })), callback: { id, status } };
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
    this.laneBehind(checking, draft, queue, { name, data, opts });
    if (checking === undefined) return this.send(keys, draft);
    return this.parts.enqueuer.holding(1, checking).then(() => this.send(keys, draft));
  }

  private draft(queue: string, name: string, data: unknown, opts: EnqueueOptions | undefined): Draft {
    const draft = this.drafts.make(name, data, opts);
    draft.fields = this.parts.laneRules.fields(queue, name, data, opts?.lane, draft.fields);
    return draft;
  }

  /**
   * Once the schema, unless it answers later, has found that the data fits: a function that chooses lanes may read
   * it.
   */
  private lane(draft: Draft, queue: string | Queue, { name, data, opts }: EnqueueEntry): Draft {
    draft.fields = this.parts.laneRules.fields(queue, name, data, opts?.lane, draft.fields);
    return draft;
  }

  /** The same while a schema has not answered yet. */
  private laneBehind(
    checking: Promise<void> | undefined,
    draft: Draft,
    queue: string | Queue,
    entry: EnqueueEntry,
  ): void {
    try {
      this.lane(draft, queue, entry);
    } catch (error) {
      checking?.catch(() => undefined); // refused already
      throw error;
    }
  }

  private send(keys: QueueKeys, draft: Draft): Promise<EnqueueResult> {
    if (draft.id !== '') return this.parts.enqueuer.add(keys, draft);
    return this.canMint(1).then(() => this.parts.enqueuer.add(keys, named(draft, this.mintId())));
  }

  /** Waits until ids can be minted again. */
  private canMint(jobs: number): Promise<void> {
    const { enqueuer, minting, enqueueTimeoutMs } = this.parts;
    return enqueuer.holding(jobs, minting.renewWithin(enqueueTimeoutMs));
  }
}
