import { assertBoolean, assertInteger, assertKnownKeys } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { CancelOutcome, Outcome } from '../kernel/outcome.js';
import type { Queue } from '../kernel/queue.js';
import { everyRow, freeEveryKey } from '../wire/rows.js';
import type { Transition } from '../wire/transition.js';
import * as wire from '../wire/transitions/index.js';
import { landingOf } from './enqueue-options.js';
import { KNOWN } from './jobs-calls.js';
import { JobsMany } from './jobs-many.js';

const MOST_PER_SWEEP = 1000;

/** To change what becomes of jobs that are there, and of whole queues. */
export abstract class JobsUpkeep extends JobsMany {
  /** Moves jobs whose time has come to pending. Consumers do this by themselves. */
  async promote(queue: string | Queue, options: { limit?: number | undefined } = {}): Promise<wire.Promoted> {
    assertKnownKeys(options, KNOWN.promote, 'promote options');
    const { limit = 1000 } = options;
    assertInteger(limit, 'limit', 1, 1000);
    return this.run(wire.promote, this.keys(queue), { limit });
  }

  /** Takes back jobs whose lease has lapsed. Consumers do this by themselves. */
  async reap(
    queue: string | Queue,
    options: { limit?: number | undefined; maxStalls?: number | undefined } = {},
  ): Promise<wire.Reaped> {
    assertKnownKeys(options, KNOWN.reap, 'reap options');
    const { limit = 1000, maxStalls = 2 } = options;
    assertInteger(limit, 'limit', 1, 1000);
    assertInteger(maxStalls, 'maxStalls', 0);
    const keys = this.keys(queue);
    const reaped = await this.run(wire.reap, keys, {
      limit,
      maxStalls,
      epoch: this.parts.epoch(keys) ?? '',
      record: 0,
    });
    if (reaped.died > 0) this.parts.flows.owes(keys);
    return reaped;
  }

  /** Puts a dead job back to pending. With `fresh` the attempts so far no longer count against the cap. */
  async reprocess(queue: string | Queue, id: string, options: { fresh?: boolean | undefined } = {}): Promise<Outcome> {
    assertKnownKeys(options, KNOWN.reprocess, 'reprocess options');
    assertJobId(id);
    const { fresh = false } = options;
    assertBoolean(fresh, 'fresh', EchoArgumentError);
    const keys = this.keys(queue);
    const { answer, resent } = await this.settle(wire.reprocess, keys, { fresh, ids: [id] });
    return resent && answer === 'wrong_state' ? 'ok' : answer;
  }

  /**
   * Removes a job that nobody is running. A parent with outstanding children goes only with its `tree`: all its descendants in
   * bounded steps, leaves first; those that run are left to end as any job.
   */
  async remove(queue: string | Queue, id: string, options: { tree?: boolean | undefined } = {}): Promise<Outcome> {
    const { keys, tree } = this.felled(queue, id, options, 'remove options');
    const outcome = await this.felling(wire.remove, keys, id, tree, 'ok');
    return outcome === 'runs_on' || outcome === 'children_first' ? 'wrong_state' : outcome;
  }

  /**
   * Removes a job that has not started; asks a running one to stop, which fires its handler's signal. A parent that waits is
   * cancelled only with its `tree`, all its descendants with it.
   */
  async cancel(
    queue: string | Queue,
    id: string,
    options: { tree?: boolean | undefined } = {},
  ): Promise<CancelOutcome> {
    const { keys, tree } = this.felled(queue, id, options, 'cancel options');
    const outcome = await this.felling(wire.cancel, keys, id, tree, 'removed');
    return outcome === 'children_first' ? 'wrong_state' : outcome;
  }

  /** Gives a job that waits for its time another time. `wrong_state`: it does not wait (any more). */
  async reschedule(
    queue: string | Queue,
    id: string,
    options: { delayMs?: number | undefined; runAt?: Date | number | undefined },
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

  /**
   * Removes the queue with everything in it, in bounded steps; it is paused from the first. With running jobs only under
   * `force`. Answers how many jobs went. @throws EchoStateError when jobs are running
   */
  async obliterate(queue: string | Queue, options: { force?: boolean | undefined } = {}): Promise<number> {
    assertKnownKeys(options, KNOWN.obliterate, 'obliterate options');
    const { force = false } = options;
    assertBoolean(force, 'force', EchoArgumentError);
    const keys = this.keys(queue);
    let removed = 0;
    for (;;) {
      const now = await this.run(wire.obliterate, keys, { force, limit: MOST_PER_SWEEP });
      if (now === 0) break;
      removed += Math.max(now, 0);
    }
    for await (const ids of everyRow(this.parts.connection, keys)) {
      await this.run(wire.sweep, keys, ids); // kept results stand in no set
    }
    await freeEveryKey(this.parts.connection, keys);
    await this.parts.flows.settleDebts(keys);
    await this.run(wire.resume, keys, undefined);
    return removed;
  }

  private felled(queue: string | Queue, id: string, options: { tree?: boolean | undefined }, what: string) {
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
      return resent && answer === 'gone' ? done : answer;
    };
    return this.parts.flows.fell(keys, id, one);
  }
}
