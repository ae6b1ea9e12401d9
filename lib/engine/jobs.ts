import { assertKnownKeys, show } from '../kernel/arguments.js';
import { EchoArgumentError, type EchoError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { type Queue } from '../kernel/queue.js';
import type { ScheduleTimes } from '../kernel/schedule-spec.js';
import { EchoBulkError } from './bulk-error.js';
import { type Draft, Drafts } from './drafts.js';
import type { EnqueueOptions } from './enqueue-options.js';
import type { EnqueueResult } from './enqueuer.js';
import { EchoDataError } from './invalid-data.js';
import type { DataArguments, EntryFor, NameFor } from './job-types.js';
import type { JobsParts } from './jobs-base.js';
import { type EnqueueEntry, KNOWN, type WaitingOptions, waitMs } from './jobs-calls.js';
import { JobsUpkeep } from './jobs-upkeep.js';
import type { DeclaredSchedule, ScheduleOptions } from './schedule-calls.js';
import { checkData } from './validation.js';

/**
 * Everything that can be done to jobs from outside a handler. Every method takes the queue first, by name or as what
 * `defineQueue` made of it, refuses nonsense with an EchoArgumentError before a byte is sent, and rejects with an EchoError
 * when the server cannot do it.
 */
export class Jobs extends JobsUpkeep {
  private readonly drafts: Drafts;

  /** @internal */
  constructor(parts: JobsParts) {
    super(parts);
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
}

function ofItem(index: number, error: unknown): EchoArgumentError {
  const message = `item ${index}: ${(error as Error).message}`;
  return error instanceof EchoDataError
    ? new EchoDataError(message, error.issues, error)
    : new EchoArgumentError(message, error);
}
