/**
 * nestjs-echomq, through the door without Nest, as the package ships it: every option at its default.
 * A finished job leaves nothing behind by default, which is what the peers are set to as well.
 */

import type { Redis } from 'ioredis';
import { EchoMq } from 'nestjs-echomq/core';
import type { JobData } from '../payload.js';
import type { Adapter, FlowProducer, Handler, Producer } from './adapter.js';

const JOB = 'job';

export const echomq: Adapter = {
  name: 'echomq',
  packageName: 'nestjs-echomq',

  async connect(url) {
    const echo = await EchoMq.connect({ connection: url });
    return {
      async producer(queue): Promise<Producer> {
        return {
          add: (data) => echo.jobs.enqueue(queue, JOB, data),
          addDelayed: (data, delayMs) => echo.jobs.enqueue(queue, JOB, data, { delayMs }),
          addMany: (many) =>
            echo.jobs.enqueueMany(
              queue,
              many.map((data) => ({ name: JOB, data })),
            ),
        };
      },
      async flowProducer(queues): Promise<FlowProducer> {
        const child = (data: JobData) => ({ queue: queues.children, name: JOB, data });
        return {
          add: (data, children) =>
            echo.flows.add({ queue: queues.parent, name: JOB, data, children: children.map(child) }),
        };
      },
      async consume(queue, concurrency, handler: Handler) {
        const consumer = echo.consume(queue, { concurrency }, async (job) => {
          await handler(job.data as JobData);
        });
        return { close: async () => void (await consumer.close()) };
      },
      close: async () => void (await echo.close()),
    };
  },

  async remaining(redis: Redis, queue: string) {
    const base = `emq:{${queue}}:`;
    const sets = ['pending', 'active', 'schedule', 'dead', 'waiting'];
    const sizes = await Promise.all(sets.map((set) => redis.zcard(base + set)));
    return sizes.reduce((sum, size) => sum + size, 0);
  },
};
