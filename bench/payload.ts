/** What a job carries, and the tally that proves that each job ran exactly once. */

/** Serialised as JSON it is exactly 125 bytes long (`at` is only there where a scenario needs it). */
export interface JobData {
  n: number;
  text: string;
  /** Monotonic clock of the machine in ns, when the job was sent from another process. */
  at?: string;
}

const DATA_BYTES = 125;
const FIRST = 1_000_000;
const frame = JSON.stringify({ n: FIRST, text: '' }).length;
const text = 'Order 48213 of 2026-03-14 was paid: send the receipt, then tell the warehouse. Customer since 2019.'
  .repeat(2)
  .slice(0, DATA_BYTES - frame);

/** The data of job number `index`, counted from 0. */
export function jobData(index: number): JobData {
  return { n: FIRST + index, text };
}

export function jobDataRange(from: number, count: number): JobData[] {
  return Array.from({ length: count }, (_, index) => jobData(from + index));
}

export function indexOf(data: JobData): number {
  return data.n - FIRST;
}

/** Counts handled jobs; `done` resolves when each of `from .. from + count - 1` ran once and rejects on anything else. */
export class Tally {
  readonly done: Promise<void>;
  firstAt = 0;
  lastAt = 0;
  private readonly seen: Uint8Array;
  private handled = 0;
  private resolve!: () => void;
  private reject!: (error: Error) => void;

  constructor(
    private readonly from: number,
    private readonly count: number,
    timeoutMs = 90_000,
  ) {
    this.seen = new Uint8Array(count);
    const timer = setTimeout(
      () => this.reject(new Error(`only ${this.handled} of ${count} jobs ran within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    this.done = new Promise<void>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    }).finally(() => clearTimeout(timer));
    this.done.catch(() => {});
  }

  mark(data: JobData): void {
    const index = indexOf(data) - this.from;
    if (!(index >= 0 && index < this.count)) {
      this.reject(new Error(`a job that was not enqueued ran: ${JSON.stringify(data)}`));
      return;
    }
    if (this.seen[index]) {
      this.reject(new Error(`job ${data.n} ran twice`));
      return;
    }
    this.seen[index] = 1;
    this.handled += 1;
    if (this.handled === 1) this.firstAt = performance.now();
    if (this.handled === this.count) {
      this.lastAt = performance.now();
      this.resolve();
    }
  }

  /** From the first handler's start to the last one's. */
  get jobsPerSecond(): number {
    return ((this.count - 1) / (this.lastAt - this.firstAt)) * 1000;
  }
}
