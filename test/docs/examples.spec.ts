import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { examplesOf, faultsOf } from './examples.js';
import { type Page, ROOT, readPages } from './pages.js';

const pages = readPages();

describe('the documentation', () => {
  it('has examples that compile, each on its own', () => {
    const examples = pages.flatMap(examplesOf);
    expect(examples.length).toBeGreaterThan(8);
    expect(faultsOf(examples)).toEqual([]);
  });

  it('has no link to a file that is not there', () => {
    expect(pages.flatMap(brokenLinks)).toEqual([]);
  });

  it('would be told where an example is wrong', () => {
    const text = ['# A page', '', '```ts', "jobs.enqueue('mail', 'welcome');", 'jobs.enqueue(1);', '```'].join('\n');
    const faults = faultsOf(examplesOf({ path: 'docs/wrong.md', text }));
    expect(faults).toEqual([expect.stringMatching(/^docs\/wrong\.md:5: /)]);
  });
});

describe('the programs of the README', () => {
  const server = useServer();
  guardLeaks();
  const examples = examplesOf(pages[0]!);

  /** Runs it as a file of its own, until it has printed `line` and a SIGTERM has ended it. */
  const run = async (code: string, line: string) => {
    const file = join(ROOT, `.build/docs/readme-${process.env.JEST_WORKER_ID}.ts`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code);
    try {
      const child = spawn(process.execPath, ['--import', './scripts/ts-loader/register.mjs', file], {
        cwd: ROOT,
        env: { ...process.env, REDIS_URL: server.url, NO_COLOR: '1' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let output = '';
      const hear = (chunk: Buffer) => {
        output += chunk;
        if (output.includes(line)) child.kill('SIGTERM');
      };
      child.stdout.on('data', hear);
      child.stderr.on('data', hear);
      const limit = setTimeout(() => child.kill('SIGKILL'), 60_000);
      const end = await new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
      clearTimeout(limit);
      return { end, output };
    } finally {
      rmSync(file);
    }
  };

  it.each([
    ['the app at its head', examples[0]!.code, 'Welcome, Ada', 'SIGTERM'],
    ['the one without Nest', examples.find(({ code }) => code.includes('nestjs-echomq/core'))!.code, "to: 'Ada'", 0],
  ])('work: %s runs its job and ends on SIGTERM', async (_, code, line, end) => {
    expect(code.split('\n').length).toBeLessThan(30);
    expect(await run(code, line)).toEqual({ end, output: expect.stringContaining(line) });
    expect(await server.client().zcard('emq:{mail}:pending')).toBe(0);
    expect(await server.client().zcard('emq:{mail}:active')).toBe(0);
  });
});

/** Relative links, without those in code. */
function brokenLinks({ path, text }: Page): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!.replace(/#.*$/, ''));
  return targets
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target) && !existsSync(join(ROOT, dirname(path), target)))
    .map((target) => `${path} links to ${target}`);
}
