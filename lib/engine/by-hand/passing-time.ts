import type { QueueKeys } from '../../kernel/keyspace.js';
import { list, promote, reschedule } from '../../wire/transitions/index.js';
import { portions } from '../portions.js';
import { everyListed, type Run } from './enqueued.js';

const MOST_PER_PROMOTE = 1000;
const NO_BYTES = () => 0;

/**
 * The queue's scheduled jobs after `ms` more: each has its time that much earlier, and those whose time has come are pending.
 * Answers how many became so.
 */
export async function letTimePass(run: Run, keys: QueueKeys, ms: number): Promise<number> {
  const waiting = await everyListed(run, keys, 'scheduled');
  if (ms > 0) {
    const earlier = waiting.map(({ id, score }) => ({ id, delay: `@${Math.max(0, score - ms)}` }));
    for (const portion of portions(earlier, NO_BYTES)) await run(reschedule, keys, portion);
  }
  await promoteDue(run, keys);
  const { total } = await run(list.scheduled, keys, { offset: 0, limit: 1, maxBytes: 1 });
  return Math.max(0, waiting.length - total);
}

/** Moves everything whose time has come to pending; answers the server's now, whole milliseconds, if a job waits for its time still. */
export async function promoteDue(run: Run, keys: QueueKeys): Promise<number | undefined> {
  for (;;) {
    const { moved, nextRunAt, nextInMs } = await run(promote, keys, { limit: MOST_PER_PROMOTE });
    if (nextRunAt === undefined || nextInMs === undefined) return undefined;
    if (moved < MOST_PER_PROMOTE) return Math.floor(nextRunAt - nextInMs);
  }
}

/** How long until the next scheduled job's time, those of `except` not looked at; undefined when there is none. */
export async function nextInMs(run: Run, keys: QueueKeys, except: ReadonlySet<string>): Promise<number | undefined> {
  const now = await promoteDue(run, keys);
  if (now === undefined) return undefined;
  const next = (await everyListed(run, keys, 'scheduled')).find(({ id }) => !except.has(id));
  return next && Math.max(0, next.score - now);
}
