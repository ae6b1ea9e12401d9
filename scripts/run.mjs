// Builds what is needed and runs it: `node scripts/run.mjs sample [args]`, `node scripts/run.mjs bench [args]`.
// Nothing is built while no source has changed since the last build that succeeded.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [what, ...args] = process.argv.slice(2);
const build = (...command) => execFileSync(process.execPath, command, { cwd: root, stdio: 'inherit' });
const tsc = (project) => build('node_modules/typescript/bin/tsc', '-p', project);

const programs = {
  sample: { prepare: () => tsc('sample/tsconfig.json'), main: '.build/sample/main.js' },
  bench: { prepare: () => tsc('tsconfig.tools.json'), main: '.build/bench/main.js' },
};
const program = programs[what];
if (program === undefined) {
  console.error(`usage: node scripts/run.mjs ${Object.keys(programs).join('|')} [arguments]`);
  process.exit(2);
}

/** Its time is when the last build that succeeded began: what is edited during a build is newer. */
const stamp = join(root, `.build/${what}.stamp`);
const outputs = [stamp, join(root, program.main), join(root, 'dist/cjs/package.json')]; // the last that a build writes
const configs = readdirSync(root).filter((name) => /^(tsconfig.*|package(-lock)?)\.json$/.test(name));
const sources = ['lib', 'lua', 'scripts', what, ...configs].map((name) => join(root, name));

if (!outputs.every(existsSync) || Math.max(...sources.map(newest)) >= statSync(stamp).mtimeMs) {
  const began = new Date();
  build('scripts/build.mjs');
  program.prepare();
  mkdirSync(join(root, '.build'), { recursive: true });
  writeFileSync(stamp, '');
  utimesSync(stamp, began, began);
}
const { status, signal } = spawnSync(process.execPath, [program.main, ...args], { cwd: root, stdio: 'inherit' });
process.exit(status ?? (signal ? 1 : 0));

/** When a file, or anything in a folder, was last changed. A folder's own time tells of what was removed. */
function newest(path) {
  if (path.endsWith('.generated.ts')) return 0; // the build writes it, from sources that are looked at too
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
