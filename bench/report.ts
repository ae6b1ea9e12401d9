/** The table, for a terminal and as Markdown. */

import { LIBRARIES, type LibraryName } from './adapters/adapter.js';
import type { Figure } from './scenario.js';
import { type FigureSummary, PEERS, type ScenarioSummary, type Spread, type Verdict } from './summary.js';

/** What was measured on, as label and text. */
export type Machine = Record<string, string>;

interface Row {
  cells: string[];
  /** Begins a scenario. */
  heading?: true;
}

export function textReport(machine: Machine, summaries: readonly ScenarioSummary[]): string {
  const width = Math.max(...Object.keys(machine).map((label) => label.length));
  const about = Object.entries(machine).map(([label, text]) => `${label.padEnd(width)}  ${text}`);
  const [head, ...rows] = table(summaries);
  const widths = head!.cells.map((_, column) =>
    Math.max(...[head!, ...rows].filter((row) => !row.heading).map((row) => row.cells[column]!.length)),
  );
  const line = (row: Row): string =>
    row.heading
      ? `\n${row.cells[0]}`
      : row.cells
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join('  ')
          .trimEnd();
  return [...about, '', line(head!), ...rows.map(line), '', ...closing(summaries)].join('\n');
}

export function markdownReport(title: string, machine: Machine, summaries: readonly ScenarioSummary[]): string {
  const about = Object.entries(machine).map(([label, text]) => `- ${label}: ${text}`);
  const [head, ...rows] = table(summaries);
  const line = (cells: string[]): string => `| ${cells.join(' | ')} |`;
  const body = rows.map((row) => {
    const cells = row.heading ? [`**${row.cells[0]}**`, ...head!.cells.slice(1).map(() => '')] : row.cells;
    return line(cells.map((cell) => cell.trim()));
  });
  const ruler = line(
    head!.cells.map((_, column) => (column === 0 || column === head!.cells.length - 1 ? '---' : '---:')),
  );
  return [`# ${title}`, '', ...about, '', line(head!.cells), ruler, ...body, '', ...closing(summaries), ''].join('\n');
}

function table(summaries: readonly ScenarioSummary[]): Row[] {
  const rows: Row[] = [{ cells: ['', ...LIBRARIES, ...PEERS.map((peer) => `to ${peer}`), 'target'] }];
  for (const { scenario, figures } of summaries) {
    rows.push({ cells: [`${scenario.title} (${scenario.name})`], heading: true });
    for (const summary of figures) rows.push({ cells: figureCells(summary) });
  }
  return rows;
}

function figureCells({ figure, spreads, ratios, verdicts }: FigureSummary): string[] {
  return [
    `  ${figure.label}`,
    ...LIBRARIES.map((library) => spreadCell(spreads[library], figure)),
    ...PEERS.map((peer) => ratioCell(ratios[peer])),
    verdicts.map((verdict) => verdictText(verdict, figure)).join('; '),
  ];
}

function spreadCell(spread: Spread | undefined, figure: Figure): string {
  if (!spread) return '-';
  const text = quantity(spread.median, figure);
  return spread.rounds === 1 ? text : `${text} [${number(spread.min, figure)}..${number(spread.max, figure)}]`;
}

function ratioCell(ratio: Spread | undefined): string {
  if (!ratio) return '-';
  const range = ratio.rounds === 1 ? '' : ` [${times(ratio.min)}..${times(ratio.max)}]`;
  return `${times(ratio.median)}x${range}`;
}

function verdictText({ target, met, aimMet }: Verdict, figure: Figure): string {
  const limit = (value: number): string => (target.against ? `${value}x` : quantity(value, figure));
  const required = 'atLeast' in target ? `>= ${limit(target.atLeast)}` : `<= ${limit(target.atMost)}`;
  const against = target.against ? ` ${target.against}` : '';
  const aim = target.aim === undefined ? '' : ` (aim ${limit(target.aim)}: ${aimMet ? 'met' : 'not met'})`;
  return `${required}${against}: ${met ? 'met' : 'NOT MET'}${aim}`;
}

function closing(summaries: readonly ScenarioSummary[]): string[] {
  const verdicts = summaries.flatMap(({ figures }) => figures.flatMap((figure) => figure.verdicts));
  const failures = summaries.flatMap(({ failures }) => failures);
  return [
    'Medians of the rounds, [least..most]; ratios are ours divided by the peer of the same round.',
    `Targets met: ${verdicts.filter(({ met }) => met).length} of ${verdicts.length}.`,
    ...(failures.length === 0 ? [] : ['', `Failed measurements: ${failures.length}`]),
    ...failures.map(
      ({ scenario, library, round, answer }) =>
        `- ${scenario}, ${library}, round ${round + 1}: ${answer.error?.split('\n')[0]}`,
    ),
  ];
}

/** One line about one measurement, for the progress display. */
export function shortLine(values: Record<string, number>, figures: readonly Figure[]): string {
  return figures
    .flatMap((figure) => (values[figure.key] === undefined ? [] : [quantity(values[figure.key]!, figure)]))
    .join(', ');
}

const UNITS: Record<Figure['unit'], string> = {
  'jobs/s': '/s',
  'flows/s': '/s',
  us: ' us',
  ms: ' ms',
  s: ' s',
  bytes: ' B',
  connections: '',
  'commands/s': '/s',
};

function quantity(value: number, figure: Figure): string {
  return number(value, figure) + UNITS[figure.unit];
}

function number(value: number, { unit }: Figure): string {
  const digits = { 'jobs/s': 0, 'flows/s': 0, us: 1, ms: 2, s: 1, bytes: 0, connections: 0, 'commands/s': 2 }[unit];
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function times(ratio: number): string {
  return ratio.toFixed(ratio < 10 ? 2 : 1);
}

export function libraryLabel(library: LibraryName, version: string): string {
  return `${library} ${version}`;
}
