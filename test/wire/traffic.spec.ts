import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { afterAll, describe, expect, it } from '@jest/globals';
import { Traffic } from '../../lib/wire/clients/traffic.js';
import { type Certificate, hasOpenssl, makeCertificate } from '../support/certificate.js';

/** Far more than the system holds between two ends. */
const BYTES = 60_000_000;
/** So many looks without movement, one a turn: the system takes no more. */
const QUIET = 50;

const certificate: Certificate | undefined = (await hasOpenssl()) ? await makeCertificate() : undefined;
afterAll(() => certificate?.remove());

/** Both ends of a socket. */
async function pair(tls: boolean): Promise<{ near: Socket; far: Socket; server: Server }> {
  const server = tls ? createTlsServer({ key: certificate!.key, cert: certificate!.cert }) : createServer();
  const met = once(server, tls ? 'secureConnection' : 'connection') as Promise<[Socket]>;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const near = tls
    ? connectTls({ port, host: '127.0.0.1', ca: certificate!.cert, servername: 'localhost' })
    : connect(port, '127.0.0.1');
  const [far] = await met;
  return { near, far, server };
}

describe('bytes that leave', () => {
  const kinds = certificate ? [{ kind: 'plain' }, { kind: 'TLS' }] : [{ kind: 'plain' }];

  it.each(kinds)('over a $kind socket are a sign of life as long as the other side takes them', async ({ kind }) => {
    const { near, far, server } = await pair(kind === 'TLS');
    far.pause();
    const traffic = new Traffic(near);
    let looks = 0;
    const moves = () => traffic.since(++looks) === looks;
    let written = false;
    near.write(Buffer.alloc(BYTES), () => {
      written = true;
    });
    for (let quiet = 0; quiet < QUIET; ) {
      quiet = moves() ? 0 : quiet + 1;
      await turn();
    }
    expect(written).toBe(false);
    far.resume();
    let moved = 0;
    while (!written) {
      if (moves() && !written) moved += 1;
      await turn();
    }
    expect(moved).toBeGreaterThan(3);
    near.destroy();
    far.destroy();
    server.close();
  });
});
