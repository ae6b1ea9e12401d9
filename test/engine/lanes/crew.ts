import type { Redis } from 'ioredis';
import type { ConsumerOptions } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { spawnWorker, type WorkerProcess } from '../../support/worker-process.js';

const FILE = 'test/engine/workers/lane-worker.ts';

/** Worker processes that consume queue `q`. Those that are left are killed by `endWorkers()`. */
export class Crew {
  private readonly workers: WorkerProcess[] = [];

  get size(): number {
    return this.workers.length;
  }

  private constructor(
    private readonly url: string,
    private readonly control: Redis,
    private readonly options: ConsumerOptions,
  ) {}

  /** They are hungry by then. */
  static async start(url: string, control: Redis, size: number, options: ConsumerOptions): Promise<Crew> {
    const crew = new Crew(url, control, options);
    await Promise.all(Array.from({ length: size }, () => crew.add()));
    await until(async () => (await control.zcard('emq:{q}:hungry')) === size, { what: 'the crew to be hungry' });
    return crew;
  }

  async add(): Promise<WorkerProcess> {
    const args = [this.url, ['q'], this.options].map((arg) => JSON.stringify(arg));
    const worker = spawnWorker(FILE, { args });
    this.workers.push(worker);
    await worker.next('ready', 60_000);
    return worker;
  }

  /**
   * Kills the one that has come to hang in this job. If it led the queue, that is over: nobody need wait for its
   * leadership to run out, only for the next beat.
   */
  async killHolderOf(id: string): Promise<void> {
    const pid = await until(() => this.control.hget(`emq:{q}:job:${id}`, 'progress'), { what: 'its holder' });
    const at = this.workers.findIndex((worker) => worker.pid === Number(pid));
    if (at < 0) return; // killed for another job of its
    await this.workers.splice(at, 1)[0]!.kill();
    await this.control.del('emq:{q}:leader');
  }

  /** Stops the one that has been there longest, as a machine is that sleeps; answers how to let it go on. */
  async suspendOldest(): Promise<() => void> {
    const { pid } = this.workers[0]!;
    process.kill(pid!, 'SIGSTOP');
    await this.control.del('emq:{q}:leader');
    return () => process.kill(pid!, 'SIGCONT');
  }

  /** Kills the one that has been there longest. */
  async killOldest(): Promise<void> {
    await this.workers.shift()!.kill();
  }

  /** Closes the one that has been there longest. */
  closeOldest(): Promise<void> {
    return close(this.workers.shift()!);
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.workers.splice(0).map(close));
  }
}

async function close(worker: WorkerProcess): Promise<void> {
  worker.send({ type: 'close' });
  await worker.next('closed');
}
