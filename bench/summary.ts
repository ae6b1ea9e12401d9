/** Turns measurements into medians, paired ratios and verdicts on the targets. */

import { LIBRARIES, type LibraryName } from './adapters/adapter.js';
import type { Measurement } from './runner.js';
import type { Figure, Scenario } from './scenario.js';
import { median } from './statistics.js';
import { type Target, targets } from './targets.js';

export const OURS: LibraryName = 'echomq';
export const PEERS = LIBRARIES.filter((library) => library !== OURS);

export interface Spread {
  median: number;
  min: number;
  max: number;
  rounds: number;
}

export interface Verdict {
  target: Target;
  /** The ratio, or the figure itself where the target has no peer. */
  value: number;
  met: boolean;
  aimMet?: boolean;
}

export interface FigureSummary {
  figure: Figure;
  /** A library that was not measured, or failed, is absent. */
  spreads: Partial<Record<LibraryName, Spread>>;
  /** Ours divided by the peer's in the same round; of these the median. */
  ratios: Partial<Record<LibraryName, Spread>>;
  verdicts: Verdict[];
}

export interface ScenarioSummary {
  scenario: Scenario;
  figures: FigureSummary[];
  failures: Measurement[];
}

export function summarise(scenarios: readonly Scenario[], measurements: readonly Measurement[]): ScenarioSummary[] {
  return scenarios.map((scenario) => {
    const own = measurements.filter((measurement) => measurement.scenario === scenario.name);
    return {
      scenario,
      figures: scenario.figures.map((figure) => summariseFigure(scenario, figure, own)),
      failures: own.filter(({ answer }) => answer.error !== undefined),
    };
  });
}

function summariseFigure(scenario: Scenario, figure: Figure, measurements: readonly Measurement[]): FigureSummary {
  const byRound = new Map<LibraryName, Map<number, number>>();
  for (const { library, round, answer } of measurements) {
    const value = answer.values?.[figure.key];
    if (value === undefined) continue;
    if (!byRound.has(library)) byRound.set(library, new Map());
    byRound.get(library)!.set(round, value);
  }
  const spreads: FigureSummary['spreads'] = {};
  for (const [library, values] of byRound) spreads[library] = spread([...values.values()]);
  const ratios: FigureSummary['ratios'] = {};
  for (const peer of figure.incomparable ? [] : PEERS) {
    const pairs = [...(byRound.get(OURS) ?? [])].flatMap(([round, ours]) => {
      const theirs = byRound.get(peer)?.get(round);
      return theirs ? [ours / theirs] : [];
    });
    if (pairs.length > 0) ratios[peer] = spread(pairs);
  }
  const verdicts = targets
    .filter((target) => target.scenario === scenario.name && target.figure === figure.key)
    .flatMap((target) => {
      const value = (target.against ? ratios[target.against] : spreads[OURS])?.median;
      return value === undefined ? [] : [judge(target, value)];
    });
  return { figure, spreads, ratios, verdicts };
}

function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), rounds: values.length };
}

function judge(target: Target, value: number): Verdict {
  const reaches = (limit: number): boolean => ('atLeast' in target ? value >= limit : value <= limit);
  return {
    target,
    value,
    met: reaches('atLeast' in target ? target.atLeast : target.atMost),
    ...(target.aim === undefined ? {} : { aimMet: reaches(target.aim) }),
  };
}
