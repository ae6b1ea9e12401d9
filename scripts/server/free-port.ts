import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A TCP port that is free on 127.0.0.1 now, together with the port 10,000 above it (a cluster node's bus).
 *
 * Ports are drawn from 10,000 to 21,999, not taken from the system's ephemeral range: a client that retries a dead port of
 * that range can be given the very port as its own end and then connects to itself, and a port that was freed for a
 * restart may be handed to an outgoing connection meanwhile. Whoever binds must still retry on a clash.
 *
 * @throws Error when 100 draws found nothing.
 */
export async function freePort(): Promise<number> {
  for (let draw = 0; draw < 100; draw++) {
    const port = randomInt(10_000, 22_000);
    if ((await bindable(port)) && (await bindable(port + 10_000))) return port;
  }
  throw new Error('no free port between 10000 and 21999 on 127.0.0.1');
}

function bindable(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
