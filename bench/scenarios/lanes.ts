/**
 * Lanes, this library only. What a claim costs the server with few lanes and with many: jobs are claimed one by one, so that each
 * claim chooses a lane. And what lanes are for: ten tenants of whom one brings a hundred times as many jobs as each of the others;
 * how long the jobs of the others wait, with a lane for each tenant, and first come, first served.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { EchoMq } from 'nestjs-echomq/core';
import { jobData } from '../payload.js';
import { type Bench, type Figure, type Scenario, startCpu, within } from '../scenario.js';
import { percentile } from '../statistics.js';

const JOBS = 100_000;
const NUMBERS = [1, 100, 10_000, 100_000] as const;
const CLAIMS = 20_000;
const IN_FLIGHT = 50;
const BATCH = 1_000;

export const laneClaims: Scenario = {
  name: 'lane-claims',
  title: 'Claims one by one, by the number of lanes',
  libraries: ['echomq'],
  figures: [
    { key: 'none', label: 'server CPU per claim, no lanes', unit: 'us' },
    ...NUMBERS.map(
      (n): Figure => ({ key: `of${n}`, label: `server CPU per claim, ${n.toLocaleString('en')} lanes`, unit: 'us' }),
    ),
  ],
  async measure(bench) {
    const costs: Record<string, number> = { none: await costOfClaims(bench, 'none', undefined) };
    for (const n of NUMBERS) costs[`of${n}`] = await costOfClaims(bench, `of${n}`, n);
    return costs;
  },
};

async function costOfClaims(bench: Bench, queue: string, lanes: number | undefined): Promise<number> {
  const echo = await EchoMq.connect({ connection: bench.url });
  const jobs = bench.quick ? JOBS / 50 : JOBS;
  for (let sent = 0; sent < jobs; sent += BATCH) {
    await echo.jobs.enqueueMany(
      queue,
      Array.from({ length: BATCH }, (_, i) => ({
        name: 'job',
        data: jobData(sent + i),
        opts: lanes === undefined ? {} : { lane: `tenant-${(sent + i) % lanes}` },
      })),
    );
  }
  const claims = bench.quick ? CLAIMS / 50 : CLAIMS;
  const claim = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const claimed = await echo.jobs.claim(queue, { leaseMs: 600_000 });
      if (claimed.length !== 1) throw new Error('a claim of a full queue brought nothing');
    }
  };
  const inTurn = (count: number) => Promise.all(Array.from({ length: IN_FLIGHT }, () => claim(count / IN_FLIGHT)));
  await inTurn(claims / 4);
  const readCpu = await startCpu(bench.redis);
  await inTurn(claims);
  const { serverCpu } = await readCpu(claims);
  await echo.close();
  return serverCpu;
}

const TENANTS = 10;
const LIGHT_JOBS = 30;
const SKEW = 100;
const WORK_MS = 2;

export const fairness: Scenario = {
  name: 'lane-fairness',
  title: `${TENANTS} tenants, one with ${SKEW} times the jobs of each other; handlers of ${WORK_MS} ms, 10 at a time`,
  libraries: ['echomq'],
  figures: [
    { key: 'fifo', label: 'wait of the light tenants, p95, first come, first served', unit: 'ms' },
    { key: 'lanes', label: 'wait of the light tenants, p95, a lane for each tenant', unit: 'ms' },
    { key: 'heavy', label: 'wait of the heavy tenant, p95, a lane for each tenant', unit: 'ms' },
  ],
  async measure(bench) {
    const fifo = await waits(bench, 'fifo', false);
    const lanes = await waits(bench, 'lanes', true);
    return { fifo: percentile(fifo.light, 95), lanes: percentile(lanes.light, 95), heavy: percentile(lanes.heavy, 95) };
  },
};

/** The heavy tenant's jobs are there first; the others' come one by one while they are run. */
async function waits(bench: Bench, queue: string, laned: boolean): Promise<{ light: number[]; heavy: number[] }> {
  const echo = await EchoMq.connect({ connection: bench.url });
  const each = bench.quick ? LIGHT_JOBS / 10 : LIGHT_JOBS;
  const waited = { light: [] as number[], heavy: [] as number[] };
  const total = each * SKEW + (TENANTS - 1) * each;
  const opts = (tenant: number) => (laned ? { lane: `tenant-${tenant}` } : {});
  const data = (tenant: number) => ({ tenant, at: performance.now() });
  await echo.jobs.enqueueMany(
    queue,
    Array.from({ length: each * SKEW }, () => ({ name: 'job', data: data(0), opts: opts(0) })),
  );
  let done: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    done = resolve;
  });
  echo.consume(queue, { concurrency: 10 }, async (job) => {
    const { tenant, at } = job.data as { tenant: number; at: number };
    (tenant === 0 ? waited.heavy : waited.light).push(performance.now() - at);
    await sleep(WORK_MS);
    if (waited.light.length + waited.heavy.length === total) done();
  });
  for (let i = 0; i < each; i++) {
    for (let tenant = 1; tenant < TENANTS; tenant++) {
      await echo.jobs.enqueue(queue, 'job', data(tenant), opts(tenant));
    }
    await sleep(WORK_MS);
  }
  await within(60_000, `the jobs of ${queue}`, all);
  await echo.close();
  return waited;
}
