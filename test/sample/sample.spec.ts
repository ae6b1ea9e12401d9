import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Jobs } from '../../lib/index.js';
import { AppModule } from '../../sample/app.module.js';
import type { Report } from '../../sample/audits/audit.js';
import { DOCUMENTS } from '../../sample/documents/document-job.js';
import { readMarkdown } from '../../sample/documents/markdown.js';
import { Settings } from '../../sample/settings.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { fill, GUIDE, GUIDE_FACTS, makeTree, type Tree } from './tree.js';

interface Shown {
  state: 'running' | 'over';
  progress: { files: number; ended: number };
  report: Report;
}

describe('the sample app', () => {
  const server = useServer();
  let tree: Tree;
  let app: INestApplication;
  let url: string;

  beforeEach(async () => {
    tree = await makeTree();
    const root = AppModule.with(new Settings(server.url, tree.root));
    app = await NestFactory.create(root, { logger: false, abortOnError: false });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
  });
  afterEach(async () => {
    await app.close();
    await tree.remove();
  });
  guardLeaks();

  const post = async (body: string) => {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const answer = await fetch(`${url}/audits`, { method: 'POST', headers, body });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  const show = async (id: string) => {
    const answer = await fetch(`${url}/audits/${id}`, { headers: { connection: 'close' } });
    return { status: answer.status, body: (await answer.json()) as Shown };
  };
  const over = async (id: string) =>
    until(
      async () => {
        const { body } = await show(id);
        return body.state === 'over' ? body : undefined;
      },
      { what: 'the audit to be over' },
    );

  it('audits a tree: every document is read once, and what cannot be read ends among the dead', async () => {
    await fill(tree);
    const { status, body } = await post('{"dir": "."}');
    expect({ status, body }).toEqual({
      status: 202,
      body: { id: expect.any(String), dir: tree.root, files: 6, follow: `/audits/${body.id}` },
    });
    const { progress, report } = await over(body.id!);
    expect(progress).toEqual({ files: 6, ended: 6 });
    expect(report).toMatchObject({
      words: GUIDE_FACTS.words + 2 + 2 + 1,
      headings: GUIDE_FACTS.headings + 1,
      links: GUIDE_FACTS.links + 1,
      brokenLinks: GUIDE_FACTS.broken.length,
      brokenExamples: GUIDE_FACTS.broken.map((target) => `guide.md -> ${target}`),
      dead: 2,
      retries: 4, // two for each: three attempts
    });
    // Inside jest, Node's own errors are of another realm and so show their class as well.
    expect([...report.deadExamples].sort()).toEqual([
      expect.stringMatching(/^folder-link\.md: (Error: )?EISDIR/),
      expect.stringMatching(/^ghost\.md: (Error: )?ENOENT/),
    ]);
    const jobs = app.get<Jobs>(Jobs);
    expect(await jobs.counts(DOCUMENTS)).toMatchObject({ pending: 0, active: 0, scheduled: 0, dead: 2 });
    const files = (await jobs.list(DOCUMENTS, 'dead')).jobs.map(({ data }) => (data as { file: string }).file);
    expect(files.sort()).toEqual(['folder-link.md', 'ghost.md']);
  });

  it('audits a part of the tree, and keeps audits apart', async () => {
    await fill(tree);
    const [all, docs] = await Promise.all([post('{"dir": "."}'), post('{"dir": "docs"}')]);
    const [whole, part] = await Promise.all([over(all.body.id!), over(docs.body.id!)]);
    expect([whole.progress.ended, part.progress.ended]).toEqual([6, 2]);
    expect(part.report).toMatchObject({ words: 4, headings: 1, links: 1, brokenLinks: 0, dead: 0 });
  });

  it('is done at once with a tree without documents', async () => {
    const { body } = await post('{"dir": "."}');
    expect((await show(body.id!)).body).toMatchObject({ state: 'over', progress: { files: 0, ended: 0 } });
  });

  it('refuses, with 400 and a clear message, what it may not or cannot audit', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'private-'));
    await tree.link('way-out', elsewhere);
    await tree.write('file.md', '');
    const outside = (dir: string) => `${dir} is outside of the folder that may be audited`;
    const cases: [unknown, string][] = [
      [{ dir: '/etc' }, outside('/etc')],
      [{ dir: '..' }, outside('..')],
      [{ dir: `${tree.root}-next-door` }, outside(`${tree.root}-next-door`)],
      [{ dir: '../no/such/folder' }, outside('../no/such/folder')],
      [{ dir: 'way-out' }, outside('way-out')],
      [{ dir: 'nope' }, 'there is no folder nope'],
      [{ dir: 'nul\0byte' }, 'there is no folder nul\0byte'],
      [{ dir: 'file.md' }, 'file.md is no folder'],
      [{ dir: '' }, 'dir must be the path of a folder'],
      [{ dir: ['.'] }, 'dir must be the path of a folder'],
      [{}, 'dir must be the path of a folder'],
      [[], 'dir must be the path of a folder'],
    ];
    for (const [body, message] of cases) {
      const answer = await post(JSON.stringify(body));
      expect({ body, status: answer.status, message: answer.body.message }).toEqual({ body, status: 400, message });
    }
    expect((await post('{')).status).toBe(400);
    expect((await app.get<Jobs>(Jobs).counts(DOCUMENTS)).metrics.enqueued).toBe(0);
    await rm(elsewhere, { recursive: true });
  });

  it('answers 404 for an audit that it does not know', async () => {
    expect((await show('nobody')).status).toBe(404);
  });

  it('passes over jobs of audits that it has forgotten', async () => {
    const data = { auditId: 'of an earlier run', dir: tree.root, file: 'gone.md' };
    const jobs = app.get<Jobs>(Jobs);
    await jobs.enqueue(DOCUMENTS, 'examine', data, { attempts: 1 });
    await until(async () => (await jobs.counts(DOCUMENTS)).dead === 1, { what: 'the job to die' });
    await fill(tree);
    const { body } = await post('{"dir": "docs"}');
    expect((await over(body.id!)).report).toMatchObject({ dead: 0, words: 4 });
  });

  it('counts what a reader of the page sees', () => {
    const { words, headings, links } = readMarkdown(GUIDE);
    expect({ words, headings, links: links.length }).toEqual({
      words: GUIDE_FACTS.words,
      headings: GUIDE_FACTS.headings,
      links: GUIDE_FACTS.links,
    });
    expect(readMarkdown('')).toEqual({ words: 0, headings: 0, links: [] });
    expect(readMarkdown("l'été n'est-ce pas `x_1`").words).toBe(4);
  });
});
