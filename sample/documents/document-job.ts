import { defineQueue } from 'nestjs-echomq';

/** The queue, and the only kind of job on it. Both ends import it: the compiler holds them to the same name and data. */
export const DocumentQueue = defineQueue<{ examine: DocumentJob }>('documents');

/** What travels through Redis: small, plain data. The file itself is read where the job runs. */
export interface DocumentJob {
  /** The audited folder. */
  dir: string;
  /** The document, relative to it. */
  file: string;
}

/** The result of such a job. The audit gets it by the job's id, so it says itself what it is about. */
export interface DocumentFacts {
  file: string;
  words: number;
  headings: number;
  links: number;
  /** Relative links that lead nowhere. */
  broken: string[];
  /** Attempts that had failed before. */
  retries: number;
}
