import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { Transform, Type } from 'class-transformer';
import { IsDate, IsEmail, IsInt, IsOptional, IsString, ValidateNested } from 'class-validator';
import { z } from 'zod';
import {
  Consumers,
  defineQueue,
  dtoSchema,
  EchoArgumentError,
  EchoDataError,
  InvalidData,
  type Job,
  JobData,
  type JobOf,
  Jobs,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, useApps } from './apps.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SECRET = 'hunter2';

class Address {
  @IsString()
  street!: string;

  @IsInt()
  @IsOptional()
  floor?: number;
}

class Welcome {
  @IsEmail()
  to!: string;

  @IsOptional()
  @IsDate()
  @Type(() => Date)
  since?: Date;

  @IsOptional()
  @ValidateNested({ each: true })
  @Type(() => Address)
  addresses?: Address[];

  greeting(): string {
    return `Welcome, ${this.to}`;
  }
}

const Mail = defineQueue('mail', { welcome: dtoSchema(Welcome), digest: z.object({ day: z.coerce.date<string>() }) });

let ran: unknown[] = [];

@Processor(Mail, { keepMs: 60_000 })
class MailProcessor {
  @OnJob(Mail, 'welcome')
  welcome(@JobData() data: Welcome): string {
    ran.push(data);
    return data.greeting();
  }

  @OnJob(Mail, 'digest')
  digest({ data }: JobOf<typeof Mail, 'digest'>): void {
    ran.push(data);
  }
}

describe('a processor of a queue with schemas', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('gets data as the schemas put it out: by the job, or as a parameter', async () => {
    ran = [];
    const app = await apps.boot({ providers: [MailProcessor] });
    const jobs = app.get(Jobs);
    const since = new Date(5);
    const { id } = await jobs.enqueue(Mail, 'welcome', {
      to: 'ada@example.com',
      since,
      addresses: [{ street: 'Here' }],
    });
    await jobs.enqueue(Mail, 'digest', { day: '2026-11-29' });
    await until(() => ran.length === 2, { what: 'both jobs' });
    const [welcome, digest] = ran as [Welcome, unknown];
    expect(welcome).toBeInstanceOf(Welcome);
    expect(welcome.since).toEqual(since);
    expect(welcome.addresses?.[0]).toBeInstanceOf(Address);
    expect(digest).toEqual({ day: new Date('2026-11-29') });
    const view = await until(
      async () => {
        const seen = await jobs.get(Mail, id);
        return seen?.state === 'done' ? seen : undefined;
      },
      { what: 'its completion' },
    );
    expect(String(view.result)).toBe('"Welcome, ada@example.com"');
  });

  it('is not called with data that does not fit: the job is dead at once, and its values stay out of row and log', async () => {
    ran = [];
    const app = await apps.boot({ providers: [MailProcessor] });
    const jobs = app.get(Jobs);
    const failed: unknown[] = [];
    app.get(Consumers).on('mail', 'failed', (_job, error) => failed.push(error));
    const { id } = await jobs.enqueue('mail', 'welcome', { to: SECRET, addresses: [{ street: 1 }] });
    await until(() => failed.length === 1, { what: 'the failure' });
    expect(failed[0]).toBeInstanceOf(InvalidData);
    expect((failed[0] as InvalidData).issues).toEqual([
      { path: ['to'], message: 'to must be an email' },
      { path: ['addresses', '0', 'street'], message: 'street must be a string' },
    ]);
    expect(ran).toEqual([]);
    expect(await jobs.get(Mail, id)).toMatchObject({
      state: 'dead',
      attempts: 1,
      lastError: 'invalid data: 2 issues at to, addresses[0].street',
    });
    expect(apps.log.warn).toEqual([
      `queue 'mail': job ${id} 'welcome' is dead after 1 attempt: invalid data: 2 issues at to, addresses[0].street`,
    ]);
  });

  it('does not judge jobs of a name that nobody here handles: they wait for a process that does', async () => {
    @Processor(Mail)
    class OnlyWelcomes {
      @OnJob(Mail, 'welcome')
      welcome(): void {}
    }
    const app = await apps.boot({ providers: [OnlyWelcomes] });
    const jobs = app.get(Jobs);
    await jobs.enqueue('mail', 'digest', { day: 'no day at all' });
    await until(async () => (await jobs.counts(Mail)).scheduled === 1, { what: 'it to be put back' });
    expect(await jobs.counts(Mail)).toMatchObject({ dead: 0 });
  });

  it('validates for a handler of every name too, and for one that was given the bare name', async () => {
    @Processor('mail')
    class Rest {
      @OnJob(Mail, 'welcome')
      welcome(): void {}

      @OnJob()
      rest({ name, data }: Job): void {
        ran.push([name, data]);
      }
    }
    ran = [];
    const app = await apps.boot({ providers: [Rest] });
    const jobs = app.get(Jobs);
    await jobs.enqueueMany('mail', [
      { name: 'digest', data: { day: '?' } },
      { name: 'other', data: 1 },
    ]);
    await jobs.enqueue(Mail, 'digest', { day: '2026-11-29' });
    await until(async () => ran.length === 2 && (await jobs.counts(Mail)).dead === 1, { what: 'all three' });
    expect(ran).toEqual([
      ['other', 1],
      ['digest', { day: new Date('2026-11-29') }],
    ]);
  });

  it('refuses at enqueue what it would bury', async () => {
    const app = await apps.boot({ providers: [MailProcessor] });
    const jobs = app.get(Jobs);
    const error = await failure(jobs.enqueue(Mail, 'welcome', { to: SECRET }));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error).toMatchObject({ issues: [{ path: ['to'], message: 'to must be an email' }] });
    expect(error.message).not.toContain(SECRET);
    expect(await server.client().exists('emq:{mail}:pending')).toBe(0);
  });
});

describe('the schema of a class', () => {
  const validate = (schema: { '~standard': { validate(value: unknown): unknown } }, value: unknown) =>
    schema['~standard'].validate(value);

  it('makes an instance; with transform: false it hands on what came', async () => {
    const plain = { to: 'ada@example.com' };
    const made = (await validate(dtoSchema(Welcome), plain)) as { value: Welcome };
    expect(made.value).toBeInstanceOf(Welcome);
    expect(made.value.greeting()).toBe('Welcome, ada@example.com');
    expect(await validate(dtoSchema(Welcome, { transform: false }), plain)).toEqual({ value: plain });
  });

  it('takes an option that is undefined for one that is left out', async () => {
    class Bare {}
    const given = { transform: undefined, forbidUnknownValues: undefined };
    expect(await validate(dtoSchema(Bare, given), {})).toEqual({ value: expect.any(Bare) });
  });

  it("takes the options of Nest's ValidationPipe", async () => {
    const data = { to: 'ada@example.com', role: 'admin' };
    const { value } = (await validate(dtoSchema(Welcome, { whitelist: true }), data)) as { value: Welcome };
    expect({ ...value }).toEqual({ to: 'ada@example.com' });
    expect(data).toHaveProperty('role');
    const strict = dtoSchema(Welcome, { whitelist: true, forbidNonWhitelisted: true });
    expect(await validate(strict, data)).toEqual({
      issues: [{ path: ['role'], message: 'property role should not exist' }],
    });
  });

  it('tells every broken rule of a property', async () => {
    class Both {
      @IsInt()
      @IsEmail()
      value!: unknown;
    }
    expect(await validate(dtoSchema(Both), {})).toEqual({
      issues: expect.arrayContaining([
        { path: ['value'], message: 'value must be an email' },
        { path: ['value'], message: 'value must be an integer number' },
      ]),
    });
  });

  it.each([[null], [[]], [[{ to: 'ada@example.com' }]], ['text'], [1], [true]])(
    'is not satisfied with %p, not even where nothing is required',
    async (value) => {
      class Optional {
        @IsOptional()
        @IsString()
        note?: string;
      }
      expect(await validate(dtoSchema(Optional), value)).toEqual({ issues: [{ message: 'must be an object' }] });
    },
  );

  it('takes data that was left out for an empty object', async () => {
    class Optional {
      @IsOptional()
      @IsString()
      note?: string;
    }
    expect(await validate(dtoSchema(Optional), undefined)).toEqual({ value: new Optional() });
    expect(await validate(dtoSchema(Welcome), undefined)).toMatchObject({ issues: [{ path: ['to'] }] });
  });

  it('hands on what a class throws by itself: that is no issue of the data', async () => {
    class Throws {
      @Transform(() => {
        throw new RangeError('no such thing');
      })
      value!: unknown;
    }
    await expect(validate(dtoSchema(Throws), { value: 1 })).rejects.toThrow(RangeError);
  });

  it.each([undefined, null, {}, 'Welcome', String, Number, Object, Array, Date, Buffer])(
    'is refused at once for %p',
    (type) => {
      expect(() => dtoSchema(type as never)).toThrow(EchoArgumentError);
      expect(() => dtoSchema(type as never)).toThrow(/dtoSchema takes a class with class-validator decorators, got/);
    },
  );

  it.each(['class-validator', 'class-transformer'])('ends the process when %s is not there, and says so', (gone) => {
    const hooks = `export const resolve = (name, context, next) => {
      if (name === '${gone}') throw Object.assign(new Error('not found'), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(name, context);
    };`;
    const program = `
      import { register } from 'node:module';
      register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}));
      const { defineQueue, dtoSchema } = await import('nestjs-echomq');
      defineQueue('mail', { welcome: dtoSchema(class Welcome {}) });
      setTimeout(() => process.exit(7), 10_000); // an app that would otherwise go on`;
    const args = ['--import', './scripts/ts-loader/register.mjs', '--input-type=module', '-e', program];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    expect({ status, output: stdout + stderr }).toEqual({
      status: 1,
      output: expect.stringContaining(`The "${gone}" package is missing`),
    });
  });
});
