import { describe, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { useStage } from './stage.js';

const LONG_MS = 50_000_000;

describe('keeping what is done', () => {
  const stage = useStage();

  it('each job is kept as long as it says itself, whatever the others say (C144)', async () => {
    const echo = await stage.connect();
    const landed = await echo.jobs.enqueueMany('q', [
      { name: 'long', opts: { keepMs: LONG_MS } },
      { name: 'short', opts: { keepMs: 1 } },
      { name: 'as the consumer says' },
    ]);
    const [long, short, plain] = landed.map(({ id }) => id) as [string, string, string];
    echo.consume('q', { concurrency: 3, keepMs: 60_000 }, () => 'done');
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 3, { what: 'the three to be done' });
    await until(async () => (await echo.jobs.get('q', short)) === undefined, { what: 'the short one to go' });

    expect((await echo.jobs.get('q', long))?.state).toBe('done');
    expect(await stage.control.pttl(`emq:{q}:job:${long}`)).toBeGreaterThan(LONG_MS - 60_000);
    const left = await stage.control.pttl(`emq:{q}:job:${plain}`);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60_000);
  });
});
