import { describe, expect, it } from '@jest/globals';
import { Keyspace } from '../../lib/kernel/keyspace.js';
import { Epochs } from '../../lib/wire/epochs.js';
import { Executor } from '../../lib/wire/executor.js';
import { resume } from '../../lib/wire/transitions/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useConnections } from './connections.js';

const NAMES = Array.from({ length: 10_001 }, (_, n) => `tenant-${n}`);

describe('of queues without end', () => {
  const server = useServer();
  const connections = useConnections();
  guardLeaks();

  it('the fences passed first are forgotten, and passed again when they are needed', async () => {
    const keyspace = new Keyspace('emq');
    const passed: string[] = [];
    const executor = new Executor(await connections.open(server.url), async ({ queue }) => void passed.push(queue));
    await Promise.all(NAMES.map((name) => executor.run(resume, keyspace.queue(name), undefined)));
    expect(passed).toEqual(NAMES);
    for (const name of [NAMES.at(-1)!, NAMES[1]!, NAMES[0]!])
      await executor.run(resume, keyspace.queue(name), undefined);
    expect(passed.slice(NAMES.length)).toEqual([NAMES[0]]);
  });

  it('the runs learnt first are forgotten, unless they were learnt again', () => {
    const epochs = new Epochs();
    for (const name of NAMES) {
      epochs.learn(name, `run_id:${name.replace('-', '_')}\r\n`);
      if (name === NAMES[9_000]) epochs.learn(NAMES[0]!, 'run_id:another\r\n');
    }
    expect(epochs.runId(NAMES[0]!)).toBe('another');
    expect(epochs.runId(NAMES[1]!)).toBeUndefined();
    expect(epochs.runId(NAMES[2]!)).toBe('tenant_2');
    expect(epochs.runId(NAMES.at(-1)!)).toBe('tenant_10000');
  });
});
