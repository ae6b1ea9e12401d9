import { describe, expect, it } from '@jest/globals';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { fastClock } from './fast-clock.js';
import { Ledger } from './gates.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';

/** On this clock an unanswered command connection is silent after 1,667 ms, and found within 667 ms more. */
const FACTOR = 3;
/** In that time more than twice what the system may hold back between two ends. */
const slow = (bytes: number) => bytes / 10_000;
/** Takes 3,000 ms at that speed. */
const BYTES = 30_000_000;
/** As many as one claim gives out whatever their size. */
const MANY = 7;
/** What a busy machine may add to times that are the sum of our own. */
const MARGIN_MS = 3_000;

describe('over a slow link', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();

  const connect = () =>
    rig.connect({
      connection: proxied.url,
      clock: fastClock(FACTOR),
      enqueueTimeoutMs: Number.POSITIVE_INFINITY,
      requestTimeoutMs: 3_600_000,
      maxPayloadBytes: 2 * BYTES,
    });

  it('a claim of many large jobs arrives, on the connection it was made on', async () => {
    const client = server.client();
    const direct = await rig.connect({ maxPayloadBytes: 2 * BYTES });
    await direct.jobs.enqueueMany(
      'q',
      Array.from({ length: MANY }, (_, n) => ({ name: `job ${n}`, data: 'x'.repeat(BYTES / MANY) })),
    );
    const ledger = new Ledger();
    const echo = await connect();
    await echo.jobs.counts('q');
    const before = proxied.connections;
    proxied.proxy.pace(slow);
    echo.consume('q', { concurrency: MANY, leaseMs: 60_000 }, ledger.handler); // a busy machine takes longer
    await ledger.ran(MANY, 10_000);
    await until(async () => (await direct.jobs.counts('q')).metrics.completed === MANY, {
      what: 'all to be completed',
    });
    expect(ledger.jobs.map(({ attempts }) => attempts)).toEqual(ledger.jobs.map(() => 1));
    expect(rig.complaints).toEqual([]);
    expect(proxied.connections).toBe(before + 1); // the subscriber
    await expectInvariants(client, 'q');
  });

  it('a large job leaves, and lands', async () => {
    const client = server.client();
    const echo = await connect();
    await echo.jobs.enqueue('q', 'small');
    const before = proxied.connections;
    proxied.proxy.pace(slow);
    await echo.jobs.enqueue('q', 'large', 'x'.repeat(BYTES));
    expect(rig.complaints).toEqual([]);
    expect(proxied.connections).toBe(before);
    await expectInvariants(client, 'q');
  });

  it.each(['enqueue', 'answer'])(
    'that goes dark half way through an %s, a new socket is made in time',
    async (what) => {
      const client = server.client();
      const direct = await rig.connect({ maxPayloadBytes: 2 * BYTES });
      const echo = await connect();
      await echo.jobs.enqueue('q', 'small');
      await direct.jobs.enqueue('large', 'large', 'x'.repeat(BYTES));
      const before = proxied.connections;
      let read = 0;
      const dark = new Promise<void>((resolve) => {
        proxied.proxy.pace((bytes) => {
          read += bytes;
          if (read < BYTES / 2) return slow(bytes);
          resolve();
          return Number.POSITIVE_INFINITY;
        });
      });
      const outcome =
        what === 'enqueue'
          ? echo.jobs.enqueue('q', 'large', 'x'.repeat(BYTES)).then(({ status }) => status)
          : echo.jobs.claim('large', { leaseMs: 60_000 }).catch((error) => error.code);
      await dark;
      const started = performance.now();
      proxied.proxy.pace(() => 0);
      expect(await outcome).toBe(what === 'enqueue' ? 'landed' : 'ECHO_UNREACHABLE');
      expect(performance.now() - started).toBeLessThan(8_000 / FACTOR + MARGIN_MS);
      await echo.jobs.counts('q');
      expect(proxied.connections).toBe(before + 1);
      await expectInvariants(client, 'q');
    },
  );
});
