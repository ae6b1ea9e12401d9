const FIRST_PAUSE_MS = 20;
/** No answer at all: the server is away. */
const LONGEST_PAUSE_MS = 2000;
/** It greets and then hangs up: something we send may be the reason, but claims and jobs are waiting. */
const LONGEST_PAUSE_AFTER_GREETING_MS = 500;
/** A connection that has lived so long was a good one. */
const GOOD_LIFE_MS = 1000;

/** Says how long to wait before dialling again: at once after a good life, then doubling, capped, with jitter. */
export class Redial {
  private failures = 0;

  constructor(private readonly random: () => number = Math.random) {}

  /** Milliseconds, after a connection that lived so long; undefined when it never came up. */
  after(livedMs: number | undefined): number {
    if (livedMs !== undefined && livedMs >= GOOD_LIFE_MS) this.failures = 0;
    const { failures } = this;
    this.failures += 1;
    if (failures === 0 && livedMs !== undefined) return 0;
    const cap = livedMs === undefined ? LONGEST_PAUSE_MS : LONGEST_PAUSE_AFTER_GREETING_MS;
    return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), cap) * (0.5 + this.random() / 2);
  }
}
