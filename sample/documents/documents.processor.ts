import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Job, OnJob, Processor } from 'nestjs-echomq';
import { DOCUMENTS, type DocumentFacts, type DocumentJob, EXAMINE } from './document-job.js';
import { readMarkdown } from './markdown.js';
import { missingTargets } from './missing-targets.js';

@Processor(DOCUMENTS, {
  concurrency: 16, // the handlers mostly wait for the disk
  attempts: 3,
  backoff: { type: 'fixed', delayMs: 250 }, // short, so that the sample ends soon; the default grows from 1 s to an hour
  timeoutMs: 30_000,
})
export class DocumentsProcessor {
  /**
   * There is no try/catch: a file that cannot be read throws, which fails this attempt. The queue tries again and, after
   * the third failure, keeps the job among the dead, where it can be looked at and reprocessed.
   */
  @OnJob(EXAMINE)
  async examine(job: Job<DocumentJob>): Promise<DocumentFacts> {
    const path = join(job.data.dir, job.data.file);
    const text = await readFile(path, { encoding: 'utf8', signal: job.signal });
    const { words, headings, links } = readMarkdown(text);
    return { words, headings, links: links.length, broken: await missingTargets(links, dirname(path)) };
  }
}
