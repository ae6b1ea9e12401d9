import { describe, expect, it } from '@jest/globals';
import { guardLeaks } from '../support/leaks.js';
import { until } from '../support/until.js';
import { endWorkers, spawnWorker } from '../support/worker-process.js';

const TALKER = 'test/harness/workers/talker.ts';

describe('a worker process', () => {
  endWorkers();
  guardLeaks();
  let leftRunning = 0;

  it('runs TypeScript with decorators and .js imports, and talks by typed messages', async () => {
    const worker = spawnWorker(TALKER, { args: ['jest'] });
    expect(await worker.next('ready')).toEqual({ type: 'ready', greeting: 'hello jest', decorated: true });
    worker.send({ type: 'echo', text: 'one' });
    worker.send({ type: 'echo', text: 'two' });
    expect(await worker.next('echoed')).toMatchObject({ text: 'one' });
    expect(await worker.next('echoed')).toMatchObject({ text: 'two' });
    await until(() => worker.printed === 'talking\n', { what: 'its output' });
    await worker.stop();
  });

  it('dies at once of SIGKILL', async () => {
    const worker = spawnWorker(TALKER, { env: { STUBBORN: '1' } });
    await worker.next('ready');
    await worker.kill();
    expect(() => process.kill(worker.pid!, 0)).toThrow('ESRCH');
  });

  it('shows what it printed when it ends instead of answering', async () => {
    const worker = spawnWorker(TALKER);
    worker.send({ type: 'fail', text: 'no luck today' });
    await expect(worker.next('echoed')).rejects.toThrow(
      /said no "echoed": it ended with 1.*no luck today.*talker\.ts/s,
    );
  });

  it('says so when a message does not come in time', async () => {
    const worker = spawnWorker(TALKER);
    await worker.next('ready');
    await until(() => worker.printed === 'talking\n', { what: 'its output' }); // it comes another way than messages
    await expect(worker.next('echoed', 10)).rejects.toThrow(/said no "echoed" within 10 ms\ntalking/);
  });

  it('fails to stop when it ignores SIGTERM, and is killed', async () => {
    const worker = spawnWorker(TALKER, { env: { STUBBORN: '1' } });
    await worker.next('ready');
    await expect(worker.stop(30)).rejects.toThrow('did not stop within 30 ms of SIGTERM');
    leftRunning = spawnWorker(TALKER).pid!;
  });

  it('does not outlive the test that started it', () => {
    expect(() => process.kill(leftRunning, 0)).toThrow('ESRCH');
  });
});
