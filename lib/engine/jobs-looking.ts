import { assertInteger, assertKnownKeys, show } from '../kernel/arguments.js';
import { EchoArgumentError, EchoJobError, EchoStateError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import { type Lane, laneName } from '../kernel/lane.js';
import type { Queue } from '../kernel/queue.js';
import { JOB_STATES, type ListableState } from '../kernel/state.js';
import * as wire from '../wire/transitions/index.js';
import { type JobView, viewOf } from './job-view.js';
import { JobsBase } from './jobs-base.js';
import { KNOWN, type Page } from './jobs-calls.js';
import { type CompletionPage, completionPage, readAfter } from './recording.js';
import { resultOf } from './results.js';

const PAGE_BYTES = 8_000_000;

/** To look at jobs and queues. */
export abstract class JobsLooking extends JobsBase {
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
   * of large payloads may be shorter; `next` says where to go on. Of pending jobs those without a lane come first, then lane by
   * lane; with `lane` only that one's, or for null those without.
   */
  async list(
    queue: string | Queue,
    state: ListableState,
    options: { offset?: number | undefined; limit?: number | undefined; lane?: Lane | null | undefined } = {},
  ): Promise<Page> {
    const keys = this.keys(queue);
    assertKnownKeys(options, KNOWN.list, 'list options');
    const step = typeof state === 'string' && Object.hasOwn(wire.list, state) ? wire.list[state] : undefined;
    if (step === undefined) {
      const states = JOB_STATES.filter((known) => known !== 'done').join(', ');
      throw new EchoArgumentError(`state ${show(state)} cannot be listed. Known are ${states}`);
    }
    const { offset = 0, limit = 100 } = options;
    assertInteger(offset, 'offset', 0);
    assertInteger(limit, 'limit', 1, 1000);
    if (options.lane !== undefined && state !== 'pending') {
      throw new EchoArgumentError(`list: only pending jobs stand in lanes, not those that are ${state}`);
    }
    const lane = options.lane === undefined ? undefined : laneName(options.lane);
    const { total, rows } = await this.run(step, keys, { offset, limit, maxBytes: PAGE_BYTES, lane });
    const jobs = rows.flatMap(({ id, row }) => (row ? [viewOf(id, row, this.parts.codec)] : []));
    const end = offset + rows.length;
    return { jobs, total, next: rows.length > 0 && end < total ? end : undefined };
  }

  /**
   * Jobs that have settled, oldest first, where consumers record them (option `record`): up to `limit` (1 to 1,000, default 100)
   * behind the entry `after`, by default from the oldest that is kept. A page of large results may be shorter. When the server no
   * longer knows `after`, because it was flushed or has lost the stream, it begins anew and says `restarted`.
   */
  async completions(
    queue: string | Queue,
    options: { after?: string | undefined; limit?: number | undefined } = {},
  ): Promise<CompletionPage> {
    const keys = this.keys(queue);
    assertKnownKeys(options, KNOWN.completions, 'completions options');
    const after = readAfter(options.after);
    const { limit = 100 } = options;
    assertInteger(limit, 'limit', 1, 1000);
    const page = await this.run(wire.completions, keys, { after, limit, maxBytes: PAGE_BYTES });
    return completionPage(page, after, this.parts.codec);
  }
}
