import { aptInstallServer, canAptInstall } from './apt-install.js';
import { findBinary } from './binary.js';
import { startContainer } from './container.js';
import { askDockerEngine } from './docker-engine.js';
import { RedisProcess } from './redis-process.js';

/** A server to work with, and how to be done with it. */
export interface ServerHandle {
  /** `redis://...` */
  readonly url: string;
  /** `url`: given by the environment; `process`: a private process of ours; `container`: a container of ours. */
  readonly kind: 'url' | 'process' | 'container';
  /** Ends what was started; does nothing to a server given by URL. */
  stop(): Promise<void>;
}

const CHOICES = `no Redis or Valkey server to use. Any one of these will do:
  - set ECHOMQ_URL to a server's URL, e.g. ECHOMQ_URL=redis://127.0.0.1:6379
  - install valkey-server or redis-server, so that it is on PATH
  - start Docker: a container of valkey/valkey:8.1 (or ECHOMQ_TEST_IMAGE) is then used
  - run as root on Debian or Ubuntu: redis-server is then installed with apt-get`;

/**
 * Finds a server, or starts one: (a) ECHOMQ_URL; (b) valkey-server or redis-server on `PATH`, as a private process; (c) a container,
 * where a Docker engine answers; (d) as root on Debian or Ubuntu, redis-server is installed and run as in (b).
 * ECHOMQ_TEST_SERVER=container goes straight to (c).
 *
 * @throws Error that lists the four choices, or says why the chosen one failed.
 */
export async function findServer(): Promise<ServerHandle> {
  const forced = process.env.ECHOMQ_TEST_SERVER;
  if (forced === 'container') return forcedContainer();
  if (forced) throw new Error(`ECHOMQ_TEST_SERVER=${forced}: the only value is "container"`);
  const url = process.env.ECHOMQ_URL;
  if (url) return { url, kind: 'url', stop: async () => {} };
  if (findBinary()) return ownProcess();
  if ((await askDockerEngine()).answers) return { ...(await startContainer()), kind: 'container' };
  if (!(await canAptInstall())) throw new Error(CHOICES);
  await aptInstallServer();
  return ownProcess();
}

async function forcedContainer(): Promise<ServerHandle> {
  const engine = await askDockerEngine();
  if (!engine.answers) throw new Error(`ECHOMQ_TEST_SERVER=container, but no Docker engine: ${engine.reason}`);
  return { ...(await startContainer()), kind: 'container' };
}

async function ownProcess(): Promise<ServerHandle> {
  const server = await RedisProcess.start();
  return { url: server.url, kind: 'process', stop: () => server.stop() };
}
