import type { DocumentFacts } from '../documents/document-job.js';
import type { AuditJob } from './audit-job.js';

/** A document that could not be examined. */
export interface DeadDocument {
  file: string;
  reason: string;
  retries: number;
}

/** Sums and a few examples, so its size does not grow with the tree. */
export interface Report {
  dir: string;
  files: number;
  words: number;
  headings: number;
  links: number;
  brokenLinks: number;
  /** A few of them: `file -> target`. */
  brokenExamples: string[];
  /** Attempts that failed and were tried again. */
  retries: number;
  dead: number;
  /** A few of the dead: `file: reason`. */
  deadExamples: string[];
  seconds: number;
  jobsPerSecond: number;
}

const EXAMPLES = 5;

export function reportOn(audit: AuditJob, documents: DocumentFacts[], dead: DeadDocument[]): Report {
  const { dir, files, startedAt } = audit;
  const broken = documents.flatMap((document) => document.broken.map((target) => `${document.file} -> ${target}`));
  const seconds = Math.max((Date.now() - startedAt) / 1000, 0.001);
  return {
    dir,
    files,
    words: sum(documents, 'words'),
    headings: sum(documents, 'headings'),
    links: sum(documents, 'links'),
    brokenLinks: broken.length,
    brokenExamples: broken.slice(0, EXAMPLES),
    retries: sum(documents, 'retries') + sum(dead, 'retries'),
    dead: dead.length,
    deadExamples: dead.slice(0, EXAMPLES).map(({ file, reason }) => `${file}: ${reason}`),
    seconds: Math.round(seconds * 100) / 100,
    jobsPerSecond: Math.round(files / seconds),
  };
}

function sum<Key extends string>(items: Record<Key, number>[], key: Key): number {
  return items.reduce((total, item) => total + item[key], 0);
}
