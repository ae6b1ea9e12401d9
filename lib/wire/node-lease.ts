import { randomInt } from 'node:crypto';
import type { Clock } from '../kernel/clock.js';
import { NODE_COUNT } from '../kernel/id.js';
import type { Keyspace } from '../kernel/keyspace.js';
import type { NodeLease } from '../kernel/mint.js';
import type { Executor } from './executor.js';
import { array, integer } from './reply.js';

/** Far less than a lease lasts: a call that the client library has lost is made anew in time. */
const ANSWER_MS = 30_000;

/**
 * Leases a node number for minting ids, or renews the one that is held. Renewal names its owner: who has lost the number
 * gets another. @throws EchoError, after 30 s EchoTimeoutError
 */
export async function leaseNode(
  executor: Executor,
  keyspace: Keyspace,
  clock: Clock,
  call: { process: string; ttlMs: number; held: number | undefined },
): Promise<NodeLease> {
  const askedWall = clock.wall();
  const askedMonotonic = clock.monotonic();
  const reply = await executor.script(
    'node',
    [keyspace.nodes, keyspace.nodeOwners],
    [call.process, call.ttlMs, randomInt(NODE_COUNT), call.held ?? ''],
    { resend: false, timeoutMs: ANSWER_MS },
  );
  const [node, floorMs, expiryMs, serverMs] = array(reply).map(integer) as [number, number, number, number];
  return { node, floorMs, expiryMs, serverMs, askedWall, askedMonotonic };
}

/** Gives the number back; its next owner mints above `lastMintedMs`. */
export async function returnNode(
  executor: Executor,
  keyspace: Keyspace,
  call: { process: string; node: number; lastMintedMs: number },
): Promise<void> {
  await executor.script(
    'node_return',
    [keyspace.nodes, keyspace.nodeOwners],
    [call.process, call.node, call.lastMintedMs + 1],
    { resend: false, timeoutMs: 1000 },
  );
}
