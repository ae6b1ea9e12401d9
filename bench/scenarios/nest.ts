/**
 * What Nest adds: no-op processing of jobs that wait already, at concurrency 100, by the engine alone and by handlers of a
 * Nest app: a plain one, one behind a guard, an interceptor and a pipe, and one whose class is made for every job. The clock
 * runs from the first handler's start to the last one's. All four in one process, in turn, with a consumer each.
 */

import {
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Consumers, EchoMq, EchoMqModule, type Job, JobData, OnJob, Processor } from 'nestjs-echomq';
import { type JobData as Data, jobDataRange, Tally } from '../payload.js';
import { type Bench, type Figure, type Scenario, within } from '../scenario.js';
import { BATCH } from './bulk.js';

const CONCURRENCY = 100;
const JOBS = 60_000;
const ways = {
  core: 'without Nest',
  plain: 'a plain handler',
  enhanced: 'with guard, interceptor and pipe',
  scoped: 'a request-scoped processor',
};
type Way = keyof typeof ways;

export const nest: Scenario = {
  name: 'nest',
  title: `No-op processing through Nest, concurrency ${CONCURRENCY}`,
  libraries: ['echomq'],
  figures: Object.entries(ways).map(
    ([key, label]): Figure => ({ key, label: `jobs per second, ${label}`, unit: 'jobs/s' }),
  ),
  measure: run,
};

let tally: Tally;
/** As the adapter's handler, an async function. */
const handle = async (data: unknown): Promise<void> => tally.mark(data as Data);

class Guard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

class Interceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle();
  }
}

class Pipe implements PipeTransform {
  transform(value: unknown): unknown {
    return value;
  }
}

@Processor('plain', { concurrency: CONCURRENCY })
class Plain {
  @OnJob()
  run({ data }: Job): Promise<void> {
    return handle(data);
  }
}

@Processor('enhanced', { concurrency: CONCURRENCY })
@UseGuards(Guard)
@UseInterceptors(Interceptor)
class Enhanced {
  @OnJob()
  run(@JobData(Pipe) data: unknown): Promise<void> {
    return handle(data);
  }
}

@Injectable({ scope: Scope.REQUEST })
@Processor('scoped', { concurrency: CONCURRENCY })
class Scoped {
  @OnJob()
  run({ data }: Job): Promise<void> {
    return handle(data);
  }
}

class BenchModule {}

async function run(bench: Bench): Promise<Record<string, number>> {
  const app = await NestFactory.createApplicationContext(
    {
      module: BenchModule,
      imports: [EchoMqModule.forRoot({ connection: bench.url, autoStart: false })],
      providers: [Plain, Enhanced, Scoped],
    },
    { logger: false, abortOnError: false },
  );
  const echo = app.get(EchoMq);
  const consumers = app.get(Consumers);
  const start = (way: Way): void => {
    if (way !== 'core') consumers.start(way);
    else echo.consume(way, { concurrency: CONCURRENCY }, ({ data }) => handle(data));
  };
  const jobs = bench.quick ? JOBS / 10 : JOBS;
  const rates: Record<string, number> = {};
  for (const way of Object.keys(ways) as Way[]) {
    // The warm-up runs in the same consumer just before: no handler is the first of its kind when it counts.
    rates[way] = await timed(echo, way, jobs / 4, jobs, () => start(way));
  }
  await app.close();
  return rates;
}

async function timed(echo: EchoMq, queue: string, warmUp: number, jobs: number, start: () => void): Promise<number> {
  const enqueue = async (from: number, count: number): Promise<Tally> => {
    await echo.jobs.pause(queue);
    tally = new Tally(from, count);
    for (let sent = 0; sent < count; sent += BATCH) {
      const data = jobDataRange(from + sent, Math.min(BATCH, count - sent));
      await echo.jobs.enqueueMany(
        queue,
        data.map((one) => ({ name: 'job', data: one })),
      );
    }
    return tally;
  };
  const warm = await enqueue(0, warmUp);
  start();
  await echo.jobs.resume(queue);
  await warm.done;
  const counted = await enqueue(warmUp, jobs);
  await echo.jobs.resume(queue);
  await within(90_000, `the jobs of ${queue}`, counted.done);
  return counted.jobsPerSecond;
}
