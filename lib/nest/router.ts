import type { Logger } from '@nestjs/common';
import type { Handler } from '../engine/handler.js';
import type { Job } from '../engine/job.js';
import { NotHandled } from '../kernel/outcome.js';
import { resultOf } from './observable-result.js';
import type { QueueRoutes } from './routes.js';

/** How long a job waits that nobody in this process handles, before somebody is offered it again. */
export const UNHANDLED_WAIT_MS = 5000;
/** Names come from outside: what was told is remembered for so many. */
const MOST_NAMES_TOLD = 1000;

/**
 * A queue's only handler: looks the name up and calls.
 *
 * A job that nobody handles here is not spoilt: it is put back for 5 s without being charged an attempt, so that another
 * process, or the next version of this one, can run it. The log says so once per name.
 */
export function routerFor({ queue, byName, otherwise }: QueueRoutes, logger: Logger): Handler {
  const rest = otherwise ?? putBack(queue, logger);
  return (job) => resultOf((byName.get(job.name) ?? rest)(job), job);
}

function putBack(queue: string, logger: Logger): (job: Job) => never {
  const told = new Set<string>();
  return ({ name }) => {
    if (!told.has(name) && told.size < MOST_NAMES_TOLD) {
      told.add(name);
      logger.warn(
        `queue '${queue}': no handler here for jobs named ${JSON.stringify(name)}; each is put back every ` +
          `${UNHANDLED_WAIT_MS / 1000} s until a process handles it`,
      );
    }
    throw new NotHandled(UNHANDLED_WAIT_MS);
  };
}
