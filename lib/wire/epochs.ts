import { randomBytes } from 'node:crypto';
import { base62 } from '../kernel/id.js';
import { makeRoom } from './make-room.js';

/**
 * What the claims of one connection carry beside their number: the run of the server they were made on, and a nonce drawn at each
 * connect. So no two claims ever share a token, not even when a failover gives a number out again.
 */
export class Epochs {
  private nonce = '';
  /** By the base of a queue, or '' where all queues are on one server. */
  private readonly runIds = new Map<string, string>();

  /** Another server, or another node, may stand where the last one did. */
  renew(): void {
    this.nonce = base62(randomBytes(8).readBigUInt64BE());
    this.runIds.clear();
  }

  /** `server`: what `INFO server` says. */
  learn(base: string, server: string): void {
    const runId = /^run_id:(\w+)/m.exec(server)?.[1];
    if (!runId) return;
    makeRoom(this.runIds, base);
    this.runIds.set(base, runId);
  }

  runId(base: string): string | undefined {
    return this.runIds.get(base);
  }

  of(base: string): string {
    return `${this.runIds.get(base) ?? '-'}.${this.nonce}`;
  }
}
