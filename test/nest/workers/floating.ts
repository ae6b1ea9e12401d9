import { UseGuards, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { of, throwError } from 'rxjs';
import { Consumers, EchoMqModule, JobRef, Jobs, OnJob, Processor } from '../../../lib/index.js';

/** An app whose handlers leave promises behind that reject when they have returned. It survives that, as its own policy says. */
const [url] = process.argv.slice(2) as [string];

const say = (type: string, fields: object = {}) => process.send?.({ type, ...fields });
process.on('unhandledRejection', (error: Error) => say('unhandled', { text: error.message }));

const floating = async (what: string): Promise<never> => {
  await new Promise((next) => setImmediate(next));
  throw new Error(what);
};

@Processor('q', { concurrency: 10 })
class Floating {
  @OnJob('plain')
  plain(): string {
    void floating('plain');
    return 'done';
  }

  @OnJob('async')
  async async(): Promise<string> {
    void floating('async');
    return 'done';
  }

  @OnJob('enhanced')
  @UseGuards({ canActivate: () => true })
  @UseInterceptors({ intercept: (_, next) => next.handle() })
  enhanced(@JobRef() _job: unknown): unknown {
    void floating('enhanced');
    return of('done');
  }

  @OnJob('fails')
  fails(): unknown {
    void floating('fails');
    return throwError(() => new Error('by itself'));
  }
}

const app = await NestFactory.createApplicationContext(
  { module: class {}, imports: [EchoMqModule.forRoot({ connection: url })], providers: [Floating] },
  { logger: false, abortOnError: false },
);
app
  .get(Consumers)
  .of('q')
  .on('completed', ({ name }) => say('completed', { name }))
  .on('failed', ({ name }, error, outcome) => say('failed', { name, outcome, text: (error as Error).message }));
process.on('message', async ({ names }: { type: string; names?: string[] }) => {
  if (names)
    return void (await app.get(Jobs).enqueueMany(
      'q',
      names.map((name) => ({ name })),
    ));
  await app.close();
  say('closed');
  process.disconnect();
});
say('ready');
