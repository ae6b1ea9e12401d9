// Embeds lua/*.lua into the library as one generated module, because lib uses no import.meta and reads no files.
// With --check it only compares, and fails when the generated file is stale.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('..', import.meta.url);
const target = new URL('lib/wire/scripts.generated.ts', root);

// Comment lines and indentation stay behind: the server keeps every script's text in memory.
const slim = (text) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('--'))
    .join('\n');

const folder = new URL('lua/', root);
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.lua') && !name.startsWith('_'))
  .sort();
const read = (name) => slim(readFileSync(new URL(name, folder), 'utf8'));

const lines = [
  '// Generated from lua/ by `npm run generate`. Do not edit.',
  `export const PRELUDE = ${JSON.stringify(read('_prelude.lua'))};`,
  '',
  `export const FLOW = ${JSON.stringify(read('_flow.lua'))};`,
  '',
  'export const SCRIPTS = {',
  ...names.map((name) => `  ${name.replace('.lua', '')}: ${JSON.stringify(read(name))},`),
  '} as const;',
  '',
];
const text = lines.join('\n');

if (process.argv.includes('--check')) {
  let current = '';
  try {
    current = readFileSync(target, 'utf8');
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  if (current !== text) {
    console.error(`${fileURLToPath(target)} is stale: run \`npm run generate\``);
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
