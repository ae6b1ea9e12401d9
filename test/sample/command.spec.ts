import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { fill, makeTree, type Tree } from './tree.js';

/** From the sources, so that nothing has to be built first. */
const RUN = ['--import', './scripts/ts-loader/register.mjs', 'sample/main.ts'];

describe('the command of the sample', () => {
  const server = useServer();
  let tree: Tree;
  let child: ChildProcess | undefined;
  beforeEach(async () => {
    tree = await makeTree();
  });
  afterEach(async () => {
    if (child?.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await tree.remove();
  });
  guardLeaks();

  /** `output` grows while it runs. */
  const start = (...args: string[]) => {
    const env = { ...process.env, ECHOMQ_URL: server.url, INIT_CWD: tree.root, NO_COLOR: '1' };
    const run = spawn(process.execPath, [...RUN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    child = run;
    const seen = { output: '' };
    for (const stream of [run.stdout, run.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        seen.output += text;
      });
    }
    const ended = once(run, 'close').then(([code, signal]) => ({ code, signal, output: seen.output }));
    return { run, seen, ended };
  };

  it('audits a tree, prints progress and report, and ends by itself with 0', async () => {
    await fill(tree);
    const { code, output } = await start('.').ended;
    expect(code).toBe(0);
    expect(output).toContain('6/6 documents');
    expect(output).toMatch(/files +6\n/);
    expect(output).toMatch(/broken links +3\n/);
    expect(output).toMatch(/dead jobs +2 \(4 retries\)\n/);
    expect(output).toMatch(/jobs\/s/);
    expect(output).toContain('guide.md -> docs/nowhere.md');
    expect(output).toContain('ghost.md: Error: ENOENT');
  });

  it('ends with 1 and one clear line for a folder that is not there, or has no documents', async () => {
    const missing = await start('nope').ended;
    expect(missing).toMatchObject({ code: 1, output: `sample: there is no folder ${tree.root}/nope\n` });
    const empty = await start('.').ended;
    expect(empty).toMatchObject({ code: 1, output: `sample: there is no Markdown file in ${tree.root}\n` });
  });

  it('explains itself, and refuses arguments that make no sense', async () => {
    const help = await start('--help').ended;
    expect(help.code).toBe(0);
    expect(help.output).toContain('--serve');
    const wrong = await start('--port', 'http').ended;
    expect(wrong.code).toBe(1);
    expect(wrong.output).toContain('a port is a number');
  });

  it('listens with --serve, says how to ask, and ends on Ctrl-C', async () => {
    await fill(tree);
    const { run, seen, ended } = start('.', '--serve', '--port', '0');
    const [, url] = await until(() => /curl -X POST (http:\S+)/.exec(seen.output), {
      what: 'the curl line',
      timeoutMs: 60_000, // it compiles its sources first
    });
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const answer = await fetch(url!, { method: 'POST', headers, body: '{"dir": "docs"}' });
    expect([answer.status, await answer.json()]).toEqual([202, expect.objectContaining({ files: 2 })]);
    run.kill('SIGINT');
    expect(await ended).toMatchObject({ code: null, signal: 'SIGINT' });
  });
});
