/** `npm run bench`: reads the command line, starts a server, runs the scenarios, prints and keeps the report. */

import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { cpus, release, totalmem, type } from 'node:os';
import { dirname, join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { findServer, type ServerHandle } from '../scripts/server/index.js';
import { LIBRARIES, type LibraryName } from './adapters/adapter.js';
import { type Machine, markdownReport, shortLine, textReport } from './report.js';
import { type Measurement, run } from './runner.js';
import type { Scenario } from './scenario.js';
import { scenarios } from './scenarios/index.js';
import { control, keyCount, serverVersion } from './server.js';
import { summarise } from './summary.js';

/** As commander gives them. */
interface GivenOptions {
  only?: Scenario[];
  libraries?: LibraryName[];
  rounds?: number;
  quick: boolean;
  json?: string;
  save: boolean;
  flush: boolean;
}

type Options = GivenOptions & Required<Pick<GivenOptions, 'only' | 'libraries' | 'rounds'>>;

const require = createRequire(import.meta.url);

const program = new Command('bench')
  .description('Measures nestjs-echomq beside BullMQ and Bee-Queue on one server, interleaved.')
  .option('--only <names>', `only these scenarios: ${scenarios.map(({ name }) => name).join(', ')}`, parseOnly)
  .option('--libraries <names>', `only these libraries: ${LIBRARIES.join(', ')}`, parseLibraries)
  .option('--rounds <n>', 'measurements of each library in each scenario (default: 5, with --quick 1)', parseRounds)
  .option('--quick', 'few jobs and one round: proves that it runs, the figures mean little', false)
  .option('--json <file>', 'write every single measurement to this file')
  .option('--save', 'write the report to bench/results/<date>.md', false)
  .option(
    '--flush',
    'a server named by ECHOMQ_URL may be emptied (FLUSHALL, again and again) though it holds keys',
    false,
  )
  .action(main);

await program.parseAsync();

async function main(given: GivenOptions): Promise<void> {
  const options: Options = {
    ...given,
    only: given.only ?? [...scenarios],
    libraries: given.libraries ?? [...LIBRARIES],
    rounds: given.rounds ?? (given.quick ? 1 : 5),
  };
  const server = await findServer();
  try {
    if (!options.flush) await refuseToFlush(server);
    const machine = await describeMachine(server.url, options);
    const started = performance.now();
    const measurements = await run({
      scenarios: options.only,
      libraries: options.libraries,
      rounds: options.rounds,
      quick: options.quick,
      url: server.url,
      onMeasured: printProgress,
    });
    machine.took = `${Math.round((performance.now() - started) / 1000)} s`;
    await report(machine, measurements, options);
  } finally {
    await server.stop();
  }
}

/** Every measurement begins with FLUSHALL; a server that somebody else filled is not ours to empty. */
async function refuseToFlush({ url, kind }: ServerHandle): Promise<void> {
  if (kind !== 'url') return;
  const redis = control(url);
  const keys = await keyCount(redis);
  redis.disconnect();
  if (keys > 0)
    program.error(`The server of ECHOMQ_URL holds ${keys} keys and would be emptied. Allow it with --flush.`);
}

async function report(machine: Machine, measurements: readonly Measurement[], options: Options): Promise<void> {
  const summaries = summarise(options.only, measurements);
  console.log(`\n${textReport(machine, summaries)}`);
  if (options.json) await writeFile(options.json, `${JSON.stringify({ machine, measurements }, null, 2)}\n`);
  if (options.save) {
    const date = new Date().toISOString().slice(0, 10);
    const folder = join(dirname(require.resolve('nestjs-echomq/package.json')), 'bench', 'results');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `${date}.md`), markdownReport(`Benchmark of ${date}`, machine, summaries));
    console.log(`Saved as bench/results/${date}.md`);
  }
  // A target that is missed is a result; a measurement that failed is none.
  if (measurements.some(({ answer }) => answer.error !== undefined)) process.exitCode = 1;
}

async function describeMachine(url: string, options: Options): Promise<Machine> {
  const redis = control(url);
  const server = await serverVersion(redis);
  redis.disconnect();
  const [cpu] = cpus();
  const rounds = options.quick ? `${options.rounds}, quick: few jobs, the figures mean little` : `${options.rounds}`;
  return {
    machine: `${cpu?.model.trim() ?? 'unknown CPU'}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release()}, Node ${process.versions.node}`,
    server,
    libraries: LIBRARIES.map((library) => `${library} ${versionOf(library)}`).join(', '),
    rounds,
  };
}

function versionOf(library: LibraryName): string {
  const packageName = library === 'echomq' ? 'nestjs-echomq' : library;
  const path = require.resolve(`${packageName}/package.json`);
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

function printProgress({ scenario, library, round, answer }: Measurement, done: number, total: number): void {
  const figures = scenarios.find(({ name }) => name === scenario)?.figures ?? [];
  const text = answer.values ? shortLine(answer.values, figures) : `FAILED: ${answer.error}`;
  const where = `[${String(done).padStart(String(total).length)}/${total}] ${scenario}, round ${round + 1}`;
  console.error(`${where.padEnd(42)} ${library.padEnd(10)} ${text}`);
}

function parseOnly(text: string): Scenario[] {
  return text.split(',').map((name) => {
    const scenario = scenarios.find((candidate) => candidate.name === name.trim());
    if (!scenario) throw new InvalidArgumentError(`No scenario is called '${name}'.`);
    return scenario;
  });
}

function parseLibraries(text: string): LibraryName[] {
  return text.split(',').map((name) => {
    const library = LIBRARIES.find((candidate) => candidate === name.trim());
    if (!library) throw new InvalidArgumentError(`No library is called '${name}'.`);
    return library;
  });
}

function parseRounds(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 999.');
  return Number(text);
}
