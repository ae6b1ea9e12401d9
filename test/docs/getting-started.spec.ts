import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { freePort } from '../../scripts/server/free-port.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { examplesOf } from './examples.js';
import { ROOT, readPages } from './pages.js';

const FOLDER = `.build/docs/getting-started-${process.env.JEST_WORKER_ID}`;

describe('the app of docs/getting-started.md', () => {
  const server = useServer();
  const children: ChildProcess[] = [];
  guardLeaks();

  beforeAll(() => {
    const page = readPages().find(({ path }) => path === 'docs/getting-started.md')!;
    for (const { file, code } of examplesOf(page)) {
      if (file === undefined) continue;
      const path = join(ROOT, FOLDER, file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, code);
    }
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });
  afterAll(() => rmSync(join(ROOT, FOLDER), { recursive: true, force: true }));

  const start = (file: string, more: { argv?: string[]; env?: Record<string, string> } = {}) => {
    const { argv = [], env } = more;
    const child = spawn(
      process.execPath,
      ['--import', './scripts/ts-loader/register.mjs', ...argv, join(FOLDER, file)],
      {
        cwd: ROOT,
        env: { ...process.env, REDIS_URL: server.url, NO_COLOR: '1', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    children.push(child);
    const run = { child, output: '', ended: new Promise<unknown>((end) => child.once('close', end)) };
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (run.output += chunk));
    return run;
  };

  it('welcomes who signs up, buries the job that fails three times, and ends on SIGTERM', async () => {
    const port = await freePort();
    const app = start('src/main.ts', { env: { PORT: String(port) } });
    const says = (text: string) =>
      until(() => app.output.includes(text), { timeoutMs: 60_000, what: `"${text}", after ${app.output}` }); // it compiles first
    const signUp = async (name: string) =>
      (await fetch(`http://localhost:${port}/signup/${name}`, { method: 'POST' })).json();
    await says('Nest application successfully started');
    await says("Serving queue 'mail', 5 at a time: welcome");
    const listens = () =>
      fetch(`http://localhost:${port}/`).then(
        () => true,
        () => false,
      );
    await until(listens, { what: 'the port to be open' }); // Nest says that it has started, and then opens it
    expect(await signUp('Ada')).toEqual({ id: expect.stringMatching(/^JOB/), status: 'landed' });
    await says('Welcome, Ada!');
    await signUp('%20');
    await says('is dead after 3 attempts: Error: nobody to welcome');
    app.child.kill('SIGTERM');
    await app.ended;
    expect(app.output).not.toContain('ERROR');
  });

  it('has a test that passes, and leaves no key behind', async () => {
    const test = start('src/mail.spec.ts', { argv: ['--test-reporter=tap'] });
    expect(await test.ended).toBe(0);
    expect(test.output).toMatch(/^# pass 2$/m);
    expect(await server.client().keys('test-*')).toEqual([]);
  });
});
