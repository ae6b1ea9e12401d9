import { existsSync } from 'node:fs';
import { type RequestOptions, request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Whether an engine answers, and if not, why: the end of the sentence "no Docker engine: ...". */
export type EngineAnswer = { answers: true } | { answers: false; reason: string };

/**
 * Asks the Docker engine for a sign of life, which takes milliseconds; loading the container library to find out takes a second.
 * Looks where DOCKER_HOST says, otherwise at the usual sockets.
 *
 * @param timeoutMs for each socket asked. Default 1,000.
 */
export async function askDockerEngine(timeoutMs = 1_000): Promise<EngineAnswer> {
  const host = process.env.DOCKER_HOST;
  if (host) return ping(host, timeoutMs);
  const sockets = usualSockets().filter((path) => existsSync(path));
  let answer: EngineAnswer = { answers: false, reason: 'DOCKER_HOST is not set and there is no docker.sock' };
  for (const path of sockets) {
    answer = await ping(`unix://${path}`, timeoutMs);
    if (answer.answers) break;
  }
  return answer;
}

function usualSockets(): string[] {
  const runtime = process.env.XDG_RUNTIME_DIR;
  return [
    '/var/run/docker.sock',
    join(homedir(), '.docker/run/docker.sock'),
    ...(runtime ? [join(runtime, 'docker.sock')] : []),
  ];
}

function ping(host: string, timeoutMs: number): Promise<EngineAnswer> {
  const target = address(host);
  if (!target) return Promise.resolve({ answers: false, reason: `DOCKER_HOST=${host} is neither unix:// nor tcp://` });
  return new Promise((resolve) => {
    const asked = request({ ...target, path: '/_ping', timeout: timeoutMs }, (response) => {
      response.resume();
      const status = response.statusCode ?? 0;
      resolve(status === 200 ? { answers: true } : { answers: false, reason: `${host} answered HTTP ${status}` });
    });
    asked.on('timeout', () => asked.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    asked.on('error', (error) => resolve({ answers: false, reason: `${host}: ${error.message}` }));
    asked.end();
  });
}

function address(host: string): RequestOptions | undefined {
  if (host.startsWith('unix://')) return { socketPath: host.slice('unix://'.length) };
  if (!/^(tcp|http):\/\//.test(host)) return undefined;
  const { hostname, port } = new URL(host.replace(/^tcp/, 'http'));
  return { host: hostname, port: port || 2375 };
}
