import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { canAptInstall } from '../../scripts/server/apt-install.js';
import { askDockerEngine, findBinary, findServer, type ServerHandle } from '../../scripts/server/index.js';
import { RespSocket } from '../../scripts/server/resp-socket.js';
import { guardLeaks } from '../support/leaks.js';

const ENVIRONMENT = { ...process.env };
const realBinary = findBinary();
const engine = await askDockerEngine();
const aptWorks = await canAptInstall();

const itWithBinary = realBinary ? it : it.skip;
const noEngine = engine.answers ? '' : ` (skipped: no Docker engine: ${engine.reason})`;
const itWithEngine = engine.answers ? it : it.skip;
const itWithApt = aptWorks && realBinary ? it : it.skip;
const noApt = aptWorks ? '' : ' (skipped: not root on Debian or Ubuntu)';

describe('finding a server', () => {
  let found: ServerHandle | undefined;
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'echomq-find-'));
    process.env = { ...ENVIRONMENT };
    delete process.env.ECHOMQ_URL;
    delete process.env.ECHOMQ_TEST_SERVER;
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await found?.stop();
    found = undefined;
    process.env = ENVIRONMENT;
    await rm(dir, { recursive: true });
  });
  guardLeaks();

  const ping = (url: string) => {
    const { hostname, port } = new URL(url);
    return RespSocket.with(hostname, Number(port), (server) => server.command('PING'));
  };
  /** Nothing on PATH, and an engine that cannot be there. */
  const bare = () => {
    process.env.PATH = dir;
    process.env.DOCKER_HOST = `unix://${dir}/docker.sock`;
  };

  it('takes the URL it is given, before anything else, and leaves that server alone', async () => {
    process.env.ECHOMQ_URL = 'redis://example.invalid:7000/3';
    const given = await findServer();
    expect(given).toMatchObject({ kind: 'url', url: 'redis://example.invalid:7000/3' });
    await given.stop();
  });

  itWithBinary('starts a private process of the program on PATH', async () => {
    found = await findServer();
    expect(found.kind).toBe('process');
    expect(await ping(found.url)).toBe('PONG');
  });

  it('prefers valkey-server, and takes only programs', async () => {
    const [valkey, redis] = [join(dir, 'valkey-server'), join(dir, 'redis-server')];
    await writeFile(valkey, '');
    await writeFile(redis, '', { mode: 0o755 });
    expect(findBinary(`${dir}/none:${dir}`)).toBe(redis);
    await chmod(valkey, 0o755);
    expect(findBinary(`${dir}/none:${dir}`)).toBe(valkey);
    expect(findBinary('')).toBeUndefined();
  });

  itWithEngine(`starts a container when told to, even where a program is installed${noEngine}`, async () => {
    process.env.ECHOMQ_TEST_SERVER = 'container';
    found = await findServer();
    expect(found.kind).toBe('container');
    expect(await ping(found.url)).toBe('PONG');
  });

  itWithEngine(`starts a container where no program is installed${noEngine}`, async () => {
    process.env.PATH = dir;
    found = await findServer();
    expect(found.kind).toBe('container');
    expect(await ping(found.url)).toBe('PONG');
  });

  it('says why when a container is asked for and no engine answers', async () => {
    process.env.ECHOMQ_TEST_SERVER = 'container';
    process.env.DOCKER_HOST = `unix://${dir}/docker.sock`;
    await expect(findServer()).rejects.toThrow(/^ECHOMQ_TEST_SERVER=container, but no Docker engine: .*docker\.sock/);
  });

  it('refuses a kind of server it does not know', async () => {
    process.env.ECHOMQ_TEST_SERVER = 'cloud';
    await expect(findServer()).rejects.toThrow('ECHOMQ_TEST_SERVER=cloud: the only value is "container"');
  });

  itWithApt(`as root on Debian, installs redis-server, says so, and starts it${noApt}`, async () => {
    bare();
    const apt = join(dir, 'apt-get');
    const install = `[ "$1" = install ] && /bin/ln -s ${realBinary} ${dir}/redis-server`;
    await writeFile(apt, `#!/bin/sh\necho "$*" >> ${dir}/log\n${install}\nexit 0\n`, { mode: 0o755 });
    const said = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    found = await findServer();
    expect(found.kind).toBe('process');
    expect(said.mock.calls).toEqual([[expect.stringMatching(/^echomq: .*installing redis-server with apt-get\n$/)]]);
    expect(await readFile(join(dir, 'log'), 'utf8')).toBe(
      'update -q\ninstall -y -q --no-install-recommends redis-server\n',
    );
  });

  itWithApt(`passes on what apt-get said when the installation fails${noApt}`, async () => {
    bare();
    await writeFile(join(dir, 'apt-get'), '#!/bin/sh\necho "E: no network" >&2\nexit 100\n', { mode: 0o755 });
    jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    await expect(findServer()).rejects.toThrow(/apt-get update -q failed \(100\):\nE: no network/);
  });

  it('lists the four choices when there is nothing at all', async () => {
    bare();
    jest.spyOn(process as { getuid(): number }, 'getuid').mockReturnValue(1_000);
    await expect(findServer()).rejects.toThrow(/ECHOMQ_URL[\s\S]*on PATH[\s\S]*Docker[\s\S]*as root on Debian/);
  });

  describe('asks a Docker engine', () => {
    const listen = (respond: (server: Server) => void) =>
      new Promise<Server>((resolve) => {
        const server = createServer();
        respond(server);
        server.listen(`${dir}/docker.sock`, () => resolve(server));
      });
    const ask = (timeoutMs?: number) => {
      process.env.DOCKER_HOST = `unix://${dir}/docker.sock`;
      return askDockerEngine(timeoutMs);
    };

    it('that answers a ping', async () => {
      const server = await listen((http) => http.on('request', (request, response) => response.end(request.url)));
      expect(await ask()).toEqual({ answers: true });
      server.close();
    });

    it('that answers with an error', async () => {
      const server = await listen((http) => http.on('request', (_, response) => response.writeHead(503).end()));
      expect(await ask()).toMatchObject({ answers: false, reason: expect.stringMatching(/HTTP 503$/) });
      server.close();
    });

    it('that hangs, and does not wait for it', async () => {
      const server = await listen((http) => http.on('request', () => {}));
      expect(await ask(20)).toMatchObject({ answers: false, reason: expect.stringMatching(/no answer within 20 ms$/) });
      server.close();
    });
  });
});
