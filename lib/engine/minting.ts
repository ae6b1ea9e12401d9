import type { Clock, Timer } from '../kernel/clock.js';
import { EchoError, EchoStateError, EchoStoreError, EchoTimeoutError } from '../kernel/errors.js';
import type { JobId } from '../kernel/id.js';
import type { Keyspace } from '../kernel/keyspace.js';
import { Mint, type NodeLease } from '../kernel/mint.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { leaseNode, returnNode } from '../wire/node-lease.js';
import type { Metronome } from './metronome.js';

const LEASE_MS = 300_000;
const PAUSE_AFTER_FAULT_MS = 250;

/** Keeps a node number leased, so that ids can be minted without asking the server. */
export class Minting {
  private readonly mint: Mint;
  private timer: Timer | undefined;
  private renewing: Promise<void> | undefined;
  private stopped = false;

  constructor(
    private readonly executor: Executor,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly metronome: Metronome,
    private readonly process: string,
    /** The server does not know that we hold a number: its keys are gone, or it has taken us for dead. */
    private readonly forgotten: () => void,
  ) {
    this.mint = new Mint(clock);
  }

  /** Leases a number, or renews it; also after every reconnect. One call at a time. @throws EchoError */
  renew(): Promise<void> {
    this.renewing ??= this.lease().finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  /** The same for somebody who does not wait for ever. @throws EchoTimeoutError after `timeoutMs` */
  async renewWithin(timeoutMs: number): Promise<void> {
    let gaveUp = false;
    const renewed = this.renewUntil(() => gaveUp);
    if (!Number.isFinite(timeoutMs)) return renewed;
    let late: Timer | undefined;
    const limit = new Promise<never>((_, reject) => {
      const fault = new EchoTimeoutError(
        `gave up after ${timeoutMs} ms: no node number could be leased for the job's id`,
      );
      late = this.clock.after(timeoutMs, () => reject(fault));
    });
    try {
      await Promise.race([renewed, limit]);
    } finally {
      gaveUp = true;
      late?.cancel();
    }
  }

  /** A call that is lost with its connection is not sent again, since its answer would be about an earlier time: made anew. */
  private async renewUntil(gaveUp: () => boolean): Promise<void> {
    for (;;) {
      try {
        return await this.renew();
      } catch (error) {
        if (gaveUp() || this.stopped || !(error instanceof EchoError) || !error.retryable) throw error;
        await new Promise<void>((resolve) => {
          this.clock.after(PAUSE_AFTER_FAULT_MS, resolve);
        });
      }
    }
  }

  /** The next id, or undefined while no lease is safely valid. */
  next(): JobId | undefined {
    return this.mint.mint();
  }

  /** The next id. @throws EchoStoreError, retryable, while no lease is safely valid; EchoStateError once it is stopped */
  require(): JobId {
    const id = this.mint.mint();
    if (id !== undefined) return id;
    if (this.stopped) throw new EchoStateError('no id can be minted: this EchoMq is closed');
    this.renew().catch(() => undefined); // the caller is told below; the connection reports its own faults
    throw new EchoStoreError(
      'ECHO_UNREACHABLE',
      'no id can be minted: the lease of the node number is not valid',
      true,
    );
  }

  /** Gives the number back. */
  async stop(reachable: boolean): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    const { node } = this.mint;
    if (node === undefined) return;
    const lastMintedMs = Math.max(this.mint.lastMintedMs, 0);
    this.mint.drop();
    if (reachable) await this.handBack(node, lastMintedMs);
  }

  private ask(held: number | undefined): Promise<NodeLease> {
    return leaseNode(this.executor, this.keyspace, this.clock, { process: this.process, ttlMs: LEASE_MS, held });
  }

  private handBack(node: number, lastMintedMs: number): Promise<void> {
    return returnNode(this.executor, this.keyspace, { process: this.process, node, lastMintedMs });
  }

  private async lease(): Promise<void> {
    const held = this.mint.node;
    try {
      let lease = await this.ask(held);
      if (held !== undefined && lease.node !== held && !this.stopped) this.forgotten();
      if (!this.stopped && lease.node === held && !this.mint.fits(lease)) {
        await this.handBack(held, this.mint.expiryMs);
        if (!this.stopped) lease = await this.ask(undefined);
      }
      if (this.stopped) return;
      this.mint.adopt(lease);
      this.again(LEASE_MS / 3);
    } catch (error) {
      if (!this.stopped) this.again(PAUSE_AFTER_FAULT_MS);
      throw asEchoError(error);
    }
  }

  private again(ms: number): void {
    this.timer?.cancel();
    this.timer = this.metronome.after(ms, () => {
      this.renew().catch(() => undefined); // tried again after a pause; minting says so when the lease runs out
    });
  }
}
