import { Injectable } from '@nestjs/common';
import { Consumers, type Job, Jobs } from 'nestjs-echomq';
import { DOCUMENTS, type DocumentFacts, type DocumentJob, EXAMINE } from '../documents/document-job.js';
import { findMarkdown, findTree } from '../documents/tree.js';
import { Settings } from '../settings.js';
import { Audit } from './audit.js';

const REMEMBERED = 100;

/**
 * Starts audits and follows them. Their state is kept in this process, which is therefore the only one that may serve the
 * queue; with several, keep it where all of them can reach it.
 */
@Injectable()
export class Audits {
  private readonly audits = new Map<string, Audit>();

  constructor(
    private readonly jobs: Jobs,
    private readonly settings: Settings,
    consumers: Consumers,
  ) {
    // 'completed' and 'failed' come when the server has taken the outcome: once per job, and once per failed attempt. An
    // audit that counted in the handler would count a document twice whenever its job runs twice.
    consumers
      .on(DOCUMENTS, 'completed', (job, facts) => {
        this.auditOf(job)?.examined(dataOf(job).file, facts as DocumentFacts);
      })
      .on(DOCUMENTS, 'failed', (job, error, outcome) => {
        if (outcome === 'dead') this.auditOf(job)?.givenUp(dataOf(job).file, reasonOf(error));
        else this.auditOf(job)?.willBeRetried();
      });
  }

  /** @throws TreeError when `dir` cannot be audited, EchoError when the queue cannot be reached */
  async start(dir: unknown): Promise<Audit> {
    const tree = await findTree(this.settings.root, dir);
    const files = await findMarkdown(tree);
    const audit = new Audit(tree, files.length);
    this.remember(audit); // before the first job can have run
    try {
      const data = (file: string): DocumentJob => ({ auditId: audit.id, dir: tree, file });
      await this.jobs.enqueueMany(
        DOCUMENTS,
        files.map((file) => ({ name: EXAMINE, data: data(file) })),
      );
    } catch (error) {
      this.audits.delete(audit.id);
      throw error;
    }
    return audit;
  }

  find(id: string): Audit | undefined {
    return this.audits.get(id);
  }

  /** Undefined for a job of an audit that is forgotten: left by an earlier run of the app, say. */
  private auditOf(job: Job): Audit | undefined {
    return this.audits.get(dataOf(job).auditId);
  }

  private remember(audit: Audit): void {
    this.audits.set(audit.id, audit);
    for (const [id, { isOver }] of this.audits) {
      if (this.audits.size <= REMEMBERED) break;
      if (isOver) this.audits.delete(id);
    }
  }
}

function dataOf(job: Job): DocumentJob {
  return job.data as DocumentJob;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
