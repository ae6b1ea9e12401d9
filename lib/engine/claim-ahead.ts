/** A claim ahead that is not started within this time is given back: another process may have a free slot. */
export const AHEAD_FOR_MS = 25;

const HORIZON_MS = 2;
const MOST_AHEAD = 63;
const MOST_BYTES_AHEAD = 1_000_000;
const SHORTEST_LEASE_MS = 10_000;
const WEIGHT = 0.2;

/**
 * How many jobs to claim beyond the free slots: as many as the slots will start within about 2 ms, judged by the handler
 * times seen. Slow or unknown handlers get none, and so do short leases.
 */
export class ClaimAhead {
  private meanMs: number | undefined;
  private limit = MOST_AHEAD;
  /** Jobs to hold ready beyond the slots. */
  target = 0;

  constructor(private readonly enabled: boolean) {}

  static for(enabled: boolean, leaseMs: number): ClaimAhead {
    return new ClaimAhead(enabled && leaseMs >= SHORTEST_LEASE_MS);
  }

  /** A claim brought these: large payloads are not held ready, memory is worth more than a round trip. */
  carried(rows: readonly { payload: Buffer }[]): void {
    let bytes = 0;
    for (const { payload } of rows) bytes += payload.length;
    this.limit = Math.min(MOST_AHEAD, Math.floor((MOST_BYTES_AHEAD * rows.length) / (bytes + 1)));
    if (this.target > this.limit) this.target = this.limit;
  }

  /** What was claimed ahead could not start: no more of it until a handler has ended, or it would come straight back. */
  stall(): void {
    this.target = 0;
  }

  /** A handler took so long. */
  saw(ms: number): void {
    this.meanMs = this.meanMs === undefined ? ms : this.meanMs + WEIGHT * (ms - this.meanMs);
    if (this.enabled) this.target = Math.max(0, Math.min(this.limit, Math.floor(HORIZON_MS / this.meanMs) - 1));
  }
}
