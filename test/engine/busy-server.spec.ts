import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { Ledger } from './gates.js';
import { useRig } from './rig.js';

/** Keeps the server in an endless script, which answers BUSY to everybody, until the promise that `work` answers resolves. */
async function whileBusy(client: Redis, killer: Redis, work: () => Promise<unknown>): Promise<void> {
  const endless = client.eval('while true do end', 0).catch((error: Error) => error.message);
  await until(
    () =>
      killer.ping().then(
        () => false,
        (error: Error) => error.message.startsWith('BUSY'),
      ),
    { what: 'the server to be busy' },
  );
  try {
    await work();
  } finally {
    await killer.script('KILL');
  }
  expect(await endless).toContain('Script killed by user');
}

/** Far more than it takes, and less than the time between two beats. */
const PROMPT_MS = 2_500;

describeWithProcess('a server that is busy with an endless script', () => {
  const server = useServer({ config: { 'busy-reply-threshold': '100' } });
  const rig = useRig(server);
  guardLeaks();

  it('does not delay a delayed job much past its end; no connection is given up', async () => {
    const [client, killer] = [server.client(), server.client()];
    const ledger = new Ledger();
    const echo = await rig.connect();
    echo.consume('q', {}, ledger.handler).on('error', (error) => rig.complaints.push(error));
    await until(() => client.zcard('emq:{q}:hungry'), { what: 'the consumer to park' });
    const connections = async () => String(await client.call('CLIENT', 'LIST')).match(/^id=\d+(?=.* name=echomq:)/gm);
    const before = await connections();
    const { id } = await echo.jobs.enqueue('q', 'job', undefined, { delayMs: 1_000 });
    const begun = performance.now();
    await whileBusy(client, killer, () =>
      until(() => performance.now() - begun > 6_000, { what: 'three pings of the watchdog', timeoutMs: 30_000 }),
    );
    const over = performance.now();
    await ledger.ran(1);
    expect(performance.now() - over).toBeLessThan(PROMPT_MS);
    expect(ledger.ids).toEqual([id]);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    expect(rig.complaints.filter((error) => error.message.includes('silent'))).toEqual([]);
    expect(await connections()).toEqual(before);
    await expectInvariants(client, 'q');
  });

  it('takes what was enqueued meanwhile, within the time limit of the call', async () => {
    const [client, killer] = [server.client(), server.client()];
    const { jobs } = await rig.connect();
    let landing: Promise<unknown> | undefined;
    await whileBusy(client, killer, async () => {
      landing = jobs.enqueue('q', 'job');
    });
    await expect(landing).resolves.toMatchObject({ status: 'landed' });
    await expectInvariants(client, 'q');
  });
});
