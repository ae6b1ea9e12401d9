// Installs the packed library into fresh apps, one per version of Nest, compiles them and runs their specs on a real server.
// `node scripts/contract.mjs [10] [11] [12] [--keep] [--package <archive>]`; contract/README.md says more.
import './ts-loader/register.mjs';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { findBinary, findServer } = await import('./server/index.ts');
const { LifeLine } = await import('./server/life-line.ts');

const root = fileURLToPath(new URL('..', import.meta.url));
const contract = join(root, 'contract');
const VERSIONS = ['10', '11', '12'];
/** The repository's own, which the specs use under this name. */
const BORROWED = {
  'scripts/server/until.ts': 'test/support/until.ts',
  'test/support/leaks.ts': 'test/support/leaks.ts',
};
/** Of the repository's specs of Nest those that start programs from the sources. */
const LEFT_OUT = ['floating.spec.ts', 'validation.spec.ts'];
/** And on one version: terminus 10 must be told by a throw, which that spec's endpoint does not; the app's own does. */
const LEFT_OUT_ON = { 10: ['health.spec.ts'] };
/** Longest time of one step, in ms. They take a minute at most, but networks are slow at times, and machines busy. */
const STEP_MS = 10 * 60_000;

const { values: options, positionals } = readArguments();
const versions = positionals.length > 0 ? positionals : VERSIONS;
const keptPlace = join(tmpdir(), 'nestjs-echomq-contract');
const place = options.keep ? keptPlace : await mkdtemp(join(tmpdir(), 'nestjs-echomq-contract-'));
await mkdir(place, { recursive: true });
// However this process ends, Ctrl-C included, the folder goes.
const lifeLine = options.keep ? undefined : new LifeLine(place);

/** The process group of the step that runs. */
let group;
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    if (group !== undefined) process.kill(-group, 'SIGKILL');
    process.exit(1);
  });
}

const failed = [];
try {
  const archive = options.package ? resolve(options.package) : await pack();
  const server = await findServer();
  try {
    for (const version of versions) if (!(await holds(version, archive, server))) failed.push(version);
  } finally {
    await server.stop();
  }
} finally {
  if (!options.keep) await rm(place, { recursive: true, force: true });
  lifeLine?.end();
}
if (options.keep) console.log(`kept: ${place}`);
process.exitCode = failed.length > 0 ? 1 : 0;

function readArguments() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: { keep: { type: 'boolean', default: false }, package: { type: 'string' } },
    });
    const unknown = parsed.positionals.find((version) => !VERSIONS.includes(version));
    if (unknown !== undefined) throw new Error(`there is no contract for Nest ${unknown}`);
    return parsed;
  } catch (error) {
    console.error(
      `${error.message}\nusage: node scripts/contract.mjs [${VERSIONS.join('] [')}] [--keep] [--package <archive>]`,
    );
    process.exit(2);
  }
}

/** Builds the library and packs it as it would be published. */
async function pack() {
  const folder = await mkdtemp(join(place, 'package-'));
  await run('npm', ['pack', '--pack-destination', folder], { cwd: root });
  const [file] = await readdir(folder);
  return join(folder, file);
}

/** True when the version's app installs, compiles and passes; says so in a line, or with all that was printed. */
async function holds(version, archive, server) {
  const app = join(place, `nest-${version}`);
  const started = performance.now();
  const seconds = () => `${((performance.now() - started) / 1000).toFixed(0)} s`;
  let step = 'install';
  try {
    await layOut(version, app);
    await install(app, archive);
    const installed = seconds();
    step = 'compile';
    await run('npm', ['run', 'build'], { cwd: app });
    step = 'specs';
    const results = join(app, 'results.json');
    // The second tells the repository's own specs: start a server each, or share this one.
    const env = { ECHOMQ_URL: server.url, ECHOMQ_TEST_FOUND: findBinary() ? 'process' : server.url };
    await run('npm', ['test', '--', '--json', `--outputFile=${results}`], { cwd: app, env });
    const { numPassedTests, numPendingTests, numTotalTestSuites } = JSON.parse(await readFile(results, 'utf8'));
    const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : '';
    const counts = `${numPassedTests} tests in ${numTotalTestSuites} files passed${skipped}`;
    console.log(`Nest ${await versionOf(app, '@nestjs/core')}: ${counts}; ${seconds()}, of which install ${installed}`);
    return true;
  } catch (error) {
    console.error(`Nest ${version}: ${step} FAILED after ${seconds()}\n${error.message}\n`);
    return false;
  }
}

/** The app's sources with the version's settings. What npm installed into a kept folder stays. */
async function layOut(version, app) {
  await mkdir(app, { recursive: true });
  for (const name of await readdir(app)) {
    if (!['node_modules', 'package.json'].includes(name)) await rm(join(app, name), { recursive: true });
  }
  await cp(join(contract, 'app'), app, { recursive: true });
  for (const [from, to] of Object.entries(BORROWED)) await copyFile(join(root, from), join(app, to));
  await layOutRepository(version, join(app, 'repository'));
  const settings = join(contract, `nest-${version}`);
  for (const name of await readdir(settings)) await copyFile(join(settings, name), join(app, name));
  const { type } = JSON.parse(await readFile(join(app, 'package.json'), 'utf8'));
  if (type !== 'module') await dropExtensions(app);
}

/** The repository's own specs of Nest with what they stand on, and in place of the sources the installed library. */
async function layOutRepository(version, place) {
  for (const folder of ['scripts/server', 'test/support', 'test/nest']) {
    await cp(join(root, folder), join(place, folder), { recursive: true });
  }
  for (const spec of [...LEFT_OUT, ...(LEFT_OUT_ON[version] ?? [])]) await rm(join(place, 'test/nest', spec));
  const { type } = JSON.parse(await readFile(join(contract, `nest-${version}`, 'package.json'), 'utf8'));
  const built = `node_modules/nestjs-echomq/dist/${type === 'module' ? 'esm' : 'cjs'}`;
  for (const file of await readdir(join(root, 'lib'), { recursive: true })) {
    if (!file.endsWith('.ts')) continue;
    const source = join(place, 'lib', file);
    await mkdir(dirname(source), { recursive: true });
    const target = relative(dirname(source), join(place, '..', built, file));
    await writeFile(source, `export * from '${target.replace(/\.ts$/, '.js')}';\n`);
  }
}

/**
 * A CommonJS app imports './x', not './x.js'. A jest mapper would do it too, but would also rewrite the imports inside the
 * library, and so hide a wrong one.
 */
async function dropExtensions(app) {
  for (const file of await readdir(app, { recursive: true })) {
    if (!file.endsWith('.ts') || file.startsWith('node_modules')) continue;
    const path = join(app, file);
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replace(/((?: from |\bimport\()'\.{1,2}\/[^']*)\.js'/g, "$1'"));
  }
}

/** Strict: a conflict of peers anywhere is an error, not a warning. */
async function install(app, archive) {
  const quiet = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
  await run('npm', ['install', '--strict-peer-deps', ...quiet, archive], { cwd: app });
  await run('npm', ['ls', '--all'], { cwd: app });
  const { dependencies } = JSON.parse(await readFile(join(app, 'package.json'), 'utf8'));
  for (const [name, wanted] of Object.entries(dependencies)) {
    const found = await versionOf(app, name);
    if (/^\d/.test(wanted) && found !== wanted) throw new Error(`${name} is ${found}, not ${wanted}`);
  }
  if (existsSync(join(app, 'node_modules/nestjs-echomq/node_modules'))) {
    throw new Error('the library brought a copy of its own of something the app has');
  }
}

async function versionOf(app, name) {
  return JSON.parse(await readFile(join(app, 'node_modules', name, 'package.json'), 'utf8')).version;
}

/** Runs a program to its end. @throws Error with all it printed, when it fails or takes too long */
function run(command, args, { cwd, env }) {
  return new Promise((done, fail) => {
    // A group of its own, because npm does not hand on the signal that ends it to what it runs.
    const settings = { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true };
    const child = spawn(command, args, settings);
    group = child.pid;
    const limit = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), STEP_MS);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.once('error', fail);
    child.once('close', (code, signal) => {
      clearTimeout(limit);
      group = undefined;
      if (code === 0) done(output);
      else fail(new Error(`${command} ${args.join(' ')}: ended with ${signal ?? code}\n${output}`));
    });
  });
}
