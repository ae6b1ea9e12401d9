import { describe, expect, it } from '@jest/globals';
import { asEchoError, isNotReady, isWrongNode } from '../../lib/wire/faults.js';
import { startReplica } from '../../scripts/server/replica.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useRig } from './rig.js';

describeWithProcess('a server that refuses', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  it('new work because its memory is full is told apart, and takes it when there is room', async () => {
    const { jobs } = await rig.connect();
    await jobs.enqueue('q', 'fits');
    const client = server.client();
    await client.config('SET', 'maxmemory', '1');
    try {
      await expect(jobs.enqueue('q', 'does not')).rejects.toMatchObject({ code: 'OOM', retryable: true });
      const [job] = await jobs.claim('q', { leaseMs: 60_000 });
      expect(await jobs.complete('q', job!.id, job!.token)).toBe('ok');
    } finally {
      await client.config('SET', 'maxmemory', '0');
    }
    await jobs.enqueue('q', 'fits now');
    await expectInvariants(client, 'q');
  });

  it('to be written to because it is a replica does not count as connected', async () => {
    const replica = await startReplica(server.process);
    try {
      await expect(rig.connect({ connection: replica.url, connectTimeoutMs: 300 })).rejects.toMatchObject({
        retryable: true,
        message: expect.stringContaining('replica'),
      });
    } finally {
      await replica.stop();
    }
    await expectInvariants(server.client(), 'q');
  });

  it('commands inside a script for want of rights says NOPERM like any other', async () => {
    const client = server.client();
    const rules = ['~*', '&*', '+@all', '-zadd'];
    await client.call('ACL', 'SETUSER', 'worker', 'reset', 'on', '>secret', ...rules);
    const url = new URL(server.url);
    [url.username, url.password] = ['worker', 'secret'];
    await expect(rig.connect({ connection: url.href })).rejects.toMatchObject({ code: 'NOPERM', retryable: false });
    await expectInvariants(client, 'q');
  });
});

describe('the words of servers before 7.0', () => {
  const said = (text: string) =>
    Object.assign(
      new Error(`ERR Error running script (call to f_6b1bf486c81c): @user_script:9: @user_script: 9: ${text}`),
      {
        name: 'ReplyError',
      },
    );

  it('for a replica mean READONLY', () => {
    const error = said("-READONLY You can't write against a read only replica.");
    expect(asEchoError(error)).toMatchObject({ code: 'READONLY', retryable: true });
    expect([isNotReady(error), isWrongNode(error)]).toEqual([true, true]);
  });

  it('for full memory mean OOM', () => {
    const error = said("-OOM command not allowed when used memory > 'maxmemory'.");
    expect(asEchoError(error)).toMatchObject({ code: 'OOM', retryable: true });
  });

  it('for a fault of a script stay ERR', () => {
    const error = said("attempt to index local 'row' (a nil value)");
    expect(asEchoError(error)).toMatchObject({ code: 'ERR', retryable: false });
  });
});
