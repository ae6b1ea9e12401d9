import type { Codec } from '../../kernel/codec.js';
import type { QueueKeys } from '../../kernel/keyspace.js';
import type { Transition } from '../../wire/transition.js';
import { type Listed, list } from '../../wire/transitions/index.js';
import { type JobView, viewOf } from '../job-view.js';

/** Runs a step under the time limit of a request. */
export type Run = <Call, Answer>(step: Transition<Call, Answer>, keys: QueueKeys, call: Call) => Promise<Answer>;

/** A job that has not started: pending, or waiting for a time. */
export interface EnqueuedJob extends JobView {
  queue: string;
  /** Of a scheduled job the moment it becomes claimable, by the server's clock. */
  runAt: Date | undefined;
}

const PAGE = 1000;
const PAGE_BYTES = 8_000_000;

/** All of them: those pending in the order they would be claimed, behind them the scheduled ones, earliest first. */
export async function enqueuedIn(run: Run, keys: QueueKeys, codec: Codec): Promise<EnqueuedJob[]> {
  const jobs: EnqueuedJob[] = [];
  for (const state of ['pending', 'scheduled'] as const) {
    for (const { id, score, row } of await everyListed(run, keys, state)) {
      if (row === undefined) continue; // somebody has deleted it by hand
      const runAt = state === 'scheduled' ? new Date(score) : undefined;
      jobs.push({ ...viewOf(id, row, codec), queue: keys.queue, runAt });
    }
  }
  return jobs;
}

export async function everyListed(run: Run, keys: QueueKeys, state: 'pending' | 'scheduled'): Promise<Listed['rows']> {
  const all: Listed['rows'] = [];
  for (;;) {
    const { total, rows } = await run(list[state], keys, { offset: all.length, limit: PAGE, maxBytes: PAGE_BYTES });
    for (const row of rows) all.push(row);
    if (rows.length === 0 || all.length >= total) return all;
  }
}
