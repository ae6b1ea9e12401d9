import { EchoRegistrationError } from '../kernel/errors.js';
import type { LaneBy } from '../kernel/lane.js';
import type { Queue } from '../kernel/queue.js';
import type { FoundProcessor } from './discovery.js';

/**
 * Which function chooses the lanes of a queue's jobs: that of its processors, or of its definition, which then acts
 * on jobs that are enqueued by the queue's bare name too. @throws EchoRegistrationError naming both places that have
 * one
 */
export function lanesOf(
  queue: string,
  definition: Queue | undefined,
  processors: readonly FoundProcessor[],
): LaneBy | undefined {
  let known = definition?.lane;
  let there = 'its definition';
  for (const { type, module, lane } of processors) {
    if (lane === undefined) continue;
    const here = `${type.name} in ${module}`;
    if (known !== undefined && known !== lane) {
      throw new EchoRegistrationError(
        `queue '${queue}': the lanes of its jobs are chosen by ${there} and, by another function, by ${here}: give one, once`,
      );
    }
    known = lane;
    there = here;
  }
  return known;
}
