import { assertBoolean, assertInteger, assertKnownKeys, show, showAnswer } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { isGroupText } from '../kernel/lane.js';
import type { Queue } from '../kernel/queue.js';
import * as wire from '../wire/transitions/index.js';
import { type JobView, viewOf } from './job-view.js';
import { KNOWN, type Matching } from './jobs-calls.js';
import { JobsChanging } from './jobs-changing.js';

const MOST_PER_CALL = 500;
const MOST_PER_PART = 1000;
const ROWS_PER_LOOK = 100;
const PAGE_BYTES = 8_000_000;

const SET_OF = { pending: 'pending', scheduled: 'schedule', dead: 'dead' } as const;

/** To do the same to many jobs, in bounded steps. */
export abstract class JobsMany extends JobsChanging {
  /**
   * Removes all jobs that wait to be claimed, with `scheduled` also those that wait for a time; none that runs, is dead, or waits
   * for its children. Parents are told as by `remove`. What lands meanwhile may go as well, and does not keep it from ending.
   * Answers how many went.
   */
  async drain(queue: string | Queue, options: { scheduled?: boolean | undefined } = {}): Promise<number> {
    assertKnownKeys(options, KNOWN.drain, 'drain options');
    const { scheduled = false } = options;
    assertBoolean(scheduled, 'scheduled', EchoArgumentError);
    const keys = this.keys(queue);
    let removed = 0;
    for (const state of scheduled ? (['pending', 'scheduled'] as const) : (['pending'] as const)) {
      for await (const ids of this.everyId(keys, state)) removed += await this.removeThose(keys, state, ids);
    }
    return removed;
  }

  /**
   * Removes the jobs in one state that match, and have been in it from the beginning, in no order; at most `limit`. Of dead
   * parents none with outstanding children. Answers how many went.
   * @throws what the filter throws; what went before is gone
   */
  async removeMany(queue: string | Queue, state: wire.OnlyState, options: Matching = {}): Promise<number> {
    if (typeof state !== 'string' || !Object.hasOwn(SET_OF, state)) {
      throw new EchoArgumentError(`state ${show(state)}: removeMany knows ${Object.keys(SET_OF).join(', ')}`);
    }
    assertKnownKeys(options, KNOWN.removeMany, 'removeMany options');
    const { matches, limit } = matching(options);
    const keys = this.keys(queue);
    let removed = 0;
    for await (const ids of this.everyId(keys, state)) {
      for (let i = 0; i < ids.length; i += ROWS_PER_LOOK) {
        const looked = ids.slice(i, i + ROWS_PER_LOOK);
        const rows = await this.run(wire.get, keys, looked);
        const views = rows.flatMap((row, n) => (row ? [viewOf(looked[n]!, row, this.parts.codec)] : []));
        const those = views.filter((job) => job.state === state && matches(job)).map(({ id }) => id);
        while (those.length > 0 && removed < limit) {
          removed += await this.removeThose(keys, state, those.splice(0, limit - removed));
        }
        if (removed >= limit) return removed;
      }
    }
    return removed;
  }

  /**
   * Puts the dead jobs that match back to pending, the oldest first, at most `limit`; with `fresh` their attempts so far no longer
   * count against the cap. Every job that is dead when it begins is looked at once; one that dies again meanwhile stays dead.
   * Answers how many went back.
   * @throws what the filter throws; what went back before has gone back
   */
  async reprocessMany(
    queue: string | Queue,
    options: Matching & { fresh?: boolean | undefined } = {},
  ): Promise<number> {
    assertKnownKeys(options, KNOWN.reprocessMany, 'reprocessMany options');
    const { fresh = false } = options;
    assertBoolean(fresh, 'fresh', EchoArgumentError);
    const { matches, limit } = matching(options);
    const keys = this.keys(queue);
    let reprocessed = 0;
    let end: string | undefined;
    let after = '';
    do {
      const page = await this.run(wire.morgue, keys, { after, limit: MOST_PER_PART, maxBytes: PAGE_BYTES });
      end ??= page.last;
      let batch: string[] = [];
      for (const [i, { id, row }] of page.rows.entries()) {
        after = id;
        if (id <= end && row && matches(viewOf(id, row, this.parts.codec))) batch.push(id);
        const full = batch.length >= Math.min(MOST_PER_CALL, limit - reprocessed);
        if (batch.length > 0 && (full || i === page.rows.length - 1)) {
          reprocessed += await this.putBack(keys, fresh, batch);
          batch = [];
        }
        if (reprocessed >= limit) return reprocessed;
      }
      if (page.rows.length === 0) break;
    } while (after < end);
    return reprocessed;
  }

  private async putBack(keys: QueueKeys, fresh: boolean, ids: string[]): Promise<number> {
    const { answer, resent } = await this.tracked(wire.reprocess, keys, { fresh, ids });
    this.parts.flows.owes(keys);
    return answer.filter((outcome) => outcome === 'ok' || (resent && outcome === 'wrong_state')).length;
  }

  private async removeThose(keys: QueueKeys, only: wire.OnlyState, ids: readonly string[]): Promise<number> {
    let removed = 0;
    for (let i = 0; i < ids.length; i += MOST_PER_PART) {
      const call = { tree: false, only, ids: ids.slice(i, i + MOST_PER_PART) };
      const { answer, resent } = await this.tracked(wire.remove, keys, call);
      this.parts.flows.owes(keys);
      removed += answer.filter((outcome) => outcome === 'ok' || (resent && outcome === 'gone')).length;
    }
    return removed;
  }

  /** The ids in a state, some perhaps twice: all that stand there from the first part to the last. */
  private async *everyId(keys: QueueKeys, state: wire.OnlyState): AsyncGenerator<string[]> {
    yield* this.parted(keys, SET_OF[state]);
    if (state !== 'pending') return;
    for await (const lanes of this.parted(keys, 'lanes:waiting')) {
      for (const lane of lanes) {
        if (!isGroupText(lane)) yield* this.parted(keys, `lane:${lane}`);
      }
    }
  }

  private async *parted(keys: QueueKeys, set: wire.MembersCall['set']): AsyncGenerator<string[]> {
    let cursor = '0';
    do {
      const part = await this.run(wire.members, keys, { set, cursor, count: MOST_PER_PART });
      cursor = part.cursor;
      if (part.members.length > 0) yield part.members;
    } while (cursor !== '0');
  }
}

/** @throws EchoArgumentError */
function matching({ name, filter, limit }: Matching): { matches(job: JobView): boolean; limit: number } {
  if (name !== undefined && typeof name !== 'string') {
    throw new EchoArgumentError(`name must be a string, got ${show(name)}`);
  }
  if (filter !== undefined && typeof filter !== 'function') {
    throw new EchoArgumentError(`filter must be a function, got ${show(filter)}`);
  }
  if (limit !== undefined) assertInteger(limit, 'limit', 1);
  const matches = (job: JobView) => {
    if (name !== undefined && job.name !== name) return false;
    const answer: unknown = filter === undefined || filter(job);
    if (typeof answer === 'boolean') return answer;
    // A promise would let every job through.
    throw new EchoArgumentError(`filter must answer true or false, got ${showAnswer(answer)}`);
  };
  return { matches, limit: limit ?? Number.POSITIVE_INFINITY };
}
