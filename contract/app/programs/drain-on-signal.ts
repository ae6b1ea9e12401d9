import 'reflect-metadata';
import { writeSync } from 'node:fs';
import { EchoMqModule, Jobs } from 'nestjs-echomq';
import { DATABASES } from '../drain/databases.js';
import { KINDS, type KindName } from '../drain/kinds.js';
import { type PlaceName, rootWith } from '../drain/places.js';
import { Queries } from '../drain/queries.js';
import { stage, turns } from '../drain/stage.js';

/** Runs a job, gets SIGTERM meanwhile, and prints what happens then. Nest ends the process when all hooks are through. */
async function main(kind: KindName, place: PlaceName): Promise<void> {
  // Synchronous, because nothing may be lost when the signal ends the process.
  stage.onLine = (line) => writeSync(1, `${line}\n`);
  const echo = EchoMqModule.forRoot({ connection: process.env.ECHOMQ_URL ?? '', prefix: process.env.CONTRACT_PREFIX });
  const app = await KINDS[kind](rootWith(place, DATABASES, Queries, echo));
  app.enableShutdownHooks();
  process.once('SIGTERM', () => {
    // Hooks that do not wait for the handler are long through by then.
    turns().then(stage.handlerMayEnd.open);
  });
  await app.get(Jobs).enqueue('queries', 'query');
  await stage.handlerRuns.opened;
  stage.write('ready');
}

main(process.argv[2] as KindName, process.argv[3] as PlaceName).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
