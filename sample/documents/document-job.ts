/** The queue, and the only kind of job on it. Both ends import this file, so they cannot disagree. */
export const DOCUMENTS = 'documents';
export const EXAMINE = 'examine';

/** What travels through Redis: small, plain data. The file itself is read where the job runs. */
export interface DocumentJob {
  auditId: string;
  /** The audited folder. */
  dir: string;
  /** The document, relative to it. */
  file: string;
}

/** The result of such a job. */
export interface DocumentFacts {
  words: number;
  headings: number;
  links: number;
  /** Relative links that lead nowhere. */
  broken: string[];
}
