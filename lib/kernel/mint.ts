import type { Clock } from './clock.js';
import { ID_EPOCH_MS, type JobId, SEQUENCES_PER_MS, spellId } from './id.js';

/** A node number leased from the server, in the server's milliseconds since 1970. */
export interface NodeLease {
  node: number;
  /** Ids are minted strictly after this: the number's former owner may have minted up to it. */
  floorMs: number;
  expiryMs: number;
  /** The server's clock when it answered ... */
  serverMs: number;
  /** ... and ours when we asked: counted from here, the server's time is never underestimated. */
  askedWall: number;
  askedMonotonic: number;
}

/** A clock of another machine may be off by this much before the lease is in danger. */
const SAFETY_MS = 1000;

/**
 * Mints ids under a leased node number. It stops (answers undefined) when the lease is over, by the monotonic clock or by
 * the wall clock: the first does not count a suspended machine, the second can be set back.
 */
export class Mint {
  private lease: NodeLease | undefined;
  private lastMs = 0;
  private sequence = 0;

  constructor(private readonly clock: Clock) {}

  /** Takes a new lease, or the same one renewed. A new node number starts above its own floor. */
  adopt(lease: NodeLease): void {
    if (lease.node !== this.lease?.node) {
      this.sequence = SEQUENCES_PER_MS; // never go on inside another node's ms
      if (!this.fits(lease)) this.lastMs = 0; // or nothing could be minted for as long as the server's clock has gone back
    }
    this.lease = lease;
  }

  /** Is there room under this lease above the last id? Not when the server's clock has gone back by more than a lease lasts. */
  fits(lease: NodeLease): boolean {
    return this.lastMs + 1 < lease.expiryMs - SAFETY_MS;
  }

  /** Forgets the number: it is no longer ours. */
  drop(): void {
    this.lease = undefined;
  }

  get node(): number | undefined {
    return this.lease?.node;
  }

  /** Whatever has been minted under the present lease, or will be, is of an earlier millisecond. */
  get expiryMs(): number {
    return this.lease?.expiryMs ?? 0;
  }

  /** The last millisecond an id was minted in, since 1970. */
  get lastMintedMs(): number {
    return this.lastMs;
  }

  /** The next id, or undefined without a lease that is safely valid. */
  mint(): JobId | undefined {
    const lease = this.lease;
    if (lease === undefined) return undefined;
    const byMonotonic = lease.serverMs + this.clock.monotonic() - lease.askedMonotonic;
    const byWall = lease.serverMs + this.clock.wall() - lease.askedWall;
    const limit = lease.expiryMs - SAFETY_MS;
    if (byMonotonic >= limit || byWall >= limit) return undefined;

    let ms = Math.max(Math.floor(byMonotonic), this.lastMs, lease.floorMs + 1);
    let sequence = 0;
    if (ms === this.lastMs) {
      sequence = this.sequence + 1;
      if (sequence >= SEQUENCES_PER_MS) {
        ms += 1; // borrowed: ids stay in mint order, a little ahead of the clock
        sequence = 0;
      }
    }
    if (ms >= limit) return undefined;
    this.lastMs = ms;
    this.sequence = sequence;
    return spellId(ms - ID_EPOCH_MS, lease.node, sequence);
  }
}
