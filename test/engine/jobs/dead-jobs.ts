import type { Jobs } from '../../../lib/core.js';
import { numbers } from './stage.js';

/** Enqueues so many jobs, `n` being the data of each, and buries them; answers their ids, in mint order. */
export async function buried(jobs: Jobs, queue: string, total: number, name = (_n: number) => 'a'): Promise<string[]> {
  const landed = await jobs.enqueueMany(
    queue,
    numbers(total).map((n) => ({ name: name(n), data: n })),
  );
  for (let done = 0; done < total; ) {
    const batch = await jobs.claim(queue, { leaseMs: 60_000, count: 500 });
    await Promise.all(batch.map(({ id, token }) => jobs.retry(queue, id, token, { maxAttempts: 0, error: 'boom' })));
    done += batch.length;
  }
  return landed.map(({ id }) => id);
}
