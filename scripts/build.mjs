// Builds the library into dist/: ESM and CommonJS side by side, each with its types.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = (...args) => execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' });

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
run('scripts/embed-lua.mjs');
run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.esm.json');
run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.cjs.json');
mkdirSync(new URL('../dist/cjs', import.meta.url), { recursive: true });
writeFileSync(new URL('../dist/cjs/package.json', import.meta.url), '{ "type": "commonjs" }\n');
