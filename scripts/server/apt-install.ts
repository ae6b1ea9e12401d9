import { spawn } from 'node:child_process';
import { access, readFile, rm, writeFile } from 'node:fs/promises';

const answer = [() => true, () => false] as const;

/** True on Debian, Ubuntu and their like when we may install packages: as root. */
export async function canAptInstall(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const debian = /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(release);
  return debian && (await access('/usr/bin/apt-get').then(...answer));
}

/** dpkg asks this program, where it exists, before a package starts its service; 101 means "not allowed". */
const POLICY = '/usr/sbin/policy-rc.d';

/**
 * Installs the distribution's redis-server, after one line on stderr that says so. The service that the package would start is
 * kept from starting: it would hold port 6379 and outlive us.
 *
 * @throws Error with the end of apt-get's output.
 */
export async function aptInstallServer(): Promise<void> {
  process.stderr.write('echomq: no Redis or Valkey found; installing redis-server with apt-get\n');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  // `wx`: a policy that is there already (most container images have one) is the machine's own, and stays.
  const ours = await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' }).then(...answer);
  try {
    await run(['update', '-q'], env);
    await run(['install', '-y', '-q', '--no-install-recommends', 'redis-server'], env);
  } finally {
    if (ours) await rm(POLICY, { force: true });
  }
}

function run(args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const apt = spawn('apt-get', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (bytes: Buffer) => {
      output = (output + bytes).slice(-2_000);
    };
    apt.stdout.on('data', collect);
    apt.stderr.on('data', collect);
    apt.once('error', reject);
    apt.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`apt-get ${args.join(' ')} failed (${code}):\n${output}`));
    });
  });
}
