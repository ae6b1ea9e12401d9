/**
 * Bee-Queue. Chosen for its speed, from its documentation:
 * - `removeOnSuccess`, and no events: `getEvents`, `sendEvents` and `storeJobs` off, which saves a PUBLISH per job;
 * - producers with `isWorker: false`; `saveAll` for bulk; its own client, node_redis 3;
 * - `activateDelayedJobs` only where there are delayed jobs, and there with `delayedDebounce: 1`: the default of 1000
 *   lets it run a delayed job up to a second late on purpose;
 * - with many queues in one process the documented sharing of one client: each worker adds its blocking one;
 * - crash recovery needs `checkStalledJobs(interval)` from the user; the interval is that of its documentation's example,
 *   5000 ms, the same as the default `stallInterval`.
 */

import { createRequire } from 'node:module';
import Queue from 'bee-queue';
import type { Redis } from 'ioredis';
import type { JobData } from '../payload.js';
import type { Adapter, Producer, Session } from './adapter.js';

const STALL_CHECK_MS = 5000;

/** The client that Bee-Queue itself depends on, of which only this is needed here. */
interface BeeClient {
  setMaxListeners(count: number): void;
  quit(done: () => void): void;
}

export const beeQueue: Adapter = {
  name: 'bee-queue',
  packageName: 'bee-queue',

  async connect(url, options = {}): Promise<Session> {
    const shared = options.manyQueues ? createBeeClient(url) : undefined;
    shared?.setMaxListeners(0);
    const settings: Queue.QueueSettings = {
      redis: (shared ?? { url }) as Queue.QueueSettings['redis'],
      getEvents: false,
      sendEvents: false,
      storeJobs: false,
      removeOnSuccess: true,
      activateDelayedJobs: options.delayedJobs ?? false,
      delayedDebounce: 1,
    };
    const open: Queue<JobData>[] = [];
    return {
      async producer(name): Promise<Producer> {
        const queue = new Queue<JobData>(name, { ...settings, isWorker: false, activateDelayedJobs: false });
        open.push(queue);
        await queue.ready();
        return {
          add: (data) => queue.createJob(data).save(),
          addDelayed: (data, delayMs) =>
            queue
              .createJob(data)
              .delayUntil(Date.now() + delayMs)
              .save(),
          async addMany(many) {
            const errors = await queue.saveAll(many.map((data) => queue.createJob(data)));
            for (const error of errors.values()) throw error;
          },
        };
      },
      async consume(name, concurrency, handler) {
        const queue = new Queue<JobData>(name, settings);
        queue.on('error', (error) => console.error('bee-queue worker:', error));
        await queue.ready();
        queue.process(concurrency, async (job: Queue.Job<JobData>) => handler(job.data));
        void queue.checkStalledJobs(STALL_CHECK_MS);
        return { close: () => queue.close() };
      },
      async close() {
        await Promise.all(open.map((queue) => queue.close()));
        if (shared) await new Promise<void>((resolve) => shared.quit(resolve));
      },
    };
  },

  async remaining(redis: Redis, queue: string) {
    const base = `bq:${queue}:`;
    const sizes = await Promise.all([
      ...['waiting', 'active'].map((list) => redis.llen(base + list)),
      ...['succeeded', 'failed'].map((set) => redis.scard(base + set)),
      redis.zcard(`${base}delayed`),
    ]);
    return sizes.reduce((sum, size) => sum + size, 0);
  },
};

function createBeeClient(url: string): BeeClient {
  const here = createRequire(import.meta.url);
  const ofBeeQueue = createRequire(here.resolve('bee-queue'));
  return (ofBeeQueue('redis') as { createClient(url: string): BeeClient }).createClient(url);
}
