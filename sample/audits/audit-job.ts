import { defineQueue, type FlowNode, flowNode } from 'nestjs-echomq';
import { DocumentQueue } from '../documents/document-job.js';

export const AuditQueue = defineQueue<{ report: AuditJob }>('audits');

export interface AuditJob {
  /** The audited folder. */
  dir: string;
  /** How many documents it has. */
  files: number;
  /** Milliseconds since 1970. */
  startedAt: number;
}

/** An audit is a parent with a child for every document. It lands whole, and runs when every child is done or dead. */
export function auditFlow(dir: string, files: string[]): FlowNode {
  return flowNode(
    AuditQueue,
    'report',
    { dir, files: files.length, startedAt: Date.now() },
    {
      children: files.map((file) =>
        // By default a child that dies takes its parent with it. Here there shall be a report that names the dead.
        flowNode(DocumentQueue, 'examine', { dir, file }, { opts: { parentPolicy: 'ignore' } }),
      ),
    },
  );
}
