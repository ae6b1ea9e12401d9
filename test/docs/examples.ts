import { dirname, join } from 'node:path';
import ts from 'typescript';
import { type Page, ROOT } from './pages.js';

/** One fenced `ts` block. */
export interface Example {
  readonly page: string;
  /** Line of the page on which the code begins, from 1. */
  readonly line: number;
  readonly code: string;
  /** The file of an app that it is: a first line `// src/app.module.ts` says so. Files of a page import each other. */
  readonly file?: string | undefined;
}

/** In scope of a block that imports nothing: a fragment of an app that has these. */
const FRAGMENT_SCOPE = [
  "import { Discard, EchoMq, EchoMqModule, Job, Jobs, Consumers, Flows, OnJob, Processor, Snooze } from 'nestjs-echomq';",
  "import type { INestApplication } from '@nestjs/common';",
  "import type { TestKit } from 'nestjs-echomq/testing';",
  'declare const jobs: Jobs, flows: Flows, echo: EchoMq, consumers: Consumers, app: INestApplication, kit: TestKit;',
].join(' ');

/** What is not an example stays as it is from one check to the next. */
const parsed = new Map<string, ts.SourceFile | undefined>();

export function examplesOf({ path, text }: Page): Example[] {
  const examples: Example[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    if (!/^```ts\b/.test(lines[at]!)) continue;
    const end = lines.indexOf('```', at);
    if (end < 0) throw new Error(`${path}:${at + 1}: this block does not end`);
    const file = /^\/\/ (\S+\.ts)$/.exec(lines[at + 1]!)?.[1];
    examples.push({ page: path, line: at + 2, code: lines.slice(at + 1, end).join('\n'), file });
    at = end;
  }
  return examples;
}

/** What the compiler says against the examples, as `page:line: message`; empty when all is well. */
export function faultsOf(examples: readonly Example[]): string[] {
  const sources = new Map(examples.map((example, i) => [fileOf(example, i), { example, text: moduleOf(example) }]));
  const options = compilerOptions();
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile, directoryExists } = host;
  const folders = new Set([...sources.keys()].map(dirname));
  host.directoryExists = (folder) => folders.has(folder) || directoryExists!.call(host, folder);
  host.fileExists = (file) => sources.has(file) || fileExists.call(host, file);
  host.readFile = (file) => sources.get(file)?.text ?? readFile.call(host, file);
  host.getSourceFile = (file, target, ...rest) => {
    const source = sources.get(file);
    if (source) return ts.createSourceFile(file, source.text, target, true);
    if (!parsed.has(file)) parsed.set(file, getSourceFile.call(host, file, target, ...rest));
    return parsed.get(file);
  };
  const program = ts.createProgram([...sources.keys()], options, host);
  const faults = [...program.getOptionsDiagnostics()].map((fault) => `compiler: ${messageOf(fault)}`);
  for (const [file, { example }] of sources) {
    const source = program.getSourceFile(file)!;
    for (const fault of [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]) {
      const { line } = source.getLineAndCharacterOfPosition(fault.start ?? 0);
      faults.push(`${example.page}:${line + 1}: ${messageOf(fault)}`);
    }
  }
  return faults;
}

/** A file of its own in the root, so that imports are found as a user's would be; or in a folder of its page's. */
function fileOf({ page, line, file }: Example, index: number): string {
  const name = page.replace(/\W/g, '-');
  return file === undefined ? join(ROOT, `${name}-${line}-${index}.example.ts`) : join(ROOT, name, file);
}

/** Blank lines in front: a line of the file is then the same line of the page. */
function moduleOf({ code, line }: Example): string {
  const scope = /^import\b/m.test(code) ? '' : FRAGMENT_SCOPE;
  return `${scope}${'\n'.repeat(line - 1)}${code}\nexport {};\n`;
}

function compilerOptions(): ts.CompilerOptions {
  const { config, error } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  if (error) throw new Error(messageOf(error));
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, ROOT);
  const paths = {
    'nestjs-echomq': [join(ROOT, 'lib/index.ts')],
    'nestjs-echomq/core': [join(ROOT, 'lib/core.ts')],
    'nestjs-echomq/testing': [join(ROOT, 'lib/testing.ts')],
  };
  return { ...options, paths, noEmit: true, skipLibCheck: true };
}

function messageOf({ messageText }: ts.Diagnostic): string {
  return ts.flattenDiagnosticMessageText(messageText, '\n  ');
}
