// Builds what is needed and runs it: `node scripts/run.mjs sample [args]`, `node scripts/run.mjs bench [args]`.
import { execFileSync, spawnSync } from 'node:child_process';
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
build('scripts/build.mjs');
program.prepare();
const { status, signal } = spawnSync(process.execPath, [program.main, ...args], { cwd: root, stdio: 'inherit' });
process.exit(status ?? (signal ? 1 : 0));
