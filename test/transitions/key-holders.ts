import { type Fields, type Hand, id } from './hand.js';

/** Who holds key k. */
export const A = id(1);

/** Key k is held by A. */
export const held =
  (
    put: (queue: Hand, jobId: string, fields: Fields) => Promise<unknown>,
    ttlMs?: number,
    dedup: Fields = { dedup: 'k' },
  ) =>
  async (queue: Hand) => {
    await put(queue, A, dedup);
    await queue.client.set(`${queue.keys.base}dedups`, 1);
    const key = `${queue.keys.base}dedup:k`;
    await (ttlMs === undefined ? queue.client.set(key, A) : queue.client.set(key, A, 'PX', ttlMs));
  };
export const bare = async (queue: Hand) => {
  await queue.client.set(`${queue.keys.base}dedups`, 1);
  await queue.client.set(`${queue.keys.base}dedup:k`, A, 'PX', 600_000);
};

export const pending = held((queue, jobId, more) => queue.pending(jobId, more));
export const lapsed = held((queue, jobId, more) => queue.lapsed(jobId, more));
export const scheduled = held((queue, jobId, more) => queue.scheduled(jobId, more));
export const active = held((queue, jobId, more) => queue.active(jobId, more));
export const throttled = {
  pending: held((queue, jobId) => queue.pending(jobId), 600_000),
  done: held((queue, jobId) => queue.done(jobId), 600_000),
  dead: held((queue, jobId) => queue.dead(jobId), 600_000),
};
