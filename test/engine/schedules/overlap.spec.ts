import { expect, it } from '@jest/globals';
import { Discard } from '../../../lib/core.js';
import { describeWithProcess } from '../../support/availability.js';
import { until } from '../../support/until.js';
import { endWorkers, spawnWorker } from '../../support/worker-process.js';
import { Gates } from '../gates.js';
import { serverMs, useStage } from '../jobs/stage.js';

const WORKER = 'test/engine/workers/consumer.ts';
/** Far more than it takes, and still before the second beat, after 3 s. */
const PROMPT_MS = 1500;

describeWithProcess('while the last job of a schedule has not ended', () => {
  const stage = useStage();
  endWorkers();

  it('its slots land jobs all the same, and the backlog is to be seen (C088)', async () => {
    const echo = await stage.connect();
    const gates = new Gates();
    echo.consume('q', {}, gates.handler);
    await echo.jobs.schedule('q', 'k', { everyMs: 100 }, 'tick');
    const first = await gates.run(1);
    await until(async () => (await echo.jobs.counts('q')).pending >= 5, { what: 'a backlog of five' });
    expect(gates.runs).toHaveLength(1);
    await echo.schedules.remove('q', 'k');
    await echo.jobs.obliterate('q', { force: true });
    first.end();
  });

  it('under overlap skip its slots go without a job, counted, until it has ended (C088)', async () => {
    const echo = await stage.connect();
    const gates = new Gates();
    echo.consume('q', { concurrency: 5 }, gates.handler);
    await echo.jobs.schedule('q', 'k', { everyMs: 100 }, 'tick', undefined, { overlap: 'skip' });
    const first = await gates.run(1);
    await until(async () => (await echo.schedules.get('q', 'k'))!.skipped >= 5, { what: 'five slots to be skipped' });
    expect(gates.runs).toHaveLength(1);
    expect(await echo.jobs.counts('q')).toMatchObject({ pending: 0, active: 1 });
    const at = await serverMs(stage.control);
    first.end();
    const second = await gates.run(2);
    expect(second.job.slot!.getTime()).toBeGreaterThan(first.job.slot!.getTime() + 500);
    expect(await serverMs(stage.control)).toBeLessThan(at + 100 + PROMPT_MS);
    expect(await echo.schedules.get('q', 'k')).toMatchObject({ lastJobId: second.job.id });
    await echo.schedules.pause('q', 'k');
    second.end();
  });

  it('under overlap skip a job that waits for its next attempt has not ended; a dead one has', async () => {
    const echo = await stage.connect();
    const gates = new Gates();
    echo.consume('q', {}, gates.handler);
    const options = { overlap: 'skip', attempts: 2, backoff: { type: 'fixed', delayMs: 400 } } as const;
    await echo.jobs.schedule('q', 'k', { everyMs: 50 }, 'tick', undefined, options);
    const first = await gates.run(1);
    first.fail(new Error('once'));
    const again = await gates.run(2);
    expect(again.job).toMatchObject({ id: first.job.id, attempt: 2 });
    expect((await echo.schedules.get('q', 'k'))!.skipped).toBeGreaterThan(0);
    again.fail(new Error('twice'));
    const next = await gates.run(3);
    expect(next.job.id).not.toBe(first.job.id);
    expect((await echo.jobs.get('q', first.job.id))?.state).toBe('dead');
    await echo.schedules.pause('q', 'k');
    next.end();
  });

  for (const overlap of ['allow', 'skip'] as const) {
    it(`dead jobs do not keep slots from firing, under overlap ${overlap} (C084)`, async () => {
      const echo = await stage.connect();
      const slots: number[] = [];
      echo.consume('q', {}, (job) => {
        slots.push(job.slot!.getTime());
        throw new Discard('always');
      });
      await echo.jobs.schedule('q', 'k', { everyMs: 200 }, 'tick', undefined, { overlap });
      await until(async () => (await echo.jobs.counts('q')).dead >= 4, { what: 'four deaths' });
      await echo.schedules.pause('q', 'k');
      expect(new Set(slots).size).toBe(slots.length);
    });
  }

  it('a process that is killed in its run loses neither the run nor the next slots (C086)', async () => {
    const echo = await stage.connect();
    const gates = new Gates();
    const consumer = echo.consume('q', { leaseMs: 1000, concurrency: 10 }, gates.handler);
    await until(() => stage.control.exists('emq:{q}:leader'), { what: 'this process to lead' });
    consumer.pause();
    const args = [stage.server.url, 'q', JSON.stringify({ leaseMs: 1000 })];
    const worker = spawnWorker(WORKER, { args });
    await worker.next('ready');
    const { nextSlot } = await echo.jobs.schedule('q', 'k', { everyMs: 1000 }, 'tick', { do: 'suicide' });
    const { id } = await worker.next('started');
    consumer.resume();
    const recovered = () => gates.runs.find(({ job }) => job.id === id);
    await until(recovered, { what: 'the run to be recovered' });
    expect(recovered()!.job).toMatchObject({ attempts: 2 });
    const later = () => gates.runs.filter(({ job }) => job.id !== id).map(({ job }) => job.slot!.getTime());
    await until(() => later().length >= 2, { what: 'the next slots' });
    const slots = [recovered()!.job.slot!.getTime(), ...later()];
    expect(slots).toEqual(slots.map((_, n) => slots[0]! + n * 1000));
    expect(slots[0]).toBe(nextSlot!.getTime());
    await echo.schedules.remove('q', 'k');
    for (const run of gates.runs) run.end();
  });
});
