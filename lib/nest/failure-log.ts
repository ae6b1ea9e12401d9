import type { Logger } from '@nestjs/common';
import type { Consumer } from '../engine/consumer.js';
import type { DeadJob } from '../engine/consumer-events.js';
import { failureText } from '../engine/failure-text.js';

const LONGEST = 300;

/** Tells the log of every job that dies, and at debug level of every failed attempt that has another behind it. */
export function logFailures(consumer: Consumer, logger: Logger): void {
  consumer.on('dead', (job) => {
    const tries = `${job.attempt} ${job.attempt === 1 ? 'attempt' : 'attempts'}`;
    logger.warn(`${nameOf(job)} is dead after ${tries}: ${firstLine(job.reason)}`);
  });
  consumer.on('failed', (job, error, outcome) => {
    if (outcome === 'dead') return;
    logger.debug(`${nameOf(job)} failed attempt ${job.attempt} and runs again: ${firstLine(failureText(error))}`);
  });
}

function nameOf({ queue, id, name }: Pick<DeadJob, 'queue' | 'id' | 'name'>): string {
  return `queue '${queue}': job ${id} '${JSON.stringify(name).slice(1, -1)}'`;
}

function firstLine(text: string): string {
  return text.split(/[\r\n]/, 1)[0]!.slice(0, LONGEST);
}
