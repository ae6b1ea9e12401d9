import { expect } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { isEarlier } from '../../../lib/kernel/stream-id.js';
import { expectInvariantsOf } from '../../support/invariants.js';
import { until } from '../../support/until.js';

type Entry = [id: string, fields: string[]];

/** Entries of outboxes that their targets have not applied, as `source -> target id`. */
export async function unapplied(client: Redis | Cluster, queues: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const source of queues) {
    const entries = (await client.call('XRANGE', `emq:{${source}}:outbox`, '-', '+')) as Entry[];
    for (const [id, [, target]] of entries) {
      const last = await client.hget(`emq:{${target}}:relayed`, source);
      if (last === null || isEarlier(last, id)) found.push(`${source} -> ${target} ${id}`);
    }
  }
  return found;
}

/** The end of a test on flows: all that the queues owe each other is applied, and the invariants hold in and between them. */
export async function expectBalance(client: Redis | Cluster, queues: readonly string[]): Promise<void> {
  let left: string[] = [];
  const applied = async () => {
    left = await unapplied(client, queues);
    return left.length === 0;
  };
  await until(applied, { what: 'all effects to be applied', progress: () => left.length, timeoutMs: 10_000 }).catch(
    () => expect(left).toEqual([]),
  );
  await expectInvariantsOf(client, queues);
}
