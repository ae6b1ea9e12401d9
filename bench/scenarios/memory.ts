/**
 * Server memory per waiting job with 125 bytes of data, all server settings at their defaults. It is the growth of a
 * queue that holds jobs already, so that what a queue costs once (scripts, BullMQ's capped event stream) is not in it,
 * and it is read while the library is not connected, so that client buffers are not in it either.
 */

import { type Bench, expectRemaining, type Scenario } from '../scenario.js';
import { usedMemory } from '../server.js';
import { enqueueBulk } from './bulk.js';

const QUEUE = 'memory';

export const memory: Scenario = {
  name: 'memory',
  title: 'Memory per waiting job, 125 bytes of data',
  figures: [{ key: 'bytes', label: 'server memory per job', unit: 'bytes' }],
  maxRounds: 3,
  async measure(bench) {
    // Together a power of two: the server's hash tables are then as full as they get, for every library.
    const before = bench.quick ? 1_024 : 12_288;
    const jobs = bench.quick ? 3_072 : 20_480;
    await add(bench, 0, before);
    const start = await usedMemory(bench.redis);
    await add(bench, before, jobs);
    const end = await usedMemory(bench.redis);
    return { bytes: (end - start) / jobs };
  },
};

async function add(bench: Bench, from: number, count: number): Promise<void> {
  const session = await bench.adapter.connect(bench.url);
  await enqueueBulk(await session.producer(QUEUE), from, count);
  await session.close();
  await expectRemaining(bench, QUEUE, from + count);
}
