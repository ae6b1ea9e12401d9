import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type JobOf, OnJob, Processor } from 'nestjs-echomq';
import { type DocumentFacts, DocumentQueue } from './document-job.js';
import { readMarkdown } from './markdown.js';
import { missingTargets } from './missing-targets.js';

@Processor(DocumentQueue, {
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
  @OnJob(DocumentQueue, 'examine')
  async examine(job: JobOf<typeof DocumentQueue, 'examine'>): Promise<DocumentFacts> {
    const { dir, file } = job.data;
    const path = join(dir, file);
    const text = await readFile(path, { encoding: 'utf8', signal: job.signal });
    const { words, headings, links } = readMarkdown(text);
    const broken = await missingTargets(links, dirname(path));
    return { file, words, headings, links: links.length, broken, retries: job.attempt - 1 };
  }
}
