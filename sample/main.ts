import 'reflect-metadata';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { findServer } from '../scripts/server/index.js';
import { AppModule } from './app.module.js';
import { Audits } from './audits/audits.js';
import { findTree } from './documents/tree.js';
import { Settings } from './settings.js';
import { type Arguments, readArguments } from './terminal/arguments.js';
import { showProgress } from './terminal/progress.js';
import { reportText } from './terminal/report.js';

/** `npm run sample`: boots the app on a Redis server, audits a tree and ends; with `--serve` it stays and listens. */
async function main(args: Arguments): Promise<void> {
  const root = await findTree(args.dir, args.dir);
  const redis = await findServer(); // yours would be given its URL: this starts a private server where none is given
  try {
    const app = await NestFactory.create(AppModule.with(new Settings(redis.url, root)), {
      logger: args.serve ? ['log', 'warn', 'error'] : ['error'], // the report tells of dead jobs
      abortOnError: false,
    });
    // On Ctrl-C and SIGTERM Nest closes the app: running handlers end, the others' jobs stay in the queue.
    app.enableShutdownHooks();
    try {
      if (args.serve) return await serve(app, args.port, root);
      await app.init();
      await auditOnce(app.get(Audits));
    } catch (error) {
      await app.close();
      throw error;
    }
    await app.close();
  } catch (error) {
    await redis.stop();
    throw error;
  }
  await redis.stop();
  // Nothing is left open, so the process ends by itself.
}

async function auditOnce(audits: Audits): Promise<void> {
  const { id, dir, files } = await audits.start('.');
  if (files === 0) throw new Error(`there is no Markdown file in ${dir}`);
  const report = audits.report(id);
  await Promise.all([report, showProgress({ files, outstanding: () => audits.outstanding(id), over: report })]);
  console.log(`\n${reportText(await report)}`);
}

async function serve(app: INestApplication, port: number, root: string): Promise<void> {
  await app.listen(port, 'localhost'); // only for this machine: there is no login
  const url = `http://localhost:${new URL(await app.getUrl()).port || 80}`;
  console.log(`
Listening on ${url}. A "dir" is taken from ${root}. Try:
  curl -X POST ${url}/audits -H 'content-type: application/json' -d '{"dir": "."}'
  curl ${url}/audits/<the id it answered>
Ctrl-C ends it.`);
}

main(readArguments(process.argv)).catch((error: Error) => {
  console.error(`sample: ${error.message}`);
  process.exitCode = 1;
});
