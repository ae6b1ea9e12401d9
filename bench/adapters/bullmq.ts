/**
 * BullMQ. Chosen for its speed, from its documentation:
 * - `addBulk` for bulk, one `Worker` with `concurrency`;
 * - finished jobs are removed (`removeOnComplete: { count: 0 }`), set on the Worker rather than on each job: it does the
 *   same and keeps the option out of every job's row, which is smaller and faster for BullMQ;
 * - Queue and Worker have their own connections (the default); with many queues in one process the documented sharing
 *   of one connection: all Workers share it, each adds the blocking one that it cannot do without;
 * - flows by one `FlowProducer`, an `add` for each;
 * - stalled check, lock duration and all other options at their defaults.
 * Not used: ioredis' `enableAutoPipelining`, which BullMQ's documentation does not recommend and whose users report
 * jobs missing from the active list (taskforcesh/bullmq#457).
 */

import { FlowProducer as BullFlowProducer, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import type { JobData } from '../payload.js';
import type { Adapter, FlowProducer, Producer } from './adapter.js';

const JOB = 'job';

export const bullmq: Adapter = {
  name: 'bullmq',
  packageName: 'bullmq',

  async connect(url, options = {}) {
    const { hostname, port } = new URL(url);
    const own = { host: hostname, port: Number(port || 6379), maxRetriesPerRequest: null };
    const shared = options.manyQueues ? new Redis(own) : undefined;
    const connection = shared ?? own;
    const queues: { close(): Promise<void> }[] = [];
    return {
      async producer(name): Promise<Producer> {
        const queue = new Queue<JobData>(name, { connection });
        queues.push(queue);
        await queue.waitUntilReady();
        return {
          add: (data) => queue.add(JOB, data),
          addDelayed: (data, delayMs) => queue.add(JOB, data, { delay: delayMs }),
          addMany: (many) => queue.addBulk(many.map((data) => ({ name: JOB, data }))),
        };
      },
      async flowProducer(names): Promise<FlowProducer> {
        const producer = new BullFlowProducer({ connection });
        queues.push(producer);
        await producer.waitUntilReady();
        const child = (data: JobData) => ({ name: JOB, queueName: names.children, data });
        return {
          add: (data, children) =>
            producer.add({ name: JOB, queueName: names.parent, data, children: children.map(child) }),
        };
      },
      async consume(name, concurrency, handler) {
        const worker = new Worker<JobData>(name, async (job) => handler(job.data), {
          connection,
          concurrency,
          removeOnComplete: { count: 0 },
        });
        worker.on('error', (error) => console.error('bullmq worker:', error));
        await worker.waitUntilReady();
        return { close: () => worker.close() };
      },
      async close() {
        await Promise.all(queues.map((queue) => queue.close()));
        await shared?.quit();
      },
    };
  },

  async remaining(redis: Redis, queue: string) {
    const base = `bull:${queue}:`;
    const sizes = await Promise.all([
      ...['wait', 'active', 'paused'].map((list) => redis.llen(base + list)),
      ...['delayed', 'prioritized', 'waiting-children', 'completed', 'failed'].map((set) => redis.zcard(base + set)),
    ]);
    return sizes.reduce((sum, size) => sum + size, 0);
  },
};
