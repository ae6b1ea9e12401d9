/**
 * A worker takes a job and is killed with SIGKILL; another worker process stands idle beside it. Time until the job runs
 * again there, every library with its defaults. How long the job has run when the kill comes differs by round, because
 * the answer depends on where in their periods the checks and lock renewals are; all rounds run at once.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { jobData } from '../payload.js';
import { startRole } from '../role.js';
import { expectRemaining, type Scenario, within } from '../scenario.js';

const RUNNING_FIRST_MS = 2_000;
const RUNNING_STEP_MS = 4_000;
const LIMIT_MS = 120_000;

export const killed: Scenario = {
  name: 'killed',
  title: 'A worker killed with SIGKILL, defaults',
  figures: [{ key: 'seconds', label: 'until its job runs again', unit: 's' }],
  atOnce: true,
  quickLibraries: ['echomq', 'bee-queue'],
  async measure(bench) {
    const queue = `killed-${bench.round}`;
    const session = await bench.adapter.connect(bench.url);
    const producer = await session.producer(queue);
    const victim = startRole('victim', { library: bench.adapter.name, url: bench.url, queue });
    try {
      await producer.add(jobData(bench.round));
      await within(20_000, 'the worker takes the job', victim.said('running'));
      let rerun = (_at: number): void => {};
      const ranAgain = new Promise<number>((resolve) => {
        rerun = resolve;
      });
      const survivor = await session.consume(queue, 1, () => rerun(performance.now()));
      await sleep(RUNNING_FIRST_MS + bench.round * RUNNING_STEP_MS);
      const killedAt = performance.now();
      await victim.kill();
      const at = await within(LIMIT_MS, 'the job of the killed worker runs again', ranAgain);
      if (at < killedAt) throw new Error('the job ran on the second worker while the first one still held it');
      await expectRemaining(bench, queue, 0);
      await survivor.close();
      await session.close();
      return { seconds: (at - killedAt) / 1000 };
    } finally {
      await victim.kill();
    }
  },
};
