import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

const ROOT = new URL('../../', import.meta.url);

/** The package's own doors, read from the sources rather than from a build that may be old or missing. */
const DOORS = new Map(
  ['index', 'core', 'testing'].map((door) => [
    door === 'index' ? 'nestjs-echomq' : `nestjs-echomq/${door}`,
    new URL(`lib/${door}.ts`, ROOT).href,
  ]),
);

/** The same dialect as jest.config.mjs: Nest needs legacy decorators with metadata, and fields that do not shadow. */
const OPTIONS = {
  swcrc: false,
  sourceMaps: 'inline',
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
  },
  module: { type: 'es6' },
};

/** `./x.js` means `./x.ts` where only that exists. */
export async function resolve(specifier, context, next) {
  const door = DOORS.get(specifier);
  if (door) return { url: door, format: 'module', shortCircuit: true };
  if (/^(\.{1,2}\/|file:).*\.js$/.test(specifier) && context.parentURL?.startsWith('file:')) {
    const written = new URL(specifier, context.parentURL);
    const source = new URL(written.href.replace(/\.js$/, '.ts'));
    if (!existsSync(written) && existsSync(source)) return { url: source.href, format: 'module', shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
  const filename = fileURLToPath(url);
  const { code } = await transform(await readFile(filename, 'utf8'), { ...OPTIONS, filename });
  return { format: 'module', source: code, shortCircuit: true };
}
