import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { ROOT, readPages } from './pages.js';

/** What people use of bullmq: options, classes, listeners' maps. */
const TYPES = [
  ...['QueueOptions', 'JobsOptions', 'WorkerOptions', 'RepeatOptions', 'DeduplicationOptions', 'BackoffOptions'],
  ...['AdvancedOptions', 'QueueEventsOptions', 'FlowJobBase', 'FlowOpts', 'NodeOpts', 'ObliterateOpts'],
  ...['Queue', 'Job', 'Worker', 'FlowProducer', 'QueueEventsProducer'],
  ...['QueueListener', 'WorkerListener', 'QueueEventsListener', 'FlowProducerListener'],
];
/** Emitter's own. */
const UNSAID = new Set(['on', 'once', 'off']);

describe('docs/migrating.md', () => {
  it('says of every option, method and event of bullmq what it is here, or that it is not', () => {
    const page = readPages().find(({ path }) => path === 'docs/migrating.md')!;
    const named = new Set(
      [...page.text.matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code!.match(/[\w-]+(?::[\w-]+)?/g) ?? []),
    );
    const members = membersOf(TYPES);
    expect(members.size).toBeGreaterThan(200);
    expect([...members].filter((member) => !named.has(member))).toEqual([]);
  });
});

/** Public members, also inherited ones, of types that bullmq exports. */
function membersOf(types: readonly string[]): Set<string> {
  const file = join(ROOT, 'all.example.ts');
  const text = types.map((type) => `export type { ${type} } from 'bullmq';`).join('\n');
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    skipLibCheck: true,
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (path) => path === file || fileExists.call(host, path);
  host.getSourceFile = (path, target, ...rest) =>
    path === file ? ts.createSourceFile(path, text, target, true) : getSourceFile.call(host, path, target, ...rest);
  const program = ts.createProgram([file], options, host);
  const checker = program.getTypeChecker();
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)!)!);
  const members = new Set<string>();
  for (const symbol of exported) {
    const target = checker.getAliasedSymbol(symbol);
    const properties = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(target));
    for (const property of properties) if (isBullmqs(property)) members.add(property.name);
  }
  return members;
}

/** Public, and declared by bullmq itself: not what an EventEmitter has. */
function isBullmqs(property: ts.Symbol): boolean {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  const declarations = property.declarations ?? [];
  return (
    !UNSAID.has(property.name) &&
    declarations.some((declaration) => declaration.getSourceFile().fileName.includes('/bullmq/')) &&
    declarations.every((declaration) => !(ts.getCombinedModifierFlags(declaration) & hidden))
  );
}
