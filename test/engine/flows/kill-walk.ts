import { expect } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import type { EchoMq, FlowNode } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { spawnWorker, type WorkerProcess } from '../../support/worker-process.js';
import { expectBalance } from './balance.js';
import { Tap } from './tap.js';

/** Where a walk takes place. */
export interface Ground {
  readonly nodes: readonly { host: string; port: number }[];
  readonly cluster: boolean;
  readonly client: Redis | Cluster;
  /** Adds the flows; the test's own. */
  readonly echo: EchoMq;
}

/** A worker behind its own tap. */
export class Walker {
  private constructor(
    readonly tap: Tap,
    readonly worker: WorkerProcess,
  ) {}

  static async start({ nodes, cluster }: Ground): Promise<Walker> {
    const tap = await Tap.open(nodes, cluster);
    const worker = spawnWorker('test/engine/workers/flow-worker.ts', { args: [JSON.stringify(tap.connection)] });
    await worker.next('ready', 60_000);
    return new Walker(tap, worker);
  }

  /** From now on jobs that can be held are. */
  async hold(): Promise<void> {
    this.worker.send({ type: 'hold' });
    await this.worker.next('holds');
  }

  async kill(): Promise<void> {
    await this.worker.kill();
    await this.tap.close();
  }
}

/** As if all that a dead worker has left had run out: its leadership, and the leases of what it had in hand. */
async function expire(client: Redis | Cluster, queues: readonly string[]): Promise<void> {
  for (const queue of queues) {
    await client.del(`emq:{${queue}}:leader`);
    for (const id of await client.zrange(`emq:{${queue}}:active`, 0, '-1')) {
      await client.zadd(`emq:{${queue}}:active`, 'XX', '1', id);
    }
  }
}

export interface Walk {
  /** What the workers consume. */
  readonly queues: readonly string[];
  /** One of whose jobs has `hold` among its data. */
  readonly flow: FlowNode;
  /** All queues of the flow. */
  readonly all: readonly string[];
  /** How many of the flows have ended. */
  ended(): Promise<number>;
}

/**
 * Kills a worker (SIGKILL) behind 0, 1, 2, ... of the commands that it sends from when its job goes on, and lets another take
 * over, until one lives to see the end. Each time the flow must end once, and nothing be left owed. Answers how many points
 * there were.
 */
export async function walkThroughKills(ground: Ground, { queues, flow, all, ended }: Walk): Promise<number> {
  const { client, echo } = ground;
  let current = await Walker.start(ground);
  current.worker.send({ type: 'consume', queues });
  for (let point = 0; ; point++) {
    const standby = Walker.start(ground);
    await current.hold();
    await echo.flows.add(flow);
    await current.worker.next('held', 20_000);
    let stopped = false;
    current.tap.stopBehind(point).then(() => {
      stopped = true;
    });
    const done = async () => (await ended()) === point + 1;
    current.worker.send({ type: 'go' });
    await until(async () => stopped || (await done()), { what: `point ${point}, or the end`, timeoutMs: 20_000 });
    await current.kill();
    await expire(client, queues);
    current = await standby;
    if (!stopped) {
      await current.kill();
      return point;
    }
    current.worker.send({ type: 'consume', queues });
    await until(done, { what: `the flow to end after point ${point}`, timeoutMs: 20_000 });
    await expectBalance(client, all);
    expect([point, await ended()]).toEqual([point, point + 1]);
  }
}
