import { describe, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { rareBeats } from '../fast-clock.js';
import { hungry, numbers, useStage } from './stage.js';

describe('members of a queue whose rows are gone', () => {
  const stage = useStage();
  const ghosts = (n: number, score: number) =>
    stage.control.zadd('emq:{q}:pending', ...numbers(n).flatMap((i) => [score, `JOB${String(i).padStart(11, '0')}`]));

  it.each([1, 10])('2,000 of them in front do not keep a job waiting for the beat (concurrency %i)', async (slots) => {
    const echo = await stage.connect({ clock: rareBeats() });
    const ran: string[] = [];
    await ghosts(2_000, -1);
    await echo.jobs.enqueue('q', 'real');
    echo.consume('q', { concurrency: slots }, (job) => void ran.push(job.name));
    await until(() => ran.length === 1, { what: 'the job' });
    expect(await stage.control.zcard('emq:{q}:pending')).toBe(0);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
  });

  it('leave a consumer parked as before, to be woken by the next job', async () => {
    const echo = await stage.connect({ clock: rareBeats() });
    const producer = await stage.connect();
    const ran: string[] = [];
    await ghosts(250, 0);
    echo.consume('q', {}, (job) => void ran.push(job.name));
    await until(async () => (await stage.control.zcard('emq:{q}:pending')) === 0, { what: 'the ghosts to go' });
    await hungry(stage.control, 'q');
    await producer.jobs.enqueue('q', 'real');
    await until(() => ran.length === 1, { what: 'the job' });
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
  });
});
