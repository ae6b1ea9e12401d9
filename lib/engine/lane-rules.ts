import { show, showAnswer } from '../kernel/arguments.js';
import { EchoArgumentError, EchoRegistrationError } from '../kernel/errors.js';
import { type Lane, type LaneBy, laneText } from '../kernel/lane.js';
import type { Queue } from '../kernel/queue.js';

/**
 * The lanes of jobs that are enqueued without one, as functions choose them: those of definitions, and those of this
 * process.
 */
export class LaneRules {
  private readonly byQueue = new Map<string, LaneBy>();

  /**
   * `own`: its definition's, where it has been given by one.
   * @throws EchoArgumentError unless it is a function, EchoRegistrationError when the queue has another one
   */
  assign(queue: string, by: LaneBy, own?: LaneBy): void {
    if (typeof by !== 'function') {
      throw new EchoArgumentError(`queue '${queue}': its lanes are chosen by a function, got ${show(by)}`);
    }
    if ([own, this.byQueue.get(queue)].some((known) => known !== undefined && known !== by)) {
      throw new EchoRegistrationError(
        `queue '${queue}': two functions choose the lanes of its jobs in this process: give it one, once`,
      );
    }
    this.byQueue.set(queue, by);
  }

  /**
   * A job's fields with its lane: that which it was given (null: none, whatever a function says), or the one that is
   * chosen for it.
   * @throws EchoArgumentError when the function throws, or answers what is no lane
   */
  fields(
    queue: string | Queue,
    name: string,
    data: unknown,
    given: Lane | null | undefined,
    fields: readonly string[],
  ): readonly string[] {
    if (given !== undefined) return fields; // it stands among them
    const by = typeof queue === 'string' ? this.byQueue.get(queue) : (queue.lane ?? this.byQueue.get(queue.name));
    if (by === undefined) return fields;
    const lane = chosen(by, typeof queue === 'string' ? queue : queue.name, { name, data });
    return lane === undefined ? fields : [...fields, 'lane', lane];
  }
}

function chosen(by: LaneBy, queue: string, job: { readonly name: string; readonly data: unknown }): string | undefined {
  const whose = `the function that chooses lanes of queue '${queue}'`;
  let lane: Lane | null | undefined;
  try {
    lane = by(job);
  } catch (error) {
    throw new EchoArgumentError(`${whose} threw for a job '${job.name}'; its error is the cause`, error);
  }
  if (lane === undefined || lane === null) return undefined;
  try {
    return laneText(lane);
  } catch (error) {
    const answer = showAnswer(lane);
    throw new EchoArgumentError(`${whose} answered ${answer} for a job '${job.name}': ${(error as Error).message}`);
  }
}
