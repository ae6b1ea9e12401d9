import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A key and a certificate for localhost that it has signed itself, in files that are there until `remove`. */
export interface Certificate {
  readonly keyFile: string;
  readonly certFile: string;
  readonly key: Buffer;
  readonly cert: Buffer;
  remove(): Promise<void>;
}

export async function hasOpenssl(): Promise<boolean> {
  return run('openssl', ['version']).then(
    () => true,
    () => false,
  );
}

export async function makeCertificate(): Promise<Certificate> {
  const dir = await mkdtemp(join(tmpdir(), 'echomq-tls-'));
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const to = ['-keyout', keyFile, '-out', certFile];
  await run('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...to, ...subject]);
  const [key, cert] = await Promise.all([readFile(keyFile), readFile(certFile)]);
  return { keyFile, certFile, key, cert, remove: () => rm(dir, { recursive: true, force: true }) };
}
