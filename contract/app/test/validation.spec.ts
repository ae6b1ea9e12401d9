import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { IsEmail } from 'class-validator';
import {
  defineQueue,
  dtoSchema,
  EchoArgumentError,
  EchoMqModule,
  JobData,
  type JobOf,
  Jobs,
  OnJob,
  Processor,
} from 'nestjs-echomq';
import { z } from 'zod';
import { moduleOf } from '../drain/places.js';
import { BOOTS, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';
import { until } from './support/until.js';

class Welcome {
  @IsEmail()
  to!: string;
}

const Letters = defineQueue('letters', {
  welcome: dtoSchema(Welcome),
  digest: z.object({ day: z.string().transform((text) => new Date(text)) }),
});

const got: unknown[] = [];

@Injectable()
@Processor(Letters)
class LetterProcessor {
  @OnJob(Letters, 'welcome')
  welcome(@JobData() data: Welcome): void {
    got.push(data);
  }

  @OnJob(Letters, 'digest')
  digest(job: JobOf<typeof Letters, 'digest'>): void {
    got.push(job.data.day);
  }
}

describe('a queue with schemas, of class-validator and of zod', () => {
  const server = useServer();
  const apps = useApps();
  guardLeaks();

  it('hands out what they make of the data, and refuses what does not fit', async () => {
    got.length = 0;
    const root = moduleOf({ imports: [EchoMqModule.forRoot(server.options())], providers: [LetterProcessor] });
    const jobs = apps.keep(await BOOTS['an HTTP app']!(root)).get(Jobs);
    await jobs.enqueue(Letters, 'welcome', { to: 'ada@example.com' });
    await jobs.enqueue(Letters, 'digest', { day: '2030-01-01' });
    await until(() => got.length === 2, { what: 'both jobs' });
    const [welcome, day] = got;
    expect(welcome).toBeInstanceOf(Welcome);
    expect(welcome).toEqual({ to: 'ada@example.com' });
    expect(day).toEqual(new Date('2030-01-01'));
    await expect(jobs.enqueue(Letters, 'welcome', { to: 'nowhere' })).rejects.toThrow(EchoArgumentError);
    // Past the check at the edge: it is buried, not retried.
    await jobs.enqueue('letters', 'welcome', { to: 'nowhere' });
    await until(async () => (await jobs.counts('letters')).dead === 1, { what: 'the invalid job to be dead' });
    expect(got).toHaveLength(2);
  });
});
