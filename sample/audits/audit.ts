import { randomUUID } from 'node:crypto';
import type { DocumentFacts } from '../documents/document-job.js';

export interface Report {
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

/** One audit: how far it is, and what it has found. Sums and a few examples, so its size does not grow with the tree. */
export class Audit {
  readonly id = randomUUID();
  /** Resolves when every document is examined or given up. */
  readonly over: Promise<void>;
  private done = 0;
  private readonly sums = { words: 0, headings: 0, links: 0, brokenLinks: 0, retries: 0, dead: 0 };
  private readonly brokenExamples: string[] = [];
  private readonly deadExamples: string[] = [];
  private readonly startedAt = performance.now();
  private endedAt: number | undefined;
  private finish: () => void = () => {};

  constructor(
    readonly dir: string,
    readonly files: number,
  ) {
    this.over = new Promise((resolve) => {
      this.finish = resolve;
    });
    this.endWhenComplete();
  }

  get ended(): number {
    return this.done + this.sums.dead;
  }

  get isOver(): boolean {
    return this.endedAt !== undefined;
  }

  examined(file: string, facts: DocumentFacts): void {
    this.done += 1;
    this.sums.words += facts.words;
    this.sums.headings += facts.headings;
    this.sums.links += facts.links;
    this.sums.brokenLinks += facts.broken.length;
    for (const target of facts.broken) keep(this.brokenExamples, `${file} -> ${target}`);
    this.endWhenComplete();
  }

  willBeRetried(): void {
    this.sums.retries += 1;
  }

  givenUp(file: string, reason: string): void {
    this.sums.dead += 1;
    keep(this.deadExamples, `${file}: ${reason}`);
    this.endWhenComplete();
  }

  report(): Report {
    const seconds = ((this.endedAt ?? performance.now()) - this.startedAt) / 1000;
    return {
      ...this.sums,
      brokenExamples: [...this.brokenExamples],
      deadExamples: [...this.deadExamples],
      seconds: Math.round(seconds * 100) / 100,
      jobsPerSecond: Math.round(this.ended / Math.max(seconds, 0.001)),
    };
  }

  private endWhenComplete(): void {
    if (this.ended < this.files || this.isOver) return;
    this.endedAt = performance.now();
    this.finish();
  }
}

function keep(examples: string[], example: string): void {
  if (examples.length < EXAMPLES) examples.push(example);
}
