import { describe, expect, it } from '@jest/globals';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { endWorkers, spawnWorker } from '../support/worker-process.js';

describe('a promise that a handler leaves behind', () => {
  const server = useServer();
  endWorkers();
  guardLeaks();

  it('and that rejects when the handler has returned is for the app to see; each job ends once, as it would (C134)', async () => {
    const worker = spawnWorker('test/nest/workers/floating.ts', { args: [server.url] });
    await worker.next('ready');
    const good = ['plain', 'async', 'enhanced'].flatMap((name) => Array.from({ length: 20 }, () => name));
    worker.send({ type: 'enqueue', names: [...good, 'fails'] });
    const unhandled: unknown[] = [];
    for (let i = 0; i < 61; i++) unhandled.push((await worker.next('unhandled')).text);
    const completed: unknown[] = [];
    for (let i = 0; i < 60; i++) completed.push((await worker.next('completed')).name);
    expect(completed.sort()).toEqual([...good].sort());
    expect(unhandled.sort()).toEqual([...good, 'fails'].sort());
    expect(await worker.next('failed')).toMatchObject({ name: 'fails', outcome: 'scheduled', text: 'by itself' });
    worker.send({ type: 'close' });
    await worker.next('closed');
    const client = server.client();
    const keys = await Promise.all(['pending', 'active', 'dead'].map((set) => client.zcard(`emq:{q}:${set}`)));
    expect([...keys, await client.zcard('emq:{q}:schedule')]).toEqual([0, 0, 0, 1]);
  });
});
