import { existsSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { RespSocket } from '../../scripts/server/resp-socket.js';
import { describeWithProcess } from '../support/availability.js';
import { guardLeaks } from '../support/leaks.js';
import { until } from '../support/until.js';
import { endWorkers, spawnWorker, type WorkerMessage, type WorkerProcess } from '../support/worker-process.js';

interface Started extends WorkerMessage {
  port: number;
  dir: string;
}

const ENDS: [how: string, argument: string, end: (owner: WorkerProcess) => Promise<unknown>][] = [
  ['exits', 'exit', async () => {}],
  ['dies of an uncaught error', 'throw', async () => {}],
  ['has nothing left to do', 'leave', async () => {}],
  ['is terminated', 'stay', (owner) => owner.stop()],
  ['is killed by SIGKILL', 'stay', (owner) => owner.kill()],
];

describeWithProcess('a server and its folder are gone when the process that started it', () => {
  endWorkers();
  guardLeaks();

  it.each(ENDS)('%s', async (_how, argument, end) => {
    const owner = spawnWorker('test/harness/workers/server-owner.ts', { args: [argument] });
    const { port, dir } = await owner.next<Started>('started');
    await end(owner);
    // Its pid would tell too late: it stays until whoever adopted the orphan collects it.
    await until(async () => !existsSync(dir) && !(await listening(port)), { what: 'the server to end' });
    expect(dir).toContain('echomq-server-');
  });
});

function listening(port: number): Promise<boolean> {
  return RespSocket.open('127.0.0.1', port).then(
    (server) => {
      server.close();
      return true;
    },
    () => false,
  );
}
