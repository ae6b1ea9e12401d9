import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { Jobs } from '../../lib/index.js';
import { EchoMqTestingModule, TestKit } from '../../lib/testing.js';
import { AppModule } from '../../sample/app.module.js';
import { AuditQueue } from '../../sample/audits/audit-job.js';
import { Audits } from '../../sample/audits/audits.js';
import { DocumentQueue } from '../../sample/documents/document-job.js';
import { readMarkdown } from '../../sample/documents/markdown.js';
import { Settings } from '../../sample/settings.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { fill, GUIDE, GUIDE_FACTS, makeTree, type Tree } from './tree.js';

/** With the test kit: an app's own tests could look like this. */
describe("the sample's processors", () => {
  const server = useServer();
  let tree: Tree;
  let module: TestingModule;
  let kit: TestKit;

  beforeEach(async () => {
    tree = await makeTree();
    await fill(tree);
    module = await Test.createTestingModule({
      imports: [AppModule.with(new Settings(server.url, tree.root)), EchoMqTestingModule.forRoot()],
    }).compile();
    await module.init();
    kit = module.get(TestKit);
  });
  afterEach(async () => {
    await module.close();
    await tree.remove();
  });
  guardLeaks();

  it('a document is read for its words, headings and links', async () => {
    const facts = await kit.performJob(DocumentQueue, 'examine', { dir: tree.root, file: 'guide.md' }, { attempt: 2 });
    expect(facts).toEqual({ file: 'guide.md', ...GUIDE_FACTS, retries: 1 });
  });

  it('a document that cannot be read fails its attempt', async () => {
    const job = kit.performJob(DocumentQueue, 'examine', { dir: tree.root, file: 'ghost.md' });
    await expect(job).rejects.toThrow(/ENOENT/);
  });

  it('a report adds up what the documents answered, and names those that are dead', async () => {
    const facts = { words: 10, headings: 2, links: 3, broken: ['x.md'], retries: 1 };
    const values = { a: { file: 'a.md', ...facts }, b: { file: 'b.md', ...facts } };
    const ignored = { [module.get(Jobs).mintId()]: 'Error: out of order\n    at the.stack' };
    const audit = { dir: '/docs', files: 3, startedAt: Date.now() - 2000 };
    const report = await kit.performJob(AuditQueue, 'report', audit, { children: { values, ignored } });
    expect(report).toMatchObject({
      ...{ dir: '/docs', files: 3, words: 20, headings: 4, links: 6, brokenLinks: 2, dead: 1, retries: 2 },
      brokenExamples: ['a.md -> x.md', 'b.md -> x.md'],
      deadExamples: [expect.stringMatching(/^JOB\w+: Error: out of order$/)], // the job is not there: its id must do
    });
    const { seconds, jobsPerSecond } = report as { seconds: number; jobsPerSecond: number };
    expect(seconds).toBeGreaterThanOrEqual(2);
    expect(jobsPerSecond).toBeLessThanOrEqual(2);
  });

  it('a report shows a few examples, however many there are', async () => {
    const value = (file: string) => ({ file, words: 1, headings: 0, links: 1, broken: ['gone.md'], retries: 0 });
    const values = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`id-${i}`, value(`${i}.md`)]));
    const audit = { dir: '/docs', files: 40, startedAt: Date.now() };
    const report = await kit.performJob(AuditQueue, 'report', audit, { children: { values } });
    expect(report).toMatchObject({ brokenLinks: 40, brokenExamples: { length: 5 } });
  });

  it('an audit runs its documents, tries again what fails, and reports behind the last', async () => {
    const { id } = await module.get(Audits).start('.');
    await kit.refuteEnqueued({ queue: AuditQueue, name: 'report' });
    const { completed, failed, dead, errors } = await kit.drain({ scheduled: true });
    expect({ completed, failed, dead }).toEqual({ completed: 4 + 1, failed: 4, dead: 2 });
    const files = errors.map(({ data }) => (data as { file: string }).file);
    expect(new Set(files)).toEqual(new Set(['ghost.md', 'folder-link.md']));
    expect(await module.get(Audits).find(id)).toMatchObject({
      state: 'over',
      report: { files: 6, dead: 2, retries: 4, words: GUIDE_FACTS.words + 5 },
    });
  });

  it('an audit whose report fails for good says so', async () => {
    const { id } = await module.get(Audits).start('docs');
    await kit.drain({ queue: DocumentQueue });
    const jobs = module.get(Jobs);
    const [claimed] = await jobs.claim(AuditQueue, { leaseMs: 60_000 });
    await jobs.retry(AuditQueue, claimed!.id, claimed!.token, { maxAttempts: 0, error: 'out of paper' });
    expect(await module.get(Audits).find(id)).toMatchObject({
      ...{ id, state: 'failed', progress: { files: 2, ended: 2 } },
      reason: expect.stringContaining('out of paper'),
    });
  });

  it('a document counts what a reader of the page sees', () => {
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
