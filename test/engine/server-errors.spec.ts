import { describe, expect, it } from '@jest/globals';
import { asEchoError, isNotReady, isWrongNode } from '../../lib/wire/faults.js';
import { startReplica } from '../../scripts/server/replica.js';
import { describeWithProcess } from '../support/availability.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
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

  it('new work because its memory is full can be connected to, and its jobs are run', async () => {
    const client = server.client();
    const before = await rig.connect();
    await before.jobs.enqueueMany(
      'q',
      Array.from({ length: 20 }, (_, n) => ({ name: n % 2 ? 'fails' : 'works', opts: { attempts: 1 } })),
    );
    await before.close();
    await client.del('{emq}:version', '{emq}:nodes', '{emq}:nodes:owner'); // as if this were the first to connect
    await client.config('SET', 'maxmemory', '1');
    try {
      const [one, two] = [await rig.connect(), await rig.connect()];
      const ends: string[] = [];
      for (const echo of [one, two]) {
        echo
          .consume('q', { concurrency: 2 }, (job) => {
            if (job.name === 'fails') throw new Error('boom');
          })
          .on('completed', (job) => ends.push(job.id))
          .on('failed', (job) => ends.push(job.id));
      }
      await until(() => ends.length === 20, { what: 'all to end' });
      expect(new Set(ends).size).toBe(20);
      expect(await client.get('{emq}:version')).toBe('echomq:6.0.0');
      expect(await one.jobs.counts('q')).toMatchObject({ pending: 0, active: 0, dead: 10, metrics: { completed: 10 } });
      await expect(one.jobs.enqueue('q', 'does not fit')).rejects.toMatchObject({ code: 'OOM', retryable: true });
    } finally {
      await client.config('SET', 'maxmemory', '0');
    }
    expect(rig.complaints).toEqual([]);
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

describe('what is refused in a script for want of rights means NOPERM, in the words', () => {
  const inside = 'script: bac8c6b194e24fabea2ea12cc8902c80ceed963f, on @user_script:1.';

  it.each([
    [
      'before 7.0',
      'ERR Error running script (call to f_bac8c6b194e2): @user_script:1: @user_script: 1: ' +
        "The user executing the script can't run this command or subcommand",
    ],
    ['of 7.0', `ERR The user executing the script can't run this command or subcommand ${inside}`],
    [
      'of 7.0 for a channel',
      `ERR The user executing the script can't publish to the channel mentioned in the command ${inside}`,
    ],
    ['of 7.2', `ERR ACL failure in script: User w has no permissions to run the 'zadd' command ${inside}`],
    ['of 7.2 for a channel', `ERR ACL failure in script: No permissions to access a channel ${inside}`],
  ])('%s', (_server, text) => {
    const error = Object.assign(new Error(text), { name: 'ReplyError' });
    expect(asEchoError(error)).toMatchObject({ code: 'NOPERM', retryable: false });
  });
});
