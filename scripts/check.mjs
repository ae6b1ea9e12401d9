// Everything that can be said about the sources without running them. Each look stands for itself; all of them are made.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chunksFor, hasPlainEdition } from './lua-chunks.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const node = (script, ...args) => ({ command: process.execPath, args: [script, ...args] });
const bin = (path, ...args) => node(`node_modules/${path}`, ...args);

const looks = [
  ['embedded scripts are current', node('scripts/embed-lua.mjs', '--check')],
  ['the library builds', node('scripts/build.mjs')],
  ['types', bin('typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json')],
  // Without the paths to lib: as a user compiles, against what was built.
  ['types of the public surface', bin('typescript/bin/tsc', '--noEmit', '-p', 'test/types', '--paths', 'null')],
  ['format and lint', bin('@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.')],
  [
    'imports point down',
    bin('dependency-cruiser/bin/dependency-cruise.mjs', '--config', '.dependency-cruiser.cjs', 'lib'),
  ],
  ['timers live in the clock', timers],
  ['the wire table is current', node('scripts/docs-wire.mjs', '--check')],
  ['the package as it would be published', bin('publint/src/cli.js', '--strict')],
  ['types of the package, for each way to import it', bin('@arethetypeswrong/cli/dist/index.js', '--pack', '.')],
  ['scripts, by luacheck', luacheck],
];

/** A timer of its own escapes the injected clock, and so the tests. */
function timers() {
  const allowed = new Set(['lib/kernel/clock.ts']);
  const files = readdirSync(`${root}/lib`, { recursive: true }).filter((file) => file.endsWith('.ts'));
  const faults = files
    .map((file) => `lib/${file}`)
    .filter((file) => !allowed.has(file) && /\bset(Timeout|Interval)\(/.test(readFileSync(`${root}/${file}`, 'utf8')));
  for (const file of faults) console.error(`${file} makes a timer of its own`);
  return faults.length === 0;
}

function luacheck() {
  if (spawnSync('luacheck', ['--version']).error) {
    console.log('luacheck is not installed: left out');
    return true;
  }
  const part = (name) => `${readFileSync(`${root}/lua/${name}`, 'utf8')}\n`;
  let clean = true;
  for (const file of readdirSync(`${root}/lua`).filter((name) => /^[a-z].*\.lua$/.test(name))) {
    const script = part(file);
    for (const plain of hasPlainEdition(script) ? [false, true] : [false]) {
      const chunks = chunksFor(script, plain, (name) => part(`_${name}.lua`));
      const input = [...chunks, script].join('\n');
      const args = ['--config', `${root}/.luacheckrc`, '--no-unused', '--no-color', '-q', '--filename', file, '-'];
      const { status, stdout } = spawnSync('luacheck', args, { input, encoding: 'utf8' });
      if (status !== 0) {
        console.error(stdout);
        clean = false;
      }
    }
  }
  return clean;
}

const failed = [];
for (const [title, look] of looks) {
  console.log(`- ${title}`);
  const passed =
    typeof look === 'function'
      ? look()
      : spawnSync(look.command, look.args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0;
  if (!passed) failed.push(title);
}
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join('; ')}`);
  process.exit(1);
}
console.log('\nall well');
