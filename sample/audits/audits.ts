import { Injectable } from '@nestjs/common';
import { Flows, isJobId, Jobs } from 'nestjs-echomq';
import { findMarkdown, findTree } from '../documents/tree.js';
import { Settings } from '../settings.js';
import { type AuditJob, AuditQueue, auditFlow } from './audit-job.js';
import type { Report } from './report.js';

/** An audit as it stands now. */
export interface Audit {
  id: string;
  dir: string;
  state: 'running' | 'over' | 'failed';
  progress: { files: number; ended: number };
  /** Of one that is over. */
  report?: Report;
  /** Why one failed. */
  reason?: string | undefined;
}

/** Starts audits and follows them. Their state is on the server, so any process may ask, and none has to live on. */
@Injectable()
export class Audits {
  constructor(
    private readonly flows: Flows,
    private readonly jobs: Jobs,
    private readonly settings: Settings,
  ) {}

  /** @throws TreeError when `dir` cannot be audited, EchoError when the queue cannot be reached */
  async start(dir: unknown): Promise<{ id: string; dir: string; files: number }> {
    const tree = await findTree(this.settings.root, dir);
    const files = await findMarkdown(tree);
    const { id } = await this.flows.add(auditFlow(tree, files));
    return { id, dir: tree, files: files.length };
  }

  /** Undefined when there is none, or none any more: a report is kept for an hour. @throws EchoError */
  async find(id: string): Promise<Audit | undefined> {
    const job = isJobId(id) ? await this.jobs.get(AuditQueue, id) : undefined;
    if (job === undefined) return undefined;
    const { dir, files } = job.data as AuditJob;
    const progress = { files, ended: files - (await this.outstanding(id)) };
    if (job.state === 'dead') return { id, dir, state: 'failed', progress, reason: job.lastError };
    if (job.state !== 'done') return { id, dir, state: 'running', progress };
    return { id, dir, state: 'over', progress, report: (await this.jobs.result(AuditQueue, id)) as Report };
  }

  /** Documents that are neither examined nor given up. */
  outstanding(id: string): Promise<number> {
    return this.flows.dependencies(AuditQueue, id);
  }

  /** Waits until an audit is over, in whatever process. @throws EchoJobError when it fails */
  async report(id: string): Promise<Report> {
    return (await this.jobs.wait(AuditQueue, id, { timeoutMs: Number.POSITIVE_INFINITY })) as Report;
  }
}
