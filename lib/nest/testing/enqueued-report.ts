import { inspect } from 'node:util';
import type { EnqueuedJob } from '../../engine/by-hand/enqueued.js';
import type { EnqueuedMatch } from './enqueued-match.js';
import { isAsymmetricMatcher } from './partial-match.js';

const MOST_JOBS = 20;
const LONGEST = 300;

/** What is expected, in one line: `{ name: 'welcome', data: { to: Any<String> } }`. */
export function describeMatch(match: EnqueuedMatch): string {
  const { queue, instance, toleranceMs, ...parts } = match;
  const given = Object.entries(parts).filter(([name, value]) => value !== undefined && name !== 'count');
  return oneLine(shown(Object.fromEntries(given)));
}

/** A line for each job, at most 20; those of the expected name first, since they may be what was meant. */
export function describeJobs(jobs: readonly EnqueuedJob[], name?: string): string {
  const sorted = [...jobs].sort((a, b) => Number(b.name === name) - Number(a.name === name));
  const lines = sorted.slice(0, MOST_JOBS).map((job) => `  ${describe(job)}`);
  if (jobs.length > MOST_JOBS) lines.push(`  ... and ${jobs.length - MOST_JOBS} more`);
  return lines.join('\n');
}

function describe({ state, name, data, opts, priority, lane, runAt, attempts, lastError }: EnqueuedJob): string {
  const more = [
    ...(runAt === undefined ? [] : [`at ${runAt.toISOString()}`]),
    ...(priority === 0 ? [] : [`priority ${priority}`]),
    ...(lane === undefined ? [] : [`lane ${oneLine(lane)}`]),
    ...(opts === undefined ? [] : [`opts ${oneLine(given(opts))}`]),
    ...(attempts === 0 ? [] : [`claimed ${attempts} ${attempts === 1 ? 'time' : 'times'}`]),
    ...(lastError === undefined ? [] : [`failed: ${lastError.split('\n', 1)[0]}`]),
  ];
  const line = `${state.padEnd(9)} ${inspect(name)} ${oneLine(data)}${more.map((text) => `, ${text}`).join('')}`;
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}...` : line;
}

function oneLine(value: unknown): string {
  return inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 5, maxArrayLength: 20, maxStringLength: 200 });
}

function given(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Matchers show themselves as their library would. */
function shown(value: unknown): unknown {
  if (isAsymmetricMatcher(value)) {
    const { toAsymmetricMatcher } = value as { toAsymmetricMatcher?: () => string };
    const text = typeof toAsymmetricMatcher === 'function' ? toAsymmetricMatcher.call(value) : String(value);
    return { [inspect.custom]: () => text };
  }
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shown(part)]));
}
