import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../lib/kernel/clock.js';
import { Keyspace } from '../../lib/kernel/keyspace.js';
import { clientFactory } from '../../lib/wire/client-factory.js';
import { Connection } from '../../lib/wire/connection.js';
import { Executor } from '../../lib/wire/executor.js';
import { SCRIPTS } from '../../lib/wire/scripts.generated.js';
import type { ScriptName, Transition } from '../../lib/wire/transition.js';
import * as transitions from '../../lib/wire/transitions/index.js';
import { describeWithProcess } from '../support/availability.js';
import { dumpQueue } from '../support/dump.js';
import { expectInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { Gates, Ledger } from './gates.js';
import { useProxy } from './proxied.js';
import { useRig } from './rig.js';

const keyspace = new Keyspace();
const keys = keyspace.queue('q');
const ID = 'JOB00000000001';

/** A call of every script that its server accepts. */
const ARGS: Record<ScriptName, string[]> = {
  apply: ['r', '0-0'],
  brand: ['echomq:6.0.0'],
  cancel: ['0', ID],
  claim: ['1000', '1'],
  complete: ['0', ID, '1', '0', 'null'],
  completions: ['0-0', '10', '1000'],
  counts: [],
  dispatch: ['1000', '', 'p', '1', ID, 'p'],
  enqueue: [ID, 'p', '', '0'],
  extend: ['1000', ID, '1'],
  get: [ID],
  health: [],
  land: ['', '', ID, 'p', '', '0', '0'],
  lane: ['lane', 'x', 'cap', '1'],
  lane_list: ['0', '10'],
  lead: ['p', '1000'],
  limit: ['concurrency', '1'],
  list: ['0', '10', '1000'],
  members: ['pending', '0', '10'],
  morgue: ['', '10', '1000'],
  node: ['p', '1000', '0', ''],
  node_return: ['p', '0', '1'],
  obliterate: ['1', '10'],
  pass: ['p'],
  pause: [],
  progress: [ID, '1', '50'],
  promote: ['10'],
  reap: ['10', '2', '', '0'],
  release: [ID, '1', ''],
  remove: ['0', ID],
  reprioritise: [ID, '5'],
  reprocess: ['0', ID],
  reschedule: [ID, ''],
  resign: ['p'],
  resume: [],
  retry: ['0', ID, '1', '0', '3', 'e'],
  rewrite: [ID, 'p', 'q'],
  schedule_fire: ['k', 'r', '1', '2', '0', '', ''],
  schedule_get: ['k'],
  schedule_list: ['0', '10', '1000', '0'],
  schedule_pause: ['k'],
  schedule_put: ['k', 'r', '{}', '{}', 'p', '1', '', '0'],
  schedule_remove: ['k'],
  schedule_resume: ['k', 'r', '1'],
  sweep: [ID],
  trim: ['0', '10'],
  wait: [ID, '1'],
  watch: [ID],
};

const DESCRIBED = Object.values({ ...transitions, list: transitions.list.pending }) as Transition<never, unknown>[];

function keysOf(script: ScriptName): string[] {
  if (script === 'brand') return [keyspace.version, keyspace.nodes];
  if (script === 'node' || script === 'node_return') return [keyspace.nodes, keyspace.nodeOwners];
  if (script === 'lead' || script === 'resign') return [keys.leader, keys.base];
  return DESCRIBED.find(({ name }) => name === script)!.keys.map((key) => keys[key]);
}

describe('a server that forgets its scripts', () => {
  const server = useServer();
  const rig = useRig(server);
  const proxied = useProxy(server);
  guardLeaks();

  it.each(Object.keys(SCRIPTS) as ScriptName[])('is taught %s again, once', async (script) => {
    const client = server.client();
    const connection = new Connection(clientFactory(proxied.url), systemClock, async () => undefined);
    await connection.open(5_000);
    try {
      const executor = new Executor(connection);
      const sent: string[] = [];
      const call = () => executor.script(script, keysOf(script), ARGS[script], { resend: false });
      await call();
      await client.script('FLUSH');
      proxied.proxy.onRequest((command) => {
        sent.push(command.toString('latin1').split('\r\n')[2]!);
        return undefined;
      });
      await call();
      await call();
      expect(sent).toEqual(['evalsha', 'eval', 'evalsha']);
    } finally {
      await connection.close();
    }
    await expectInvariants(client, 'q');
  });

  it('loses, doubles and delays nothing in the middle of a burst', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect();
    echo.consume('q', { concurrency: 10 }, ledger.handler);
    const landings: Promise<unknown>[] = [];
    for (let n = 0; n < 20; n++) {
      landings.push(
        echo.jobs.enqueueMany(
          'q',
          Array.from({ length: 50 }, () => ({ name: 'job' })),
        ),
      );
      await client.script('FLUSH');
      await ledger.ran(n * 25);
    }
    await Promise.all(landings);
    await ledger.ran(1_000);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1_000, { what: 'all completions' });
    expect(new Set(ledger.ids).size).toBe(1_000);
    expect(rig.complaints).toEqual([]);
    await expectInvariants(client, 'q');
  });
});

describeWithProcess('a server whose data is flushed under way', () => {
  const server = useServer();
  const rig = useRig(server);
  guardLeaks();

  it('tells the running job that it is gone, keeps nothing of it, and runs the next', async () => {
    const client = server.client();
    const gates = new Gates();
    const lost: string[] = [];
    const echo = await rig.connect();
    echo.consume('q', {}, gates.handler).on('lease-lost', (job, why) => lost.push(`${job.name}: ${why}`));
    await echo.jobs.enqueue('q', 'running');
    const run = await gates.run(1);
    await client.flushall();
    run.end('too late');
    await until(() => lost.length === 1, { what: 'the loss to be told' });
    expect(lost).toEqual(['running: its settlement was refused as gone']);
    const { leader: _leader, hungry: _hungry, ...rest } = await dumpQueue(client, 'q');
    expect(rest).toEqual({});
    await echo.jobs.enqueue('q', 'next');
    (await gates.run(2)).end();
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 1, { what: 'its completion' });
    await expectInvariants(client, 'q');
  });

  it('answers gone to whoever holds a claim by hand', async () => {
    const client = server.client();
    const { jobs } = await rig.connect();
    await jobs.enqueueMany(
      'q',
      Array.from({ length: 4 }, () => ({ name: 'job' })),
    );
    const [a, b, c, d] = await jobs.claim('q', { leaseMs: 60_000, count: 4 });
    await client.flushall();
    expect(await jobs.complete('q', a!.id, a!.token)).toBe('gone');
    expect(await jobs.retry('q', b!.id, b!.token, { maxAttempts: 3 })).toBe('gone');
    expect(await jobs.release('q', c!.id, c!.token)).toBe('gone');
    expect(await jobs.extend('q', d!.id, d!.token, { leaseMs: 1_000 })).toBe('gone');
    expect(await dumpQueue(client, 'q')).toEqual({});
    await expectInvariants(client, 'q');
  });

  it('serves a parked consumer within a beat: its place among the hungry was flushed as well', async () => {
    const client = server.client();
    const ledger = new Ledger();
    const echo = await rig.connect();
    echo.consume('q', {}, ledger.handler);
    await until(() => client.zcard('emq:{q}:hungry'), { what: 'the consumer to park' });
    await client.flushall();
    const started = performance.now();
    await echo.jobs.enqueueMany('q', [{ name: 'now' }, { name: 'later', opts: { delayMs: 100 } }]);
    await ledger.ran(2, 8_000);
    expect(performance.now() - started).toBeLessThan(3_000 + 2_000);
    await until(async () => (await echo.jobs.counts('q')).metrics.completed === 2, { what: 'both completions' });
    await expectInvariants(client, 'q');
  });
});
