import { type JobOf, Jobs, OnJob, Processor } from 'nestjs-echomq';
import { type DocumentFacts, type DocumentJob, DocumentQueue } from '../documents/document-job.js';
import { AuditQueue } from './audit-job.js';
import { type DeadDocument, type Report, reportOn } from './report.js';

@Processor(AuditQueue, { keepMs: 3_600_000 }) // so long a report can be asked for
export class AuditsProcessor {
  constructor(private readonly jobs: Jobs) {}

  /** Runs when the documents are over. What became of them is on the server: it does not matter which process runs this. */
  @OnJob(AuditQueue, 'report')
  async report(job: JobOf<typeof AuditQueue, 'report'>): Promise<Report> {
    const { values, ignored } = await job.children();
    const dead = Object.entries(ignored).map(([id, error]) => this.dead(id, error));
    return reportOn(job.data, Object.values(values) as DocumentFacts[], await Promise.all(dead));
  }

  /** The error comes with the children; which file it was stands in the dead job, which is kept. */
  private async dead(id: string, error: string): Promise<DeadDocument> {
    const job = await this.jobs.get(DocumentQueue, id);
    return {
      file: (job?.data as DocumentJob | undefined)?.file ?? id, // somebody may have removed it meanwhile
      reason: error.split('\n', 1)[0]!, // without the stack
      retries: job === undefined ? 0 : job.attempts - job.uncharged - 1,
    };
  }
}
