import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RedisProcess } from '../../scripts/server/index.js';
import { describeWithProcess } from '../support/availability.js';
import { FOUND_SERVER } from '../support/found-server.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { claimSharedDb } from '../support/shared-db.js';

describeWithProcess('a server shared with others', () => {
  const before = process.env[FOUND_SERVER];
  const db = 2 + Number(process.env.JEST_WORKER_ID);
  let theirs: RedisProcess;
  beforeAll(async () => {
    theirs = await RedisProcess.start();
    await theirs.command('SET', 'precious', '1');
    process.env[FOUND_SERVER] = `${theirs.url}/2`;
  });
  afterAll(async () => {
    if (before === undefined) delete process.env[FOUND_SERVER];
    else process.env[FOUND_SERVER] = before;
    await theirs.stop();
  });

  describe('in a spec file', () => {
    const server = useServer();
    guardLeaks();

    it('gives each jest worker a database of its own', async () => {
      expect(server.url).toBe(`${theirs.url}/${db}`);
      await server.client().set('mine', '1');
      expect(await theirs.command('GET', 'precious')).toBe('1');
    });

    it('is empty before each test, and only there', async () => {
      expect(await server.client().dbsize()).toBe(0);
      expect(await theirs.command('GET', 'precious')).toBe('1');
    });

    it('is no process that a test may kill', () => {
      expect(() => server.process).toThrow('install redis-server or valkey-server');
    });

    it('refuses a database that somebody uses', async () => {
      await server.client().set('mine', '1');
      await expect(claimSharedDb(`${theirs.url}/2`)).rejects.toThrow(`database ${db} of the test server holds 1 keys`);
    });
  });

  describe('in a spec file that needs its own configuration', () => {
    const server = useServer({ appendonly: true });

    it('is not used: a private one is started', async () => {
      expect(server.url).toBe(server.process.url);
      expect(await server.client().config('GET', 'appendonly')).toEqual(['appendonly', 'yes']);
    });
  });
});
