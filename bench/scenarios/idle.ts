/**
 * 100 queues with a consumer each and nothing to do, in one process: its connections (CLIENT LIST) and the commands it
 * sends per second. MONITOR shows every command as the server runs it; those that scripts call are marked and left out.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { expectRemaining, type Scenario } from '../scenario.js';
import { control, OWN_CONNECTION } from '../server.js';

const QUEUES = 100;

export const idle: Scenario = {
  name: 'idle',
  title: `${QUEUES} idle queues in one process`,
  figures: [
    { key: 'connections', label: 'connections', unit: 'connections' },
    { key: 'commands', label: 'commands per second', unit: 'commands/s' },
  ],
  maxRounds: 3,
  async measure(bench) {
    const settleMs = bench.quick ? 1_500 : 4_000;
    const windowMs = bench.quick ? 5_000 : 15_000;
    const names = Array.from({ length: QUEUES }, (_, index) => `idle-${index}`);
    const session = await bench.adapter.connect(bench.url, { manyQueues: true });
    const consumers = await Promise.all(
      names.map((name) =>
        session.consume(name, 10, () => {
          throw new Error('an idle queue gave a job');
        }),
      ),
    );
    await sleep(settleMs);
    const commands = await countCommands(bench.url, windowMs);
    const connections = await countConnections(bench.redis);
    await expectRemaining(bench, names[0]!, 0);
    await Promise.all(consumers.map((consumer) => consumer.close()));
    await session.close();
    return { connections, commands: commands / (windowMs / 1000) };
  },
};

async function countConnections(redis: Redis): Promise<number> {
  const lines = String(await redis.client('LIST'))
    .trim()
    .split('\n');
  return lines.filter((line) => !line.includes(`name=${OWN_CONNECTION}`)).length;
}

async function countCommands(url: string, windowMs: number): Promise<number> {
  const redis = control(url);
  const monitor = await redis.monitor();
  let count = 0;
  monitor.on('monitor', (_time: string, _args: string[], source: string) => {
    if (source !== 'lua') count += 1;
  });
  await sleep(windowMs);
  monitor.disconnect();
  redis.disconnect();
  return count;
}
