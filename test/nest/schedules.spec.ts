import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { z } from 'zod';
import {
  Consumers,
  defineQueue,
  EchoDataError,
  EchoMqModule,
  EchoRegistrationError,
  getSchedulesToken,
  InjectSchedules,
  Job,
  JobData,
  Jobs,
  OnJob,
  Processor,
  Schedules,
} from '../../lib/index.js';
import { freePort } from '../../scripts/server/free-port.js';
import { RedisProcess } from '../../scripts/server/redis-process.js';
import { describeWithProcess } from '../support/availability.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, moduleOf, turns, useApps } from './apps.js';
import { useKits } from './testing/kits.js';

const NOON = { cron: '0 12 * * *', tz: 'Europe/Berlin' } as const;

let ran: string[] = [];

@Processor('reports')
class Reports {
  @OnJob('digest', { ...NOON, data: { to: 'all' }, overlap: 'skip', attempts: 5 })
  digest(): void {}

  @OnJob('tick', { key: 'fast', everyMs: 100 })
  tick({ slot, schedule }: Job): void {
    ran.push(`${schedule} ${slot!.getTime() % 100}`);
  }

  @OnJob('plain')
  plain(): void {}
}

describe('a handler with a schedule', () => {
  const server = useServer();
  const apps = useApps(server);
  const kits = useKits(server);
  guardLeaks();

  it('has its schedule declared when the app has started, and gets its jobs', async () => {
    ran = [];
    const app = await apps.boot({ providers: [Reports] });
    const schedules = app.get(Schedules);
    expect((await schedules.list('reports')).total).toBe(2);
    expect(await schedules.get('reports', 'digest')).toMatchObject({
      times: NOON,
      overlap: 'skip',
      catchUp: 'skip',
      name: 'digest',
      data: { to: 'all' },
      opts: { attempts: 5 },
      declared: true,
    });
    await until(() => ran.length >= 3, { what: 'three ticks' });
    expect(new Set(ran)).toEqual(new Set(['fast 0']));
    expect(apps.log.log.filter((line) => line.startsWith('Schedule '))).toEqual([
      expect.stringMatching(/^Schedule 'digest' of queue 'reports' runs next at \d{4}-\d\d-\d\dT1[01]:00:00\.000Z$/),
      expect.stringMatching(/^Schedule 'fast' of queue 'reports' runs next at /),
    ]);
    expect(apps.log.warn).toEqual([]);
  });

  it('is declared again at every deploy: its next run does not move, and one that is paused stays so', async () => {
    const first = await apps.boot({ providers: [Reports] });
    await first.get(Schedules).pause('reports', 'fast');
    const before = await first.get(Schedules).get('reports', 'digest');
    await first.close();
    apps.log.log.length = 0;
    const overdue = before!.nextSlot!.getTime() - 90_000_000;
    await server.client().zadd('emq:{reports}:schedules', overdue, 'digest');
    const second = await apps.boot({ providers: [Reports] }, { autoStart: false });
    const schedules = second.get(Schedules);
    expect((await schedules.get('reports', 'digest'))!.nextSlot).toEqual(new Date(overdue));
    expect(await schedules.get('reports', 'fast')).toMatchObject({ paused: true });
    expect(apps.log.log).toContain("Schedule 'fast' of queue 'reports' is paused");
  });

  it('is declared again when the server has lost it; what somebody else has declared since stays as it is', async () => {
    ran = [];
    const app = await apps.boot({ providers: [Reports] });
    await until(() => ran.length > 0, { what: 'a tick' });
    const control = server.client();
    await control.flushall();
    const schedules = app.get(Schedules);
    await schedules.put('reports', 'digest', { everyMs: 86_400_000 }, 'digest');
    ran = [];
    await control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(() => ran.length > 1, { what: 'ticks' });
    expect(await schedules.get('reports', 'fast')).toMatchObject({ declared: true, times: { everyMs: 100 } });
    expect(await schedules.get('reports', 'digest')).toMatchObject({ declared: false, times: { everyMs: 86_400_000 } });
    expect(apps.log.log.filter((line) => line.startsWith("Schedule 'fast'"))).toHaveLength(2);
  });

  it('that is gone from the next version is named in the log, and goes on until it is removed on request', async () => {
    await (await apps.boot({ providers: [Reports] })).close();

    @Processor('reports')
    class Next {
      @OnJob('digest', { ...NOON, data: { to: 'all' }, overlap: 'skip', attempts: 5 })
      digest(): void {}

      @OnJob()
      rest(): void {}
    }
    const app = await apps.boot({ providers: [Next] });
    expect(apps.log.warn).toEqual([
      "Schedules no longer declared on queue 'reports': fast. They go on; schedules.prune() removes them, or option pruneSchedules at the next start",
    ]);
    const schedules = app.get(Schedules);
    expect((await schedules.list('reports')).total).toBe(2);
    expect(await schedules.prune('reports')).toEqual(['fast']);
    expect((await schedules.list('reports')).schedules.map(({ key }) => key)).toEqual(['digest']);
  });

  it('that is gone is removed at the start with pruneSchedules; those made by hand stay', async () => {
    const first = await apps.boot({ providers: [Reports] });
    await first.get(Jobs).schedule('reports', 'by hand', NOON, 'plain');
    await first.close();

    @Processor('reports')
    class None {
      @OnJob()
      rest(): void {}
    }
    const app = await apps.boot({ providers: [None] }, { pruneSchedules: true });
    expect((await app.get(Schedules).list('reports')).schedules.map(({ key }) => key)).toEqual(['by hand']);
    expect(apps.log.log).toContain("Removed schedules no longer declared on queue 'reports': digest, fast");
    expect(apps.log.warn).toEqual([]);
  });

  it('is not declared by a process that does not consume, and is by one whose consumers start later', async () => {
    const web = await apps.boot({ providers: [Reports] }, { consume: false });
    expect((await web.get(Schedules).list('reports')).total).toBe(0);
    await web.close();
    ran = [];
    const app = await apps.boot({ providers: [Reports] }, { autoStart: false });
    expect((await app.get(Schedules).list('reports')).total).toBe(2);
    await turns();
    expect(ran).toEqual([]);
    app.get(Consumers).start();
    await until(() => ran.length > 0, { what: 'a tick' });
  });

  it('has data that its queue declares, checked at the start, and gets it as the schema puts it out', async () => {
    const Mail = defineQueue('mail', { digest: z.object({ day: z.coerce.date<string>() }) });
    const days: Date[] = [];

    @Processor(Mail)
    class Digests {
      @OnJob(Mail, 'digest', { everyMs: 100, data: { day: '2026-01-01' } })
      digest(@JobData() data: { day: Date }): void {
        days.push(data.day);
      }
    }
    await apps.boot({ providers: [Digests] });
    await until(() => days.length > 0, { what: 'a digest' });
    expect(days[0]).toEqual(new Date('2026-01-01'));

    @Processor(Mail)
    class Wrong {
      @OnJob(Mail, 'digest', { everyMs: 100, data: { day: 'someday' } })
      digest(): void {}
    }
    const error = await failure(apps.boot({ providers: [Wrong] }, { prefix: 'other' }));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error.message).toContain("the data of 'digest' for queue 'mail' does not fit its schema");
  });

  it('belongs to the instance that serves it; its Schedules are injected by name', async () => {
    @Processor('mail', { instance: 'second' })
    class Second {
      @OnJob('digest', NOON)
      digest(): void {}
    }

    @Injectable()
    class Admin {
      constructor(
        @InjectSchedules('second') readonly second: Schedules,
        readonly first: Schedules,
      ) {}
    }
    const other = EchoMqModule.forRoot(apps.options({ name: 'second', prefix: 'second' }));
    const app = await apps.boot({ imports: [other], providers: [Second, Admin] });
    const { first, second } = app.get(Admin);
    expect((await second.list('mail')).total).toBe(1);
    expect((await first.list('mail')).total).toBe(0);
    expect(app.get(getSchedulesToken('second'))).toBe(second);
    expect(app.get(getSchedulesToken())).toBe(first);
  });

  it('is declared once its module is loaded late', async () => {
    const app = await apps.boot({});
    await app.get(LazyModuleLoader).load(() => moduleOf({ providers: [Reports] }, 'ReportsModule'));
    await until(async () => (await app.get(Schedules).list('reports')).total === 2, { what: 'its schedules' });
  });

  it('does not keep its app from running jobs when the server refuses the schedule', async () => {
    ran = [];
    const client = server.client();
    await client.set('emq:{reports}:schedules', 'x');
    const app = await apps.boot({ providers: [Reports] });
    await app.get(Jobs).enqueue('reports', 'plain');
    await until(async () => (await app.get(Jobs).counts('reports')).metrics.completed === 1, { what: 'the job' });
    await until(() => apps.log.error.some((line) => line.startsWith('EMQTYPE')), { what: 'the refusal to be told' });
    await client.del('emq:{reports}:schedules');
    await until(() => ran.length > 0, { what: 'a tick', timeoutMs: 10_000 });
  });

  it('is run by a test when it says so', async () => {
    const { module, kit } = await kits.boot({ providers: [Reports] });
    const schedules = module.get(Schedules);
    expect(await schedules.runNow('reports', 'digest')).toMatchObject({ status: 'landed' });
    const [job] = await kit.assertEnqueued({ queue: 'reports', name: 'digest', data: { to: 'all' } });
    expect(job!.opts).toMatchObject({ schedule: 'digest' });
    expect(await kit.drain()).toMatchObject({ completed: 1, errors: [] });
  });

  it('fails the boot when two of a queue have one key', async () => {
    @Processor('reports')
    class Other {
      @OnJob('other', { key: 'fast', everyMs: 1000 })
      other(): void {}
    }
    const error = await failure(apps.boot({ providers: [Reports, Other] }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    expect(error.message).toContain(
      "queue 'reports': schedule 'fast' is declared by Reports.tick in RootModule and by Other.other in RootModule",
    );
  });

  it.each<[what: string, schedule: object | string, message: RegExp]>([
    ['is never due', { cron: '0 0 30 2 *' }, /@OnJob on Some\.run: option 'cron' is "0 0 30 2 \*", which is never due/],
    ['has no times', { data: 1 }, /come a schedule's times, .+, or \{ batch: .+ \}, got an object with data$/],
    [
      'has a batch without its name',
      { size: 5, waitMs: 1 },
      /\{ batch: \{ size, waitMs \} \}, got an object with size, waitMs$/,
    ],
    ['has two', { cron: '* * * * *', everyMs: 1000 }, /unknown option 'everyMs'/],
    ['is in no zone', { cron: '* * * * *', tz: '' }, /option 'tz'/],
    ['has an option that is none', { everyMs: 1000, overlaps: 'skip' }, /unknown option 'overlaps'/],
    ['has a key that is none', { everyMs: 1000, key: '' }, /key, "", is empty/],
    ['is no object', 7 as never, /behind the name comes a schedule, .+, got 7/],
  ])('is refused where it is written when it %s', (_what, schedule, message) => {
    const declare = () => {
      class Some {
        run(): void {}
      }
      const descriptor = Object.getOwnPropertyDescriptor(Some.prototype, 'run')!;
      OnJob('job', schedule as never)(Some.prototype, 'run', descriptor);
    };
    expect(declare).toThrow(EchoRegistrationError);
    expect(declare).toThrow(message);
  });
});

describeWithProcess('the schedules of an app', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it("that starts without its server (onBoot: 'wait') are declared once it is there", async () => {
    ran = [];
    const port = await freePort();
    const connection = `redis://127.0.0.1:${port}`;
    const app = await apps.boot({ providers: [Reports] }, { connection, onBoot: 'wait', requestTimeoutMs: 300 });
    await until(() => apps.log.error.length > 0, { what: 'the trouble to be logged' });
    const late = await RedisProcess.start({ port });
    try {
      await until(() => ran.length > 0, { what: 'a tick', timeoutMs: 10_000 });
      expect((await app.get(Schedules).list('reports')).total).toBe(2);
      await app.close();
    } finally {
      await late.stop();
    }
  });

  it('whose server is full are declared once it is not: jobs run meanwhile', async () => {
    ran = [];
    const client = server.client();
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    const before = await apps.boot({}, {});
    await before.get(Jobs).enqueue('reports', 'plain');
    await before.close();
    await client.config('SET', 'maxmemory', 1);
    const app = await apps.boot({ providers: [Reports] });
    await until(async () => (await app.get(Jobs).counts('reports')).metrics.completed === 1, { what: 'the job' });
    await until(() => apps.log.error.some((line) => line.startsWith('OOM')), { what: 'the refusal to be told' });
    await client.config('SET', 'maxmemory', 0);
    await until(() => ran.length > 0, { what: 'a tick', timeoutMs: 10_000 });
    expect((await app.get(Schedules).list('reports')).total).toBe(2);
  });
});
