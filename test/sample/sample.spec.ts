import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Consumers, Jobs } from '../../lib/index.js';
import { AppModule } from '../../sample/app.module.js';
import { AuditQueue } from '../../sample/audits/audit-job.js';
import type { Audit } from '../../sample/audits/audits.js';
import { DocumentQueue } from '../../sample/documents/document-job.js';
import { Settings } from '../../sample/settings.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { fill, GUIDE_FACTS, makeTree, type Tree } from './tree.js';

describe('the sample app', () => {
  const server = useServer();
  let tree: Tree;
  let app: INestApplication;
  let others: INestApplication[] = [];

  const boot = async (connection = server.url) => {
    const root = AppModule.with(new Settings(connection, tree.root));
    const booted = await NestFactory.create(root, { logger: false, abortOnError: false });
    await booted.listen(0, '127.0.0.1');
    return booted;
  };
  beforeEach(async () => {
    tree = await makeTree();
    app = await boot();
  });
  afterEach(async () => {
    for (const other of [app, ...others]) await other.close();
    others = [];
    await tree.remove();
  });
  guardLeaks();

  const another = async () => {
    const other = await boot();
    others.push(other);
    return other;
  };
  const post = async (body: string, to = app) => {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const answer = await fetch(`${await to.getUrl()}/audits`, { method: 'POST', headers, body });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  const show = async (id: string, from = app) => {
    const answer = await fetch(`${await from.getUrl()}/audits/${id}`, { headers: { connection: 'close' } });
    return { status: answer.status, body: (await answer.json()) as Audit };
  };
  const over = async (id: string, from = app) =>
    until(
      async () => {
        const { body } = await show(id, from);
        return body.state === 'over' ? { ...body, report: body.report! } : undefined;
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
      dir: tree.root,
      files: 6,
      words: GUIDE_FACTS.words + 2 + 2 + 1,
      headings: GUIDE_FACTS.headings + 1,
      links: GUIDE_FACTS.links + 1,
      brokenLinks: GUIDE_FACTS.broken.length,
      brokenExamples: GUIDE_FACTS.broken.map((target) => `guide.md -> ${target}`),
      dead: 2,
      retries: 4, // two for each: three attempts
    });
    expect(report.deadExamples).toEqual([
      expect.stringMatching(/^folder-link\.md: Error: EISDIR/),
      expect.stringMatching(/^ghost\.md: Error: ENOENT/),
    ]);
    const jobs = app.get<Jobs>(Jobs);
    expect(await jobs.counts(DocumentQueue)).toMatchObject({ pending: 0, active: 0, scheduled: 0, dead: 2 });
    const files = (await jobs.list(DocumentQueue, 'dead')).jobs.map(({ data }) => (data as { file: string }).file);
    expect(files.sort()).toEqual(['folder-link.md', 'ghost.md']);
  });

  it('counts progress by the documents that are outstanding, and has no report before the last', async () => {
    await fill(tree);
    app.get(Consumers).of('documents').pause();
    const { body } = await post('{"dir": "."}');
    expect((await show(body.id!)).body).toEqual({
      ...{ id: body.id, dir: tree.root, state: 'running' },
      progress: { files: 6, ended: 0 },
    });
    // By hand, so that nothing else is examined meanwhile.
    const jobs = app.get<Jobs>(Jobs);
    const [job] = await until(
      async () => {
        const claimed = await jobs.claim(DocumentQueue, { leaseMs: 60_000 });
        return claimed.length > 0 ? claimed : undefined;
      },
      { what: 'the documents to have landed' },
    );
    const result = { file: 'docs/page.md', words: 1000, headings: 0, links: 0, broken: [], retries: 0 };
    await jobs.complete(DocumentQueue, job!.id, job!.token, { result });
    const ended = async () => (await show(body.id!)).body.progress.ended;
    await until(async () => (await ended()) === 1, { what: 'it to be counted' });
    expect((await show(body.id!)).body.report).toBeUndefined();
    app.get(Consumers).of('documents').resume();
    expect((await over(body.id!)).report.words).toBeGreaterThan(1000);
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
    expect(await over(body.id!)).toMatchObject({ progress: { files: 0, ended: 0 }, report: { words: 0, dead: 0 } });
  });

  it('any process tells of an audit, whichever started it', async () => {
    await fill(tree);
    const other = await another();
    const { body } = await post('{"dir": "docs"}');
    expect((await over(body.id!, other)).report).toMatchObject({ words: 4, dead: 0 });
    expect((await show(body.id!)).body).toEqual((await show(body.id!, other)).body);
  });

  it('an audit outlives the process that started it', async () => {
    await fill(tree);
    for (const queue of app.get(Consumers).queues) app.get(Consumers).of(queue).pause();
    const { body } = await post('{"dir": "docs"}');
    await app.close();
    const other = await another();
    expect((await over(body.id!, other)).report).toMatchObject({ files: 2, words: 4 });
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
    expect((await app.get<Jobs>(Jobs).counts(AuditQueue)).metrics.enqueued).toBe(0);
    await rm(elsewhere, { recursive: true });
  });

  it('answers 404 for an audit that it does not know', async () => {
    expect((await show('nobody')).status).toBe(404);
    expect((await show(app.get<Jobs>(Jobs).mintId())).status).toBe(404);
  });
});
