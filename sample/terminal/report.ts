import { stripVTControlCharacters } from 'node:util';
import type { Report } from '../audits/report.js';

/** An audit's report as text. */
export function reportText(report: Report): string {
  const rows: [string, string][] = [
    ['files', number(report.files)],
    ['words', number(report.words)],
    ['headings', number(report.headings)],
    ['links', number(report.links)],
    ['broken links', number(report.brokenLinks)],
    ['dead jobs', `${number(report.dead)} (${number(report.retries)} retries)`],
    ['speed', `${number(report.jobsPerSecond)} jobs/s, ${report.seconds} s`],
  ];
  return [
    `Audit of ${report.dir}`,
    ...rows.map(([name, value]) => `  ${name.padEnd(14)}${value}`),
    ...examples('Broken links, for example:', report.brokenExamples),
    ...examples('Dead jobs, for example:', report.deadExamples),
  ].join('\n');
}

function examples(title: string, lines: string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${printable(line)}`)];
}

/** File names and links are written by strangers: they must not drive the terminal. */
function printable(line: string): string {
  return stripVTControlCharacters(line).replace(/\p{Cc}/gu, '?');
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
