import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { type Example, faultsOf } from '../docs/examples.js';
import { ROOT } from '../docs/pages.js';

const FOLDER = 'test/types';
const EXPECTED = /^\s*\/\/ @ts-expect-error.*\n/gm;

const files: Example[] = readdirSync(join(ROOT, FOLDER))
  .filter((file) => /^[a-z]+\.ts$/.test(file))
  .map((file) => ({ page: `${FOLDER}/${file}`, line: 1, code: readFileSync(join(ROOT, FOLDER, file), 'utf8') }));

/** Written as a user writes it; the compiler is the test. */
describe("the compiler, on a user's code,", () => {
  it('accepts what is right, and refuses each line that is marked as wrong', () => {
    expect(files.map(({ page }) => page)).toEqual(
      [
        'batches',
        'bus',
        'consume',
        'enqueue',
        'flows',
        'options',
        'processors',
        'queues',
        'schedules',
        'undefined',
      ].map((name) => `${FOLDER}/${name}.ts`),
    );
    expect(faultsOf(files)).toEqual([]);
  });

  it('would be heard: without their marks, all the wrong lines are faults', () => {
    const unmarked = files.map((file) => ({ ...file, code: file.code.replace(EXPECTED, '') }));
    const marks = files.flatMap(({ code }) => code.match(EXPECTED) ?? []);
    expect(marks.length).toBeGreaterThan(40);
    const lines = new Set(faultsOf(unmarked).map((fault) => /^[^:]+:\d+/.exec(fault)?.[0]));
    expect(lines.size).toBe(marks.length);
  });

  it('would be heard: a mark on a right line, and a type that is another one, are faults', () => {
    const code = [
      "import { expectTypeOf } from 'expect-type';",
      "import { type DataOf, defineQueue, type Jobs } from 'nestjs-echomq';",
      'declare const jobs: Jobs;',
      "const Mail = defineQueue<{ welcome: { to: string } }>('mail');",
      '// @ts-expect-error nothing is wrong here',
      "jobs.enqueue(Mail, 'welcome', { to: 'Ada' });",
      "expectTypeOf<DataOf<typeof Mail, 'welcome'>>().toEqualTypeOf<{ to: number }>();",
    ].join('\n');
    expect(faultsOf([{ page: 'wrong.ts', line: 1, code }])).toEqual([
      expect.stringMatching(/^wrong\.ts:5: Unused '@ts-expect-error' directive/),
      expect.stringMatching(/^wrong\.ts:7: Type '\{ to: number; }' does not satisfy the constraint/),
    ]);
  });
});
