import { EchoWireError } from '../kernel/errors.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import type { Client } from './client.js';
import type { Executor } from './executor.js';
import { type Reply, text } from './reply.js';
import { textOf } from './script-text.js';

/** Generations of the wire, by the number a connector is opened with. */
export const BRANDS = { 4: 'echomq:4.0.0', 6: 'echomq:6.0.0' } as const;

export type Wire = keyof typeof BRANDS;

const BRAND = textOf('brand', false);

/** Stamps the brand where there is none. @throws EchoWireError on any other brand */
export async function passFence(client: Client, keyspace: Keyspace, wire: Wire): Promise<void> {
  check(await client.call('eval', [BRAND, 2, keyspace.version, keyspace.nodes, BRANDS[wire]]), wire, keyspace.version);
}

/** In a cluster every queue has a fence of its own. */
export async function passQueueFence(executor: Executor, keys: QueueKeys, wire: Wire): Promise<void> {
  const options = { resend: true, timeoutMs: 5000 };
  check(await executor.script('brand', [keys.version, keys.pending], [BRANDS[wire]], options), wire, keys.version);
}

function check(found: Reply, wire: Wire, key: string): void {
  const brand = text(found);
  if (brand === BRANDS[wire]) return;
  throw new EchoWireError(
    `${key} says ${JSON.stringify(brand.slice(0, 40))}, this client speaks ${BRANDS[wire]}: ` +
      'give it another prefix or database, or open it with the matching `wire`',
  );
}
