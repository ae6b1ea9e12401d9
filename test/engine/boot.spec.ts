import { expect, it } from '@jest/globals';
import { EchoConfigError, EchoMq, EchoTimeoutError, EchoWireError } from '../../lib/core.js';
import { freePort } from '../../scripts/server/free-port.js';
import { RedisProcess } from '../../scripts/server/redis-process.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { Ledger } from './gates.js';
import { useRig } from './rig.js';

describeWithProcess('at the start, a server that cannot be reached', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  it("fails it in time where onBoot is 'fail', which is the default", async () => {
    const connection = `redis://127.0.0.1:${await freePort()}`;
    await expect(rig.connect({ connection, connectTimeoutMs: 200 })).rejects.toBeInstanceOf(EchoTimeoutError);
  });

  it("is waited for where onBoot is 'wait': jobs are buffered, land and run once it is there", async () => {
    const port = await freePort();
    const ledger = new Ledger();
    const echo = await rig.connect({
      connection: `redis://127.0.0.1:${port}`,
      onBoot: 'wait',
      enqueueTimeoutMs: Number.POSITIVE_INFINITY,
    });
    echo.consume('q', {}, ledger.handler);
    const landing = echo.jobs.enqueue('q', 'early');
    await until(() => rig.complaints.length > 0, { what: 'the trouble to be told' });
    expect(rig.complaints[0]).toMatchObject({ code: 'ECHO_UNREACHABLE', retryable: true });
    const late = await RedisProcess.start({ port });
    try {
      expect(await landing).toMatchObject({ status: 'landed' });
      await ledger.ran(1);
      await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
      await echo.close();
    } finally {
      await late.stop();
    }
  });

  it('may be closed while it is waited for, and was never there', async () => {
    const echo = await rig.connect({ connection: `redis://127.0.0.1:${await freePort()}`, onBoot: 'wait' });
    echo.consume('q', {}, () => {});
    await echo.close();
  });

  it('is not what a server is that refuses for good: that fails the start either way', async () => {
    const client = server.client();
    await client.set('{emq}:version', 'echomq:4.0.0');
    for (const onBoot of ['fail', 'wait'] as const) {
      await expect(rig.connect({ onBoot })).rejects.toBeInstanceOf(EchoWireError);
    }
    await expectInvariants(client, 'q');
  });

  it('leaves no other choice', () => {
    const create = () => EchoMq.create({ connection: server.url, onBoot: 'later' as 'wait' });
    expect(create).toThrow(EchoConfigError);
    expect(create).toThrow("option 'onBoot' is 'fail' or 'wait', got \"later\"");
  });
});
