import type { Logger } from '@nestjs/common';
import type { Consumer } from '../engine/consumer.js';
import { failureText } from '../engine/failure-text.js';

const LONGEST = 300;

/** Tells the log of every job that dies here, and at debug level of every failed attempt that has another behind it. */
export function logFailures(consumer: Consumer, logger: Logger): void {
  consumer.on('failed', ({ queue, id, name, attempt }, error, outcome) => {
    const job = `queue '${queue}': job ${id} '${JSON.stringify(name).slice(1, -1)}'`;
    if (outcome === 'dead') {
      logger.warn(`${job} is dead after ${attempt} ${attempt === 1 ? 'attempt' : 'attempts'}: ${reasonOf(error)}`);
    } else {
      logger.debug(`${job} failed attempt ${attempt} and runs again: ${reasonOf(error)}`);
    }
  });
}

/** The first line of an error's message; of anything else, what the row keeps of it. */
function reasonOf(error: unknown): string {
  const text = messageOf(error) || failureText(error);
  return text.split(/[\r\n]/, 1)[0]!.slice(0, LONGEST);
}

function messageOf(error: unknown): string | undefined {
  try {
    const message = (error as Partial<Error> | null | undefined)?.message;
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined; // a getter of its own threw
  }
}
