// Embeds lua/*.lua into the library as one generated module, because lib uses no import.meta and reads no files.
// With --check it only compares, and fails when the generated file is stale.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chunksFor, hasPlainEdition, slim } from './lua-chunks.mjs';

const root = new URL('..', import.meta.url);
const target = new URL('lib/wire/scripts.generated.ts', root);

const folder = new URL('lua/', root);
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.lua') && !name.startsWith('_'))
  .sort();
const read = (name) => readFileSync(new URL(name, folder), 'utf8');
const readPart = (part) => read(`_${part}.lua`);

const chunks = [];
const numbered = (script, plain) => {
  const numbers = chunksFor(script, plain, readPart).map((chunk) => {
    if (!chunks.includes(chunk)) chunks.push(chunk);
    return chunks.indexOf(chunk);
  });
  return JSON.stringify(numbers);
};
const scripts = names.map((file) => ({ name: file.replace('.lua', ''), text: read(file) }));
const whole = scripts.map(({ name, text }) => `  ${name}: ${numbered(text, false)},`);
const plain = scripts
  .filter(({ text }) => hasPlainEdition(text))
  .map(({ name, text }) => `  ${name}: ${numbered(text, true)},`);

const lines = [
  '// Generated from lua/ by `npm run generate`. Do not edit.',
  '',
  '/** What scripts share. */',
  'export const CHUNKS = [',
  ...chunks.map((chunk) => `  ${JSON.stringify(chunk)},`),
  '] as const;',
  '',
  '/** By script, the chunks that stand in front of it, in order. */',
  'export const WHOLE = {',
  ...whole,
  '} as const;',
  '',
  '/** The same of the plain editions, which know nothing beyond plain jobs. */',
  'export const PLAIN = {',
  ...plain,
  '} as const;',
  '',
  'export const SCRIPTS = {',
  ...scripts.map(({ name, text }) => `  ${name}: ${JSON.stringify(slim(text))},`),
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
